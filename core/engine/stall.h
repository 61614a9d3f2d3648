/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The watchdog for a stalled channel that blocks the shared window. WRs in flight to a dead peer
 * keep their window space until their deadlines. By then the waiting requests of other sessions are
 * late too. So a channel with WRs in flight and no completion for @stall_timeout_ns (half a
 * request's timeout) is failed if other sessions wait for the window. The other half of the timeout
 * is left for them. If no session waits, the channel stays: the network may only be away for a
 * moment.
 *
 * The watchdog counts silence, not age: in a long queue every WR waits, but completions keep
 * coming.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_STALL_H
#define WEIR_CORE_ENGINE_STALL_H

#include "core/engine/engine.h"

static inline void weir_stall_reset(struct weir_engine *e, uint16_t channel, uint64_t now_ns)
{
	e->channels.channel[channel].progress_ns = now_ns;
	e->channels.channel[channel].suspect_ns = 0;
}

/* A WR is in flight on @channel, which was empty before. */
static inline void weir_stall_start_timer(struct weir_engine *e, uint16_t channel, uint64_t now_ns)
{
	weir_stall_reset(e, channel, now_ns);
	if (e->stall_timeout_ns && e->stall_check_ns > now_ns + e->stall_timeout_ns)
		e->stall_check_ns = now_ns + e->stall_timeout_ns;
}

/* A WR on @channel has succeeded. */
static inline void weir_stall_progressed(struct weir_engine *e, uint16_t channel, uint64_t now_ns)
{
	weir_stall_reset(e, channel, now_ns);
	e->progress_ns = now_ns;
}

/**
 * weir_stall_check() - fail stalled channels that block other sessions
 * @e: the engine
 * @now_ns: the time; no effect before @e->stall_check_ns
 *
 * A channel is failed only if an earlier check, at least an eighth of the timeout ago, found
 * silence too: a suspended host may find the completions a moment later.
 *
 * If no channel had a completion for the timeout, all are failed; otherwise lost requests would
 * only stall on the next channel. The unload channel is exempt, because it waits for a CPU, not for
 * a NIC.
 *
 * Return: true if any channel was failed.
 */
bool weir_stall_check(struct weir_engine *e, uint64_t now_ns);

#endif
