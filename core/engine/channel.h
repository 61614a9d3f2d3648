/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The channels of one session: which live, and how full each one's send queue is.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_CHANNEL_H
#define WEIR_CORE_ENGINE_CHANNEL_H

#include "core/base/platform.h"

#define WEIR_CHANNEL_MAX 16
#define WEIR_CHANNEL_NONE UINT16_MAX

/**
 * struct weir_channel - what the engine knows of one QP
 * @depth: WRs that fit its send queue
 * @in_flight: WRs posted and not completed, at most @depth
 * @progress_ns: when one last succeeded, or when it began to have any in flight
 * @suspect_ns: when it was first seen to be silent since then, or 0
 */
struct weir_channel {
	uint32_t depth;
	uint32_t in_flight;
	uint64_t progress_ns;
	uint64_t suspect_ns;
};

/**
 * struct weir_channels - all of a session
 * @channel: by number
 * @up: bit n: channel n may be posted to
 * @broken: bit n: channel n may come up again
 * @failed: bit n: the host has yet to hear that channel n is used no longer
 * @reserved: bit n: channel n is for what cannot go elsewhere too, and is never picked
 */
struct weir_channels {
	struct weir_channel channel[WEIR_CHANNEL_MAX];
	uint32_t up;
	uint32_t broken;
	uint32_t failed;
	uint32_t reserved;
};

/**
 * weir_channels_init() - all are down
 * @c: to be initialised
 */
void weir_channels_init(struct weir_channels *c);

/**
 * weir_channels_up() - one has come up
 * @c: the channels
 * @number: which, below WEIR_CHANNEL_MAX
 * @depth: WRs that fit its send queue, at least 1
 *
 * Return: 0; -EINVAL for a bad number or depth; -EBUSY when it is up already, or when WRs
 *	of its former life have not completed yet.
 */
int weir_channels_up(struct weir_channels *c, uint16_t number, uint32_t depth);

/**
 * weir_channels_broken() - one must not be used until it comes up again, and the host knows
 * @c: the channels
 * @number: which
 */
void weir_channels_broken(struct weir_channels *c, uint16_t number);

/**
 * weir_channels_down() - one is gone for good, and the host knows
 * @c: the channels
 * @number: which
 */
void weir_channels_down(struct weir_channels *c, uint16_t number);

/**
 * weir_channels_fail() - one is broken, and the host is to hear of it
 * @c: the channels
 * @number: which; nothing happens when it is down already
 */
void weir_channels_fail(struct weir_channels *c, uint16_t number);

/**
 * weir_channels_pop_failed() - one that the host has to hear of
 * @c: the channels
 *
 * Return: its number, told once, or WEIR_CHANNEL_NONE.
 */
uint16_t weir_channels_pop_failed(struct weir_channels *c);

/* Whether there is one. */
static inline bool weir_channels_any_failed(const struct weir_channels *c)
{
	return c->failed;
}

/* Whether a channel can be posted to. */
static inline bool weir_channels_is_up(const struct weir_channels *c, uint16_t number)
{
	return c->up >> number & 1;
}

/* Whether one has failed and may come up again. */
static inline bool weir_channels_is_broken(const struct weir_channels *c, uint16_t number)
{
	return c->broken >> number & 1;
}

/* Whether there is, or may be again, anywhere to post. */
static inline bool weir_channels_any_left(const struct weir_channels *c)
{
	return (c->up | c->broken) & ~c->reserved;
}

/**
 * weir_channels_room() - how many WRs one takes now
 * @c: the channels
 * @number: which
 *
 * Return: WRs; 0 when it is full or down.
 */
static inline uint32_t weir_channels_room(const struct weir_channels *c, uint16_t number)
{
	const struct weir_channel *channel = &c->channel[number];

	return weir_channels_is_up(c, number) ? channel->depth - channel->in_flight : 0;
}

/* Those that may be picked. */
static inline uint32_t weir_channels_pickable(const struct weir_channels *c)
{
	return c->up & ~c->reserved;
}

/**
 * weir_channels_pick() - where to post next
 * @c: the channels
 *
 * Return: the one with room and the fewest WRs in flight, or WEIR_CHANNEL_NONE.
 */
static inline uint16_t weir_channels_pick(const struct weir_channels *c)
{
	uint16_t number, best = WEIR_CHANNEL_NONE;
	uint32_t fewest = UINT32_MAX, left;

	for (number = 0, left = weir_channels_pickable(c); left && fewest; number++, left >>= 1) {
		const struct weir_channel *channel = &c->channel[number];

		if (!(left & 1) || channel->in_flight >= channel->depth ||
		    channel->in_flight >= fewest)
			continue;
		fewest = channel->in_flight;
		best = number;
	}
	return best;
}

#endif
