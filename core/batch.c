/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A batch takes whatever is ready at this moment and never waits for more: alone, a
 * request is a batch of one. It ends at WEIR_BATCH_MAX, or once it holds a fragment's
 * worth of bytes: chaining saves doorbells for small requests, while large ones would
 * only queue up behind each other on one channel with others idle.
 */
#include "core/batch.h"
#include "core/cut.h"

struct batch {
	struct weir_wr *first;
	struct weir_wr **tail;
	uint16_t count;
	uint64_t bytes;
};

static void batch_append(struct batch *b, struct weir_wr *wr)
{
	*b->tail = wr;
	b->tail = &wr->next;
	b->count++;
	b->bytes += wr->length;
}

/* Turns the next part of the first of @ready into a WR, which must be free, on @channel. */
static struct weir_wr *wr_make(struct weir_engine *e, struct weir_list *ready, uint16_t channel,
			       uint32_t length)
{
	struct weir_req *req = weir_backlog_first(ready);
	struct weir_wr *wr = e->free_wrs;

	e->free_wrs = wr->next;
	weir_cut(wr, req, length);
	wr->channel = channel;
	e->channels.channel[channel].in_flight++;
	if (req->posted == req->length) {
		weir_list_del(&req->link);
		req->state = WEIR_REQ_FLIGHT;
	}
	return wr;
}

/*
 * Posts from @ready on @channel what fits. Returns -EAGAIN when the window refused the
 * very first WR, and the engine stands in line; 0 otherwise. Who got something loses its
 * turn, and stands in line again, at its end, when it asks for more.
 */
static int batch_fill(struct weir_engine *e, struct batch *b, struct weir_list *ready,
		      uint16_t channel)
{
	uint32_t room = weir_channels_room(&e->channels, channel);
	int rc = 0;

	while (!weir_list_is_empty(ready) && e->free_wrs && room-- && b->count < WEIR_BATCH_MAX &&
	       b->bytes < e->fragment_bytes) {
		uint32_t length = weir_cut_length(weir_backlog_first(ready), e->fragment_bytes);

		rc = weir_window_take(e->window, &e->waiter, length);
		if (rc)
			break;
		batch_append(b, wr_make(e, ready, channel, length));
	}
	return b->count ? 0 : rc;
}

bool weir_batch_next(struct weir_engine *e, struct weir_action *out)
{
	struct batch b = { .tail = &b.first };
	uint16_t channel = 0;
	int rc = 0;

	if (!weir_list_is_empty(&e->backlog.messages))
		rc = batch_fill(e, &b, &e->backlog.messages, channel);
	if (!rc && !b.count && !weir_list_is_empty(&e->backlog.ready)) {
		channel = weir_channels_pick(&e->channels);
		if (channel != WEIR_CHANNEL_NONE)
			rc = batch_fill(e, &b, &e->backlog.ready, channel);
	}
	if (!rc)
		weir_window_leave(&e->waiter);
	if (!b.count)
		return false;
	out->type = WEIR_ACTION_POST;
	out->wr = b.first;
	out->channel = channel;
	out->count = b.count;
	return true;
}
