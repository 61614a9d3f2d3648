/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/inode/rw_gate.h"

#include <stddef.h>

void gate_init(struct gate *gate)
{
	*gate = (struct gate){ .last = &gate->first };
}

static bool has_room(const struct gate *gate, const struct gate_pass *pass)
{
	return !gate->inside || (!gate->alone && !pass->alone);
}

static void let_in(struct gate *gate, const struct gate_pass *pass)
{
	gate->inside++;
	gate->alone = pass->alone;
}

bool gate_enter(struct gate *gate, struct gate_pass *pass)
{
	/* Whoever waits goes first, or a stream of transfers would keep a truncation out. */
	if (!gate->first && has_room(gate, pass)) {
		let_in(gate, pass);
		return true;
	}
	pass->next = NULL;
	*gate->last = pass;
	gate->last = &pass->next;
	return false;
}

struct gate_pass *gate_leave(struct gate *gate)
{
	struct gate_pass *granted = NULL;
	struct gate_pass **last = &granted;

	gate->inside--;
	while (gate->first && has_room(gate, gate->first)) {
		struct gate_pass *pass = gate->first;

		gate->first = pass->next;
		let_in(gate, pass);
		*last = pass;
		last = &pass->next;
	}
	*last = NULL;
	if (!gate->first)
		gate->last = &gate->first;
	return granted;
}

void gate_call(struct gate_pass *granted)
{
	while (granted) {
		struct gate_pass *pass = granted;

		granted = pass->next;
		pass->granted(pass);
	}
}
