/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests: the public calls, their order, their pieces, and their completions. */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/base/yield.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/request.h"

#define PIECES_PER_TURN 256u /* begun in one go, so that a long discard does not hold the lock */

char weir_volume_zeroes[WEIR_VOLUME_UNIT_PAGES][WEIR_VOLUME_PAGE_BYTES];

/* A flush ends when it is the oldest. */
static void finish(struct weir_volume_request *r)
{
	struct weir_volume *v = r->volume;

	weir_list_del(&r->pending);
	weir_span_end(r->span, r->status);
	if (r->op == WEIR_VOLUME_REPAIR) {
		weir_volume_coded_repair_ended(r);
		return;
	}
	if (!r->waiter) {
		weir_inbox_push(&v->done, &r->event.node);
		return;
	}
	r->waiter->status = r->status;
	__atomic_store_n(&r->waiter->state, 1, __ATOMIC_SEQ_CST);
	weir_futex_wake(&r->waiter->state, 1);
	free(r->edge);
	free(r);
}

static void finish_flushes(struct weir_volume *v)
{
	while (!weir_list_is_empty(&v->pending)) {
		struct weir_volume_request *r =
			weir_list_entry(v->pending.next, struct weir_volume_request, pending);

		if (r->op != WEIR_VOLUME_FLUSH)
			return;
		finish(r);
	}
}

static void activate(struct weir_volume_request *r)
{
	if (weir_list_is_empty(&r->active))
		weir_list_add_tail(&r->volume->active, &r->active);
}

static void end_request(struct weir_volume_request *r)
{
	struct weir_volume *v = r->volume;
	struct weir_order_node *ready = weir_order_remove(&v->order, &r->order);

	for (; ready; ready = ready->next_ready)
		activate(weir_list_entry(ready, struct weir_volume_request, order));
	finish(r);
	finish_flushes(v);
}

void weir_volume_request_admit(struct weir_volume_request *r)
{
	struct weir_volume *v = r->volume;
	uint64_t unit = v->coded ? v->stripe.unit : 1, first, end; /* a stripe is used as a whole */

	weir_list_add_tail(&v->pending, &r->pending);
	if (r->op == WEIR_VOLUME_FLUSH) {
		finish_flushes(v);
		return;
	}
	first = r->first / unit * unit;
	end = (r->end + unit - 1) / unit * unit;
	weir_order_add(&v->order, &r->order, first, end - first, r->op != WEIR_VOLUME_READ);
	if (!r->order.blockers)
		activate(r);
}

/* The length of the next piece. A discard of copies does not mix edges with other pages. */
static uint32_t piece_pages(const struct weir_volume_request *r, uint32_t pages_max)
{
	uint64_t pages = r->end - r->next;

	if (pages > pages_max)
		pages = pages_max;
	if (r->op != WEIR_VOLUME_DISCARD || pages == 1 || r->volume->coded)
		return (uint32_t)pages;
	if (weir_volume_is_edge(r, r->next))
		return 1;
	return (uint32_t)pages - weir_volume_is_edge(r, r->next + pages - 1);
}

static void begin_piece(struct weir_volume_request *r)
{
	struct weir_volume *v = r->volume;
	struct weir_volume_piece *piece =
		weir_list_entry(r->unused.next, struct weir_volume_piece, waiting);
	struct weir_stripe_place place = weir_stripe_at(&v->stripe, r->next);

	weir_list_del(&piece->waiting);
	piece->first = r->next;
	piece->extent = place.extent;
	piece->page = place.page;
	piece->pages = piece_pages(r, place.pages);
	piece->give_up_ns = 0;
	r->next += piece->pages;
	r->busy++;
	weir_volume_piece_begin(piece);
}

void weir_volume_request_advance(struct weir_volume_request *r)
{
	for (uint32_t i = 0; r->next < r->end && !weir_list_is_empty(&r->unused); i++) {
		if (i == PIECES_PER_TURN) {
			activate(r);
			return;
		}
		begin_piece(r);
	}
	if (r->next == r->end && !r->busy) {
		weir_list_del(&r->active);
		end_request(r);
	}
}

/* After a failure no further piece begins. */
void weir_volume_request_piece_ended(struct weir_volume_piece *piece, int status)
{
	struct weir_volume_request *r = piece->request;

	if (status && !r->status) {
		r->status = status;
		r->next = r->end;
	}
	r->busy--;
	weir_list_add_tail(&r->unused, &piece->waiting);
	activate(r);
}

/* The callbacks run in the order of completion, as the inbox has it. */
bool weir_volume_requests_dispatch(struct weir_volume *v, unsigned int rounds)
{
	while (!weir_inbox_is_empty(&v->done)) {
		struct weir_inbox_node *node;

		if (!rounds--)
			return false;
		if (!weir_mutex_trylock(&v->dispatching))
			return true; /* its holder looks again */
		node = weir_inbox_take(&v->done);
		while (node) {
			struct weir_volume_request *r =
				container_of(node, struct weir_volume_request, event.node);

			node = node->next;
			r->done(r->arg, r->status);
			free(r->edge);
			free(r);
		}
		weir_mutex_unlock(&v->dispatching);
	}
	return true;
}

static uint32_t pieces_of(const struct weir_volume *v, uint64_t pages)
{
	/* A range of n units may touch n + 1, and a discard cuts off two edges. */
	uint64_t pieces = pages / v->stripe.unit + 3;

	if (pieces > pages)
		pieces = pages;
	return pieces < WEIR_VOLUME_PIECES_MAX ? (uint32_t)pieces : WEIR_VOLUME_PIECES_MAX;
}

static bool find_edges(struct weir_volume_request *r)
{
	bool has_first = r->offset % WEIR_VOLUME_PAGE_BYTES;
	bool has_last = (r->offset + r->length) % WEIR_VOLUME_PAGE_BYTES;

	r->has_first = has_first || (r->end - r->first == 1 && has_last);
	r->has_last = has_last && r->end - r->first > 1;
	if (!r->has_first && !r->has_last)
		return true;
	r->edge = malloc(2 * sizeof(*r->edge));
	return r->edge;
}

void weir_volume_request_init_pieces(struct weir_volume_request *r, uint32_t count)
{
	weir_list_init(&r->active);
	weir_list_init(&r->unused);
	for (uint32_t i = 0; i < count; i++) {
		struct weir_volume_piece *piece = &r->pieces[i];

		piece->event.kind = WEIR_VOLUME_EVENT_PIECE;
		piece->request = r;
		weir_list_add_tail(&r->unused, &piece->waiting);
		for (uint8_t slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++)
			piece->subio[slot] = (struct weir_volume_subio){ piece, slot };
	}
}

static void begin_span(struct weir_volume_request *r)
{
	static const char *const names[] = {
		[WEIR_VOLUME_READ] = "volume read",
		[WEIR_VOLUME_WRITE] = "volume write",
		[WEIR_VOLUME_DISCARD] = "volume discard",
		[WEIR_VOLUME_FLUSH] = "volume flush",
	};

	r->span = weir_span_begin(names[r->op], WEIR_SPAN_INTERNAL);
	if (!r->span)
		return;
	weir_span_number(r->span, "weir.offset", r->offset);
	weir_span_number(r->span, "weir.bytes", r->length);
	if (r->volume->options.volume)
		weir_span_text(r->span, "weir.volume", r->volume->options.volume);
}

/* Return: 0, and the request is under way; or an errno. */
static int submit(struct weir_volume *v, const struct weir_volume_request *given)
{
	uint64_t end = given->offset + given->length;
	uint64_t first = given->offset / WEIR_VOLUME_PAGE_BYTES;
	uint64_t last = (end + WEIR_VOLUME_PAGE_BYTES - 1) / WEIR_VOLUME_PAGE_BYTES;
	uint32_t count = given->op == WEIR_VOLUME_FLUSH ? 0 : pieces_of(v, last - first);
	struct weir_volume_request *r;

	if (given->op != WEIR_VOLUME_FLUSH && (!given->length || given->offset > v->bytes ||
					       given->length > v->bytes - given->offset))
		return -EINVAL;
	r = calloc(1, sizeof(*r) + count * sizeof(r->pieces[0]));
	if (!r)
		return -ENOMEM;
	*r = *given;
	r->volume = v;
	r->first = r->next = first;
	r->end = last;
	if (count && !find_edges(r)) {
		free(r);
		return -ENOMEM;
	}
	weir_volume_request_init_pieces(r, count);
	begin_span(r);
	weir_volume_push(v, &r->event);
	return 0;
}

/* A session that a waiting thread polls. */
struct held_session {
	struct weir_volume_target *target;
	struct weir_session *session;
};

/* Keeps the donors' sessions from being closed. Return: how many there are. */
static unsigned int hold_sessions(struct weir_volume *v, struct held_session *held)
{
	unsigned int count = 0;

	weir_volume_lock(v);
	for (unsigned int i = 0; i < v->nr_targets; i++) {
		if (!v->targets[i].session)
			continue;
		v->targets[i].pollers++;
		held[count++] = (struct held_session){ &v->targets[i], v->targets[i].session };
	}
	weir_volume_unlock(v);
	return count;
}

static void release_sessions(struct weir_volume *v, const struct held_session *held,
			     unsigned int count)
{
	weir_volume_lock(v);
	for (unsigned int i = 0; i < count; i++)
		held[i].target->pollers--;
	weir_volume_unlock(v);
}

/*
 * A waiting thread polls the sessions for as long as a wake-up would cost, as the blocking calls of
 * a session do. Then it sleeps.
 */
static int wait_for(struct weir_volume *v, struct weir_volume_waiter *waiter)
{
	struct held_session held[WEIR_EXTENTS_DONORS_MAX];
	uint64_t until_ns = weir_now_ns() + WEIR_AWAKE_NS, now_ns = 0;
	unsigned int count = hold_sessions(v, held);

	while (!__atomic_load_n(&waiter->state, __ATOMIC_SEQ_CST) && now_ns < until_ns) {
		int events = 0;

		for (unsigned int i = 0; i < count; i++)
			events += weir_session_process(held[i].session);
		if (events)
			now_ns = weir_now_ns();
		else
			weir_yield(&now_ns);
	}
	release_sessions(v, held, count);
	while (!__atomic_load_n(&waiter->state, __ATOMIC_SEQ_CST))
		weir_futex_wait(&waiter->state, 0, UINT64_MAX);
	return waiter->status;
}

static int call(struct weir_volume *v, enum weir_volume_op op, uint64_t offset, const void *buf,
		uint64_t length, weir_done_fn *done, void *arg)
{
	return submit(v, &(struct weir_volume_request){ .op = op,
							.buf = (char *)buf, /* a write reads it */
							.offset = offset,
							.length = length,
							.done = done,
							.arg = arg });
}

static int call_and_wait(struct weir_volume *v, enum weir_volume_op op, uint64_t offset,
			 const void *buf, uint64_t length)
{
	struct weir_volume_waiter waiter = { 0 };
	int rc = submit(v, &(struct weir_volume_request){ .op = op,
							  .buf = (char *)buf,
							  .offset = offset,
							  .length = length,
							  .waiter = &waiter });

	return rc ? rc : wait_for(v, &waiter);
}

int weir_volume_read_async(struct weir_volume *v, uint64_t offset, void *buf, size_t length,
			   weir_done_fn *done, void *arg)
{
	return call(v, WEIR_VOLUME_READ, offset, buf, length, done, arg);
}

int weir_volume_write_async(struct weir_volume *v, uint64_t offset, const void *buf, size_t length,
			    weir_done_fn *done, void *arg)
{
	return call(v, WEIR_VOLUME_WRITE, offset, buf, length, done, arg);
}

int weir_volume_discard_async(struct weir_volume *v, uint64_t offset, uint64_t length,
			      weir_done_fn *done, void *arg)
{
	return call(v, WEIR_VOLUME_DISCARD, offset, NULL, length, done, arg);
}

int weir_volume_flush_async(struct weir_volume *v, weir_done_fn *done, void *arg)
{
	return call(v, WEIR_VOLUME_FLUSH, 0, NULL, 0, done, arg);
}

int weir_volume_read(struct weir_volume *v, uint64_t offset, void *buf, size_t length)
{
	return call_and_wait(v, WEIR_VOLUME_READ, offset, buf, length);
}

int weir_volume_write(struct weir_volume *v, uint64_t offset, const void *buf, size_t length)
{
	return call_and_wait(v, WEIR_VOLUME_WRITE, offset, buf, length);
}

int weir_volume_discard(struct weir_volume *v, uint64_t offset, uint64_t length)
{
	return call_and_wait(v, WEIR_VOLUME_DISCARD, offset, NULL, length);
}

int weir_volume_flush(struct weir_volume *v)
{
	return call_and_wait(v, WEIR_VOLUME_FLUSH, 0, NULL, 0);
}
