/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The first check that finds a channel silent only marks it suspect; a later check fails it. */
#include "core/engine/stall.h"

static bool is_silent(const struct weir_engine *e, uint64_t progress_ns, uint64_t now_ns)
{
	return now_ns >= progress_ns && now_ns - progress_ns >= e->stall_timeout_ns;
}

/* Time between two checks of a silent channel. */
static uint64_t check_interval_ns(const struct weir_engine *e)
{
	return e->stall_timeout_ns / 8 + 1;
}

/*
 * When to check @channel next. A channel already suspect is checked again too, because other
 * sessions may begin to wait.
 */
static uint64_t next_check_ns(struct weir_engine *e, struct weir_channel *channel, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!is_silent(e, channel->progress_ns, now_ns))
		return channel->progress_ns + e->stall_timeout_ns;
	if (!channel->suspect_ns)
		channel->suspect_ns = now_ns;
	due_ns = channel->suspect_ns + check_interval_ns(e);
	return due_ns > now_ns ? due_ns : now_ns + check_interval_ns(e);
}

static bool is_stalled(const struct weir_engine *e, const struct weir_channel *channel,
		       uint64_t now_ns)
{
	return channel->suspect_ns && now_ns - channel->suspect_ns >= check_interval_ns(e);
}

/* The stalled channels among those that may be picked, as bits. Sets @e->stall_check_ns. */
static uint32_t find_stalled(struct weir_engine *e, uint64_t now_ns)
{
	uint32_t stalled = 0, left = weir_channels_common(&e->channels);
	uint16_t number;

	e->stall_check_ns = WEIR_NEVER;
	for (number = 0; left; number++, left >>= 1) {
		struct weir_channel *channel = &e->channels.channel[number];
		uint64_t due_ns;

		if (!(left & 1) || !channel->in_flight)
			continue;
		due_ns = next_check_ns(e, channel, now_ns);
		if (due_ns < e->stall_check_ns)
			e->stall_check_ns = due_ns;
		stalled |= (uint32_t)is_stalled(e, channel, now_ns) << number;
	}
	return stalled;
}

static void fail_channel(struct weir_engine *e, uint16_t channel)
{
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .event = WEIR_TRACE_STALL,
						     .rc = -ETIMEDOUT,
						     .wrs = e->channels.channel[channel].in_flight,
						     .channel = (uint8_t)channel });
	weir_channels_fail(&e->channels, channel);
}

bool weir_stall_check(struct weir_engine *e, uint64_t now_ns)
{
	uint16_t channel;
	uint32_t stalled;

	if (now_ns < e->stall_check_ns)
		return false;
	stalled = find_stalled(e, now_ns);
	if (!stalled || !weir_window_is_awaited(e->window, e->waiters, WEIR_WINDOW_CLASSES))
		return false;
	if (is_silent(e, e->progress_ns, now_ns))
		stalled = weir_channels_common(&e->channels);
	for (channel = 0; stalled; channel++, stalled >>= 1) {
		if (stalled & 1)
			fail_channel(e, channel);
	}
	return true;
}
