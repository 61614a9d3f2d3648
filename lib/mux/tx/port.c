/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All remotes share a port, which sends in the order posted. So low-level bytes in flight are
 * counted over all remotes, and low_bytes_max is divided evenly between the active remotes. Each
 * remote may have at least a segment per competing connection. When others start, a lone remote
 * may still have a full share in flight: at most low_bytes_max and a segment.
 *
 * No remote waits for another: an idle remote posts a segment at once, and an active remote
 * recomputes its share at the next completion.
 */
#include "lib/mux/tx/post.h"

void weir_mux_port_changed(struct weir_mux_remote *remote, uint64_t before)
{
	const uint64_t now = remote->sched.low_bytes;

	if (now == before)
		return;
	weir_counter_add(&remote->mux->low_bytes, now - before);
	if (!before || !now)
		weir_counter_add(&remote->mux->low_remotes, before ? -1ull : 1ull);
}

void weir_mux_port_divide(struct weir_mux_remote *remote)
{
	uint64_t remotes =
		weir_counter_read(&remote->mux->low_remotes) + !remote->sched.low_bytes;

	remote->sched.low_bytes_max = remote->mux->options.low_bytes_max / remotes;
}
