/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All remotes go by one port, where nobody overtakes what is posted, whomever it is for. So what
 * stands below the first level is counted over all of them, and they have low_bytes_max between
 * them: each a part, of as many as have something in flight; or a segment for each connection that
 * competes, where that is more. The share of who is alone may still be in flight when others come:
 * so it is no more than that and a segment.
 *
 * Nobody waits for another's: who has nothing in flight posts a segment, and who has hears of its
 * completion, and looks how many there are by then.
 */
#include "lib/mux/tx/post.h"

void weir_mux_port_changed(struct weir_mux_remote *remote, uint64_t before)
{
	const uint64_t now = remote->sched.low_bytes;

	if (now == before)
		return;
	atomic_fetch_add(&remote->mux->low_bytes, now - before);
	if (!before || !now)
		atomic_fetch_add(&remote->mux->low_remotes, before ? -1u : 1u);
}

void weir_mux_port_divide(struct weir_mux_remote *remote)
{
	uint32_t remotes = atomic_load(&remote->mux->low_remotes) + !remote->sched.low_bytes;

	remote->sched.low_bytes_max = remote->mux->options.low_bytes_max / remotes;
}
