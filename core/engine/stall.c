/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See patience.h. */
#include "core/engine/stall.h"

static bool is_silent(const struct weir_engine *e, uint64_t since_ns, uint64_t now_ns)
{
	return now_ns >= since_ns && now_ns - since_ns >= e->patience_ns;
}

/* From one look at what is silent to the next. */
static uint64_t step_ns(const struct weir_engine *e)
{
	return e->patience_ns / 8 + 1;
}

/* When to look at it next; at what is waited for in vain already, in case that others come. */
static uint64_t look(struct weir_engine *e, struct weir_channel *channel, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!is_silent(e, channel->since_ns, now_ns))
		return channel->since_ns + e->patience_ns;
	if (!channel->doubted_ns)
		channel->doubted_ns = now_ns;
	due_ns = channel->doubted_ns + step_ns(e);
	return due_ns > now_ns ? due_ns : now_ns + step_ns(e);
}

static bool is_vain(const struct weir_engine *e, const struct weir_channel *channel,
		    uint64_t now_ns)
{
	return channel->doubted_ns && now_ns - channel->doubted_ns >= step_ns(e);
}

/* Those that are, of those that may be picked. Sets when to look again. */
static uint32_t look_at_all(struct weir_engine *e, uint64_t now_ns)
{
	uint32_t vain = 0, left = weir_channels_common(&e->channels);
	uint16_t number;

	e->judge_ns = WEIR_NEVER;
	for (number = 0; left; number++, left >>= 1) {
		struct weir_channel *channel = &e->channels.channel[number];
		uint64_t due_ns;

		if (!(left & 1) || !channel->in_flight)
			continue;
		due_ns = look(e, channel, now_ns);
		if (due_ns < e->judge_ns)
			e->judge_ns = due_ns;
		vain |= (uint32_t)is_vain(e, channel, now_ns) << number;
	}
	return vain;
}

static void give_up(struct weir_engine *e, uint16_t channel)
{
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){
				.what = WEIR_TRACE_VAIN,
				.why = -ETIMEDOUT,
				.wrs = e->channels.channel[channel].in_flight,
				.channel = (uint8_t)channel });
	weir_channels_fail(&e->channels, channel);
}

bool weir_patience_judge(struct weir_engine *e, uint64_t now_ns)
{
	uint16_t channel;
	uint32_t vain;

	if (now_ns < e->judge_ns)
		return false;
	vain = look_at_all(e, now_ns);
	if (!vain || !weir_window_is_awaited(e->window, &e->waiter))
		return false;
	if (is_silent(e, e->heard_ns, now_ns))
		vain = weir_channels_common(&e->channels);
	for (channel = 0; vain; channel++, vain >>= 1) {
		if (vain & 1)
			give_up(e, channel);
	}
	return true;
}
