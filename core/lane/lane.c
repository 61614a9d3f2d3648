/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/lane/lane.h"
#include "core/engine/stall.h"

bool weir_lane_may_lend(const struct weir_engine *e, uint32_t lanes)
{
	const struct weir_window *w = e->window;

	return !w->learner && weir_engine_is_idle(e) && weir_engine_is_quiet(e) &&
	       w->bytes + (uint64_t)lanes * WEIR_LANE_BYTES <= w->bytes_max / 2 &&
	       w->wrs + lanes * WEIR_LANE_WRS <= w->wrs_max / 2;
}

static bool fill_up(struct weir_engine *e, struct weir_lane *lane)
{
	uint32_t i;

	for (i = 0; i < WEIR_LANE_WRS; i++) {
		if (lane->wrs[i])
			continue;
		if (!e->free_wrs)
			return false;
		lane->wrs[i] = e->free_wrs;
		e->free_wrs = e->free_wrs->next;
	}
	return true;
}

bool weir_lane_lend(struct weir_engine *e, struct weir_lane *lane, uint16_t channel)
{
	const struct weir_channel *c = &e->channels.channel[channel];

	if (!(weir_channels_pickable(&e->channels) >> channel & 1) || c->in_flight ||
	    c->wrs_max < WEIR_LANE_WRS || !fill_up(e, lane))
		return false;
	weir_window_lend(e->window, WEIR_LANE_BYTES, WEIR_LANE_WRS);
	lane->channel = channel;
	lane->posted = 0;
	lane->is_lent = true;
	return true;
}

/* As if the engine had posted @wr: its request was alone. */
static void adopt(struct weir_engine *e, struct weir_wr *wr, uint16_t channel, uint64_t now_ns)
{
	weir_window_claim(e->window, wr->length);
	wr->posted_ns = now_ns;
	wr->channel = channel;
	wr->path = WEIR_PATH_UNDECIDED;
	wr->in_stream = false;
	weir_backlog_add_posted(&e->backlog, wr->req);
}

void weir_lane_return(struct weir_engine *e, struct weir_lane *lane, uint64_t now_ns)
{
	uint32_t i;

	weir_window_unlend(e->window, WEIR_LANE_BYTES, WEIR_LANE_WRS);
	if (!lane->posted)
		return;
	weir_window_tick(e->window, now_ns);
	for (i = 0; i < lane->posted; i++) {
		lane->wrs[i]->next = i + 1 < lane->posted ? lane->wrs[i + 1] : NULL;
		adopt(e, lane->wrs[i], lane->channel, now_ns);
		lane->wrs[i] = NULL;
	}
	e->channels.channel[lane->channel].in_flight = lane->posted;
	weir_stall_start_timer(e, lane->channel, now_ns);
	lane->posted = 0;
}
