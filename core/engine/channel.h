/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The channels of one session: their states, and how full each send queue is.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_CHANNEL_H
#define WEIR_CORE_ENGINE_CHANNEL_H

#include "core/base/platform.h"

#define WEIR_CHANNEL_MAX 16
#define WEIR_CHANNEL_NONE UINT16_MAX

/**
 * struct weir_channel - the engine's view of one QP
 * @wrs_max: WRs that fit the send queue
 * @in_flight: WRs posted and not completed, at most @wrs_max
 * @progress_ns: time of the last success, or when @in_flight last left 0
 * @suspect_ns: when the channel was first found silent since @progress_ns, or 0
 */
struct weir_channel {
	uint32_t wrs_max;
	uint32_t in_flight;
	uint64_t progress_ns;
	uint64_t suspect_ns;
};

/**
 * struct weir_channels - all channels of a session
 * @channel: by number
 * @up: bit n: channel n accepts posts
 * @broken: bit n: channel n may come up again
 * @failed: bit n: the host has not yet been told that channel n failed
 * @reserved: bit n: channel n serves one special purpose and is never picked
 * @busy: bit n: a thread posts to channel n without the host's lock; no other thread posts there
 */
struct weir_channels {
	struct weir_channel channel[WEIR_CHANNEL_MAX];
	uint32_t up;
	uint32_t broken;
	uint32_t failed;
	uint32_t reserved;
	uint32_t busy;
};

/**
 * weir_channels_init() - start with all channels down
 * @c: to be initialised
 */
void weir_channels_init(struct weir_channels *c);

/**
 * weir_channels_up() - a channel has come up
 * @c: the channels
 * @number: the channel, below WEIR_CHANNEL_MAX
 * @wrs_max: WRs that fit its send queue, at least 1
 *
 * Return: 0; -EINVAL for a bad number or wrs_max; -EBUSY if the channel is up already, or if WRs
 *	from before have not completed yet.
 */
int weir_channels_up(struct weir_channels *c, uint16_t number, uint32_t wrs_max);

/**
 * weir_channels_broken() - the host reports a broken channel, which may come up again
 * @c: the channels
 * @number: the channel
 */
void weir_channels_broken(struct weir_channels *c, uint16_t number);

/**
 * weir_channels_down() - the host reports that a channel is gone for good
 * @c: the channels
 * @number: the channel
 */
void weir_channels_down(struct weir_channels *c, uint16_t number);

/**
 * weir_channels_fail() - mark a channel broken; the host must be told
 * @c: the channels
 * @number: the channel; no effect unless up
 */
void weir_channels_fail(struct weir_channels *c, uint16_t number);

/**
 * weir_channels_pop_failed() - take a failed channel to report to the host
 * @c: the channels
 *
 * Return: its number, returned once, or WEIR_CHANNEL_NONE.
 */
uint16_t weir_channels_pop_failed(struct weir_channels *c);

/* Whether the host must be told of a failed channel. */
static inline bool weir_channels_any_failed(const struct weir_channels *c)
{
	return c->failed;
}

/* Whether a channel accepts posts. */
static inline bool weir_channels_is_up(const struct weir_channels *c, uint16_t number)
{
	return c->up >> number & 1;
}

/* Whether a channel has failed and may come up again. */
static inline bool weir_channels_is_broken(const struct weir_channels *c, uint16_t number)
{
	return c->broken >> number & 1;
}

/* Whether any channel is up or may come up again. */
static inline bool weir_channels_any_left(const struct weir_channels *c)
{
	return (c->up | c->broken) & ~c->reserved;
}

/**
 * weir_channels_room() - how many more WRs a channel accepts
 * @c: the channels
 * @number: the channel
 *
 * Return: WRs; 0 if the channel is full, busy or down.
 */
static inline uint32_t weir_channels_room(const struct weir_channels *c, uint16_t number)
{
	const struct weir_channel *channel = &c->channel[number];

	return (c->up & ~c->busy) >> number & 1 ? channel->wrs_max - channel->in_flight : 0;
}

/* Channels that are up and serve any request, as bits. */
static inline uint32_t weir_channels_common(const struct weir_channels *c)
{
	return c->up & ~c->reserved;
}

/* Channels that weir_channels_pick() may return, as bits. */
static inline uint32_t weir_channels_pickable(const struct weir_channels *c)
{
	return weir_channels_common(c) & ~c->busy;
}

/**
 * weir_channels_pick() - choose the channel for the next post
 * @c: the channels
 *
 * Return: the channel with room and the fewest WRs in flight, or WEIR_CHANNEL_NONE.
 */
static inline uint16_t weir_channels_pick(const struct weir_channels *c)
{
	uint16_t number, best = WEIR_CHANNEL_NONE;
	uint32_t fewest = UINT32_MAX, left;

	for (number = 0, left = weir_channels_pickable(c); left && fewest; number++, left >>= 1) {
		const struct weir_channel *channel = &c->channel[number];

		if (!(left & 1) || channel->in_flight >= channel->wrs_max ||
		    channel->in_flight >= fewest)
			continue;
		fewest = channel->in_flight;
		best = number;
	}
	return best;
}

#endif
