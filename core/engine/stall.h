/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who holds the window in vain. A host that is gone answers nothing, and what is on its way there
 * keeps its room in the window until its deadline. By then all that stood in line behind it is
 * late, too, though it was for others. So a channel that has had something in flight and no answer
 * for as long as its engine's patience, half the time of a request, is given up if others stand in
 * line: they have the other half. If nobody does it may go on waiting, for a network may be away
 * for a moment.
 *
 * Silence counts, not age: in a long queue each waits, and all are answered.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_STALL_H
#define WEIR_CORE_ENGINE_STALL_H

#include "core/engine/engine.h"

static inline void weir_stall_reset(struct weir_engine *e, uint16_t channel, uint64_t now_ns)
{
	e->channels.channel[channel].progress_ns = now_ns;
	e->channels.channel[channel].suspect_ns = 0;
}

/* Something is in flight on @channel, where nothing was. */
static inline void weir_stall_start_timer(struct weir_engine *e, uint16_t channel, uint64_t now_ns)
{
	weir_stall_reset(e, channel, now_ns);
	if (e->stall_timeout_ns && e->stall_check_ns > now_ns + e->stall_timeout_ns)
		e->stall_check_ns = now_ns + e->stall_timeout_ns;
}

/* Something has succeeded there. */
static inline void weir_stall_progressed(struct weir_engine *e, uint16_t channel, uint64_t now_ns)
{
	weir_stall_reset(e, channel, now_ns);
	e->progress_ns = now_ns;
}

/**
 * weir_stall_check() - fail the channels that others wait for in vain
 * @e: the engine
 * @now_ns: the time; before @e->stall_check_ns nothing happens
 *
 * Only when they were found silent an eighth of the patience ago, too: a host that stood still
 * itself finds its answers a moment later. All of them, where none has had an answer for so long: what is
 * lost on one would be posted to another next, and be held up there. The channel that unloads is
 * left alone, for it waits for a CPU, not for a NIC.
 *
 * Return: whether any was failed.
 */
bool weir_stall_check(struct weir_engine *e, uint64_t now_ns);

#endif
