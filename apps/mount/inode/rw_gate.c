/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/inode/rw_gate.h"

#include <stddef.h>

void rw_gate_init(struct rw_gate *gate)
{
	*gate = (struct rw_gate){ .last = &gate->first };
}

static bool has_room(const struct rw_gate *gate, const struct rw_gate_pass *pass)
{
	return !gate->inside || (!gate->alone && !pass->alone);
}

static void grant_waiting(struct rw_gate *gate, const struct rw_gate_pass *pass)
{
	gate->inside++;
	gate->alone = pass->alone;
}

bool rw_gate_enter(struct rw_gate *gate, struct rw_gate_pass *pass)
{
	/* Waiters go first. Otherwise a stream of transfers would starve a truncation. */
	if (!gate->first && has_room(gate, pass)) {
		grant_waiting(gate, pass);
		return true;
	}
	pass->next = NULL;
	*gate->last = pass;
	gate->last = &pass->next;
	return false;
}

static struct rw_gate_pass *grant_first(struct rw_gate *gate)
{
	struct rw_gate_pass *granted = NULL;
	struct rw_gate_pass **last = &granted;

	while (gate->first && has_room(gate, gate->first)) {
		struct rw_gate_pass *pass = gate->first;

		gate->first = pass->next;
		grant_waiting(gate, pass);
		*last = pass;
		last = &pass->next;
	}
	*last = NULL;
	if (!gate->first)
		gate->last = &gate->first;
	return granted;
}

struct rw_gate_pass *rw_gate_leave(struct rw_gate *gate)
{
	gate->inside--;
	return grant_first(gate);
}

bool rw_gate_withdraw(struct rw_gate *gate, struct rw_gate_pass *pass,
		      struct rw_gate_pass **granted)
{
	struct rw_gate_pass **at = &gate->first;

	while (*at && *at != pass)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = pass->next;
	if (!*at)
		gate->last = at;
	*granted = grant_first(gate);
	return true;
}

void rw_gate_call_granted(struct rw_gate_pass *granted)
{
	while (granted) {
		struct rw_gate_pass *pass = granted;

		granted = pass->next;
		pass->granted(pass);
	}
}
