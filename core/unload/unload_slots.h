/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The initiator's end of one unload buffer: numbers the writes, and counts the writes that the
 * target has reported. Writes go into the slots in order, round and round, at most as many as there
 * are slots. The target reports a count modulo 2^16, so one report covers any number of writes. The
 * target's end is core/unload/unload_rx.h.
 *
 * A report is the only completion of a write. The send's own completion says no more than that the
 * write is in the buffer; so only every @count / 2nd send asks for one, to free the send queue.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_UNLOAD_SLOTS_H
#define WEIR_CORE_UNLOAD_UNLOAD_SLOTS_H

#include "core/base/platform.h"

/**
 * struct weir_unload_slots - the slots of one buffer
 * @count: a power of two, 2 to 2^15
 * @next: number of the next write, modulo 2^16
 * @done: up to this number the target has copied the writes
 * @unsignalled: how many of the latest sends asked for no completion
 */
struct weir_unload_slots {
	uint16_t count;
	uint16_t next;
	uint16_t done;
	uint16_t unsignalled;
};

/* A new buffer of @count slots. */
static inline void weir_unload_slots_init(struct weir_unload_slots *s, uint16_t count)
{
	*s = (struct weir_unload_slots){ .count = count };
}

/* Writes per send that asks for a completion, which stands for all of these sends. */
static inline uint16_t weir_unload_slots_signal_every(const struct weir_unload_slots *s)
{
	return s->count / 2;
}

/* Return: how many writes are not done. */
static inline uint16_t weir_unload_slots_open(const struct weir_unload_slots *s)
{
	return (uint16_t)(s->next - s->done);
}

/**
 * weir_unload_slots_take() - take the slot of the next write
 * @s: fewer than @s->count writes are open
 * @is_signalled: receives whether the send asks for a completion
 *
 * Return: the slot, less than @s->count.
 */
static inline uint16_t weir_unload_slots_take(struct weir_unload_slots *s, bool *is_signalled)
{
	*is_signalled = ++s->unsignalled >= weir_unload_slots_signal_every(s);
	if (*is_signalled)
		s->unsignalled = 0;
	return s->next++ % s->count;
}

/* The last write was not sent after all. */
static inline void weir_unload_slots_untake(struct weir_unload_slots *s)
{
	s->next--;
	s->unsignalled = (s->unsignalled ? s->unsignalled : weir_unload_slots_signal_every(s)) - 1;
}

/**
 * weir_unload_slots_returned() - the target has reported
 * @s: the slots
 * @done: the reported count of copied writes
 * @new_max: at most how many more writes than before the target can have copied; below 0: it could
 *	not even report
 *
 * Return: how many of the oldest writes are now done; -EPROTO: more than @new_max, and nothing has
 *	changed.
 */
static inline int weir_unload_slots_returned(struct weir_unload_slots *s, uint16_t done,
					     int new_max)
{
	uint16_t count = (uint16_t)(done - s->done);

	if (count > new_max)
		return -EPROTO;
	s->done = done;
	return count;
}

#endif
