/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/exchange/memory.h"
#include "lib/exchange/post.h"
#include "lib/exchange/wait.h"

#define SEEN UINT16_MAX /* flags: already seen in this commit */

/* Slots that can be acquired now: limited by free slots and by send queue room. */
static uint32_t free_slots(const struct weir_exchange *x)
{
	uint32_t under_way = (uint32_t)weir_exchange_unconfirmed(x) + x->nr_acquired;
	uint32_t left = under_way < x->send_max ? x->send_max - under_way : 0;

	return x->out.free < left ? x->out.free : left;
}

static bool is_ready(const struct weir_exchange *x)
{
	return free_slots(x);
}

static bool is_flushed(const struct weir_exchange *x)
{
	return !weir_exchange_unconfirmed(x);
}

/* Immediate mode: a peer that has acknowledged the end may leave before all writes complete. */
static bool is_ended(const struct weir_exchange *x)
{
	if (weir_exchange_is_imm(x))
		return x->sending == WEIR_EXCHANGE_ENDED;
	return is_flushed(x) && !weir_slot_bitmap_tx_is_full(&x->out, x->end_slot);
}

/*
 * An end that finishes takes no more slots, so it acknowledges the peer's end slot itself; the
 * peer would wait otherwise. In bitmap mode it does so once its own end slot is visible: the
 * bitmap read that shows our acknowledgement to the peer shows our end slot, too.
 */
static bool is_to_hear_end(const struct weir_exchange *x)
{
	return weir_exchange_end_is_next(x) && (weir_exchange_is_imm(x) || is_flushed(x));
}

static bool is_ended_or_to_hear(const struct weir_exchange *x)
{
	return is_ended(x) || is_to_hear_end(x);
}

static struct weir_exchange_slot acquire(struct weir_exchange *x)
{
	uint32_t number = (uint32_t)weir_slot_bitmap_tx_acquire(&x->out);

	x->nr_acquired++;
	if (!free_slots(x))
		weir_exchange_set_starved(x); /* for the next caller */
	return (struct weir_exchange_slot){
		.data = x->pool.user + number * x->pool.stride,
		.length = x->options.slot_bytes,
		.number = number,
		.last = true,
	};
}

static int wait_room(struct weir_exchange *x, uint64_t timeout_ns)
{
	if (free_slots(x))
		return x->status;
	return weir_exchange_wait(x, is_ready, WEIR_EXCHANGE_ROOM, timeout_ns);
}

int weir_exchange_acquire(struct weir_exchange *x, struct weir_exchange_slot *slots,
			  unsigned int max, uint64_t timeout_ns)
{
	unsigned int n, most;
	int rc;

	if (!max || x->sending != WEIR_EXCHANGE_SENDING)
		return -EINVAL;
	rc = wait_room(x, timeout_ns);
	if (rc)
		return rc;
	most = free_slots(x) < max ? free_slots(x) : max;
	for (n = 0; n < most; n++)
		slots[n] = acquire(x);
	return (int)n;
}

static int check_slot(const struct weir_exchange *x, const struct weir_exchange_slot *slot)
{
	if (!weir_slot_bitmap_tx_is_held(&x->out, slot->number) ||
	    weir_exchange_slot_header(&x->pool, slot->number)->flags == SEEN)
		return -EINVAL;
	if (slot->length > x->options.slot_bytes || (x->peer.is_unordered && !slot->last))
		return -EMSGSIZE;
	return 0;
}

/* Checks all slots before any is sent. SEEN marks find duplicates. */
static int check_slots(const struct weir_exchange *x, const struct weir_exchange_slot *slots,
		       unsigned int count)
{
	unsigned int n;
	int rc = 0;

	for (n = 0; n < count; n++) {
		rc = check_slot(x, &slots[n]);
		if (rc)
			break;
		weir_exchange_slot_header(&x->pool, slots[n].number)->flags = SEEN;
	}
	while (n--)
		weir_exchange_slot_header(&x->pool, slots[n].number)->flags = 0;
	return rc ? rc : x->status;
}

/* Takes completions only when they may tell something. */
static int post_slots(struct weir_exchange *x, const struct weir_exchange_slot *slots,
		      unsigned int count, unsigned int flags)
{
	int rc = weir_exchange_stage(x, slots, count);
	unsigned int i;

	if (rc)
		return rc;
	for (i = 0; i < count; i++)
		weir_exchange_slot_header(&x->pool, slots[i].number)->flags =
			(uint16_t)(flags | (slots[i].last ? WIRE_EXCHANGE_SLOT_LAST : 0));
	x->is_open_message = !slots[count - 1].last;
	x->slot_poll.news.gap_ns = 0; /* the next arrival may be the answer */
	rc = weir_exchange_post_slots(x, slots, count);
	if (!rc && (x->slot_poll.is_reading || x->out.free < x->out.slots / 2))
		rc = weir_exchange_completion_poll(x);
	return rc;
}

int weir_exchange_commit(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			 unsigned int count)
{
	int rc = check_slots(x, slots, count);

	return rc || !count ? rc : post_slots(x, slots, count, 0);
}

int weir_exchange_abandon(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!weir_slot_bitmap_tx_is_held(&x->out, slots[i].number))
			return -EINVAL;
		weir_slot_bitmap_tx_abandon(&x->out, slots[i].number);
		x->nr_acquired--;
		x->abandoned++;
	}
	return 0;
}

/* Puts into as many slots as are free, at most a chain. */
static int put_some(struct weir_exchange *x, const char *data, size_t length, size_t *done)
{
	struct weir_exchange_slot slots[WEIR_EXCHANGE_CHAIN];
	unsigned int n = 0, most = free_slots(x);
	int rc = 0;

	if (most > WEIR_EXCHANGE_CHAIN)
		most = WEIR_EXCHANGE_CHAIN;
	do {
		slots[n] = acquire(x);
		if (slots[n].length > length - *done)
			slots[n].length = length - *done;
		if (slots[n].length)
			rc = weir_exchange_copy(x, slots[n].data, data + *done, slots[n].length);
		*done += slots[n].length;
		slots[n].last = *done == length;
	} while (!rc && ++n < most && *done < length);
	return rc ? rc : post_slots(x, slots, n, 0);
}

int weir_exchange_put(struct weir_exchange *x, const void *data, size_t length, uint64_t timeout_ns,
		      size_t *done)
{
	uint64_t deadline_ns = weir_deadline_ns(timeout_ns);
	size_t put = 0;
	int rc = 0;

	if (x->sending != WEIR_EXCHANGE_SENDING || (!done && timeout_ns != WEIR_EXCHANGE_FOREVER))
		rc = -EINVAL;
	if (!rc && x->peer.is_unordered && length > x->options.slot_bytes)
		rc = -EMSGSIZE;
	while (!rc) {
		rc = wait_room(x, timeout_ns);
		if (!rc)
			rc = put_some(x, data, length, &put);
		if (put == length)
			break;
		timeout_ns = weir_left_ns(deadline_ns);
	}
	if (done)
		*done = put;
	return rc;
}

int weir_exchange_flush(struct weir_exchange *x, uint64_t timeout_ns)
{
	if (x->status)
		return x->status;
	return weir_exchange_wait(x, is_flushed, WEIR_EXCHANGE_ROOM, timeout_ns);
}

static int put_end(struct weir_exchange *x, uint64_t timeout_ns)
{
	struct weir_exchange_slot slot;
	int rc = x->is_open_message ? -EINVAL : wait_room(x, timeout_ns);

	if (rc)
		return rc;
	slot = acquire(x);
	slot.length = 0;
	x->end_slot = slot.number;
	x->sending = WEIR_EXCHANGE_ENDING;
	/*
	 * A doorbell for room alone does not ask for the peer's end. So forget the doorbell: the
	 * next bitmap read, after our end slot is visible, rings again and finds the peer's end
	 * slot.
	 */
	x->slot_poll.requested = 0;
	return post_slots(x, &slot, 1, WIRE_EXCHANGE_SLOT_END);
}

static int wait_ended(struct weir_exchange *x, uint64_t deadline_ns)
{
	int rc;

	do {
		if (is_to_hear_end(x)) {
			weir_exchange_set_starved(x); /* a starved taker must retry */
			weir_exchange_take_end(x);
		}
		rc = weir_exchange_wait(x, is_ended_or_to_hear, WEIR_EXCHANGE_ROOM,
					weir_left_ns(deadline_ns));
	} while (!rc && is_to_hear_end(x));
	return rc;
}

int weir_exchange_finish(struct weir_exchange *x, uint64_t timeout_ns)
{
	uint64_t deadline_ns = weir_deadline_ns(timeout_ns);
	int rc = x->status;

	if (!rc && x->sending == WEIR_EXCHANGE_SENDING)
		rc = put_end(x, timeout_ns);
	if (!rc)
		rc = wait_ended(x, deadline_ns);
	/* The peer may take everything and leave before we see that. */
	return (rc == -ECONNRESET || rc == -ENOTCONN) && x->sending == WEIR_EXCHANGE_ENDED ? 0 :
											     rc;
}
