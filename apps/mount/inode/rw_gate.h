/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file's read-write gate. Transfers share the gate. Operations that change the map (truncation,
 * hole punching, recall of a map) hold it alone, in order of arrival.
 *
 * A gate never blocks: a waiter leaves a function to call.
 *
 * The inode's lock guards a gate, except where stated.
 */
#ifndef WEIR_APPS_MOUNT_INODE_RW_GATE_H
#define WEIR_APPS_MOUNT_INODE_RW_GATE_H

#include <stdbool.h>

struct rw_gate_pass {
	struct rw_gate_pass *next;
	bool alone;
	void (*granted)(struct rw_gate_pass *pass); /* called without the lock */
};

struct rw_gate {
	unsigned int inside; /* passes granted and not returned */
	bool alone; /* the current holder excludes others */
	struct rw_gate_pass *first, **last; /* waiting passes */
};

void rw_gate_init(struct rw_gate *gate);

/* Return: true: entered. False: @pass waits, and pass->granted() will be called. */
bool rw_gate_enter(struct rw_gate *gate, struct rw_gate_pass *pass);

/* Returns a pass. Return: the passes granted now, for rw_gate_call_granted() without the lock. */
struct rw_gate_pass *rw_gate_leave(struct rw_gate *gate);
/*
 * Takes back a pass that waits. @granted: receives those granted now. Return: false: the pass has
 * been granted.
 */
bool rw_gate_withdraw(struct rw_gate *gate, struct rw_gate_pass *pass,
		      struct rw_gate_pass **granted);
void rw_gate_call_granted(struct rw_gate_pass *granted);

#endif
