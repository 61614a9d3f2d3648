/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The gate of a file: many transfers pass together, but what changes the ground under them (a
 * truncation, a hole punched, a map recalled) passes alone, in the order they came.
 *
 * Nobody sleeps at a gate who does not want to: who has to wait leaves a function to be called.
 *
 * Guarded by the inode's lock, except for what is said to be called without it.
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
	unsigned int inside; /* passes granted and not given back */
	bool alone; /* the one inside wants no company */
	struct rw_gate_pass *first, **last; /* who waits */
};

void rw_gate_init(struct rw_gate *gate);

/* True: come in. False: @pass waits, and pass->granted() will be called. */
bool rw_gate_enter(struct rw_gate *gate, struct rw_gate_pass *pass);

/* Gives a pass back. Return: who may enter now, to be handed to rw_gate_call_granted() without the lock. */
struct rw_gate_pass *rw_gate_leave(struct rw_gate *gate);
void rw_gate_call_granted(struct rw_gate_pass *granted);

#endif
