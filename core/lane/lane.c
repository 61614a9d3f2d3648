/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/lane/lane.h"
#include "core/engine/stall.h"

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Return: a lane's share of what is left of half of @max. */
static inline uint64_t share_of(uint64_t max, uint64_t used, uint32_t lanes)
{
	return used < max / 2 ? (max / 2 - used) / lanes : 0;
}

bool weir_lane_may_lend(const struct weir_engine *e, uint32_t lanes, struct weir_lane_share *share)
{
	const struct weir_window *w = e->window;
	uint64_t wrs = lesser(share_of(w->wrs_max, w->wrs, lanes), e->nr_wrs / lanes);

	share->wrs = (uint32_t)lesser(wrs, WEIR_LANE_WRS);
	share->bytes = (uint32_t)lesser(share_of(w->bytes_max, w->bytes, lanes), WEIR_LANE_BYTES);
	return !w->learner && weir_engine_is_idle(e) && weir_engine_is_quiet(e) &&
	       share->wrs >= WEIR_BATCH_MAX && share->bytes >= WEIR_LANE_CHAIN_BYTES;
}

static void give_wrs_back(struct weir_engine *e, struct weir_lane *lane, uint32_t from)
{
	uint32_t i;

	for (i = from; i < lane->wrs_max; i++) {
		struct weir_wr *wr = lane->wrs[weir_lane_slot(lane, i)];

		wr->next = e->free_wrs;
		e->free_wrs = wr;
	}
}

static bool fill(struct weir_engine *e, struct weir_lane *lane)
{
	uint32_t max = lane->wrs_max;

	for (lane->wrs_max = 0; lane->wrs_max < max && e->free_wrs; lane->wrs_max++) {
		lane->wrs[lane->wrs_max] = e->free_wrs;
		e->free_wrs = e->free_wrs->next;
	}
	return lane->wrs_max >= WEIR_BATCH_MAX;
}

bool weir_lane_lend(struct weir_engine *e, struct weir_lane *lane, uint16_t channel,
		    const struct weir_lane_share *share)
{
	const struct weir_channel *c = &e->channels.channel[channel];

	if (!(weir_channels_pickable(&e->channels) >> channel & 1) || c->in_flight)
		return false;
	lane->oldest = lane->posted = lane->bytes = lane->met = 0;
	lane->wrs_max = (uint32_t)lesser(share->wrs, c->wrs_max);
	if (!fill(e, lane)) {
		give_wrs_back(e, lane, 0);
		return false;
	}
	lane->bytes_max = share->bytes;
	weir_window_lend(e->window, lane->bytes_max, lane->wrs_max);
	lane->channel = channel;
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
	wr->has_class = false;
	weir_backlog_add_posted(&e->backlog, wr->req);
}

static struct weir_wr *adopt_all(struct weir_engine *e, const struct weir_lane *lane,
				 uint64_t now_ns)
{
	struct weir_wr *wr, *first = NULL, **link = &first;
	uint32_t i;

	weir_window_tick(e->window, now_ns);
	for (i = 0; i < lane->posted; i++) {
		wr = lane->wrs[weir_lane_slot(lane, i)];
		adopt(e, wr, lane->channel, now_ns);
		*link = wr;
		link = &wr->next;
	}
	*link = NULL;
	e->channels.channel[lane->channel].in_flight = lane->posted;
	weir_stall_start_timer(e, lane->channel, now_ns);
	return first;
}

struct weir_wr *weir_lane_return(struct weir_engine *e, struct weir_lane *lane, uint64_t now_ns)
{
	struct weir_wr *first = NULL;

	weir_window_unlend(e->window, lane->bytes_max, lane->wrs_max);
	if (lane->posted)
		first = adopt_all(e, lane, now_ns);
	give_wrs_back(e, lane, lane->posted);
	lane->posted = 0;
	return first;
}
