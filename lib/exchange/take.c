/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bitmap reads find slots in any order, since a read sees the words one after another while the
 * peer flips bits. The headers tell the order.
 */
#include <errno.h>
#include <string.h>

#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/memory.h"
#include "lib/exchange/post.h"
#include "lib/exchange/wait.h"

/* Stores the slot at its place in the sequence. */
static int arrive_in_order(struct weir_exchange *x, uint32_t slot,
			   const struct wire_exchange_slot_head *head)
{
	uint32_t *place = &x->order[head->sequence % x->in.slots];

	if (head->sequence - x->next >= x->in.slots || *place)
		return -EPROTO;
	*place = slot + 1;
	return 0;
}

/* Stores the slot in order of arrival. The end slot always comes last. */
static int arrive_as_found(struct weir_exchange *x, uint32_t slot,
			   const struct wire_exchange_slot_head *head)
{
	bool is_end = head->flags & WIRE_EXCHANGE_SLOT_END;

	if (!(head->flags & WIRE_EXCHANGE_SLOT_LAST) ||
	    (x->closing && (is_end || x->found >= x->closing_sequence)))
		return -EPROTO;
	if (is_end) {
		x->closing = slot + 1;
		x->closing_sequence = head->sequence;
	} else {
		x->order[x->found++ % x->in.slots] = slot + 1;
	}
	if (x->closing && x->found == x->closing_sequence)
		x->order[x->found % x->in.slots] = x->closing;
	return 0;
}

int weir_exchange_slot_arrived(struct weir_exchange *x, uint32_t slot)
{
	struct wire_exchange_slot_head head = *weir_exchange_slot_header(&x->mirror, slot);

	if (head.length > x->peer.slot_bytes ||
	    head.flags & ~(WIRE_EXCHANGE_SLOT_LAST | WIRE_EXCHANGE_SLOT_END))
		return -EPROTO;
	x->arrivals[slot] =
		(struct weir_exchange_arrival){ head.length, head.flags, head.before, false };
	return x->options.unordered ? arrive_as_found(x, slot, &head) :
				      arrive_in_order(x, slot, &head);
}

static bool next_has_arrived(const struct weir_exchange *x)
{
	return x->order[x->next % x->in.slots];
}

static bool is_ready(const struct weir_exchange *x)
{
	return next_has_arrived(x) || weir_exchange_is_over(x);
}

static int release_slot(struct weir_exchange *x, uint32_t slot)
{
	uint32_t most = x->in.slots / 4 < WIRE_EXCHANGE_FREED_MAX ? x->in.slots / 4 :
								    WIRE_EXCHANGE_FREED_MAX;

	weir_slot_bitmap_rx_release(&x->in, slot);
	if (!weir_exchange_is_imm(x))
		return 0;
	x->back[x->nr_returns++] = slot;
	return x->nr_returns >= most ? weir_exchange_post_returns(x) : 0;
}

/* Acknowledges the end at once: the peer waits. */
static void end_stream(struct weir_exchange *x, uint32_t slot)
{
	x->is_finished = true;
	release_slot(x, slot);
	if (weir_exchange_is_imm(x))
		weir_exchange_post_returns(x);
	else
		weir_exchange_post_end_ack(x);
	x->nr_released = x->in.slots;
	weir_exchange_wake_peer(x, WEIR_EXCHANGE_ROOM);
}

bool weir_exchange_end_is_next(const struct weir_exchange *x)
{
	return next_has_arrived(x) && !x->is_finished &&
	       x->arrivals[x->order[x->next % x->in.slots] - 1].flags & WIRE_EXCHANGE_SLOT_END;
}

void weir_exchange_take_end(struct weir_exchange *x)
{
	uint32_t *place = &x->order[x->next++ % x->in.slots], slot = *place - 1;

	*place = 0;
	end_stream(x, slot);
}

static unsigned int take_arrived(struct weir_exchange *x, struct weir_exchange_slot *slots,
				 unsigned int max)
{
	unsigned int n = 0;
	uint32_t *place, slot;

	for (; n < max && next_has_arrived(x) && !x->is_finished; x->next++) {
		if (weir_exchange_end_is_next(x)) {
			weir_exchange_take_end(x);
			break;
		}
		place = &x->order[x->next % x->in.slots];
		slot = *place - 1;
		*place = 0;
		x->arrivals[slot].is_taken = true;
		slots[n++] = (struct weir_exchange_slot){
			.data = x->mirror.user + slot * x->mirror.stride,
			.length = x->arrivals[slot].length,
			.number = slot,
			.last = x->arrivals[slot].flags & WIRE_EXCHANGE_SLOT_LAST,
		};
		x->info.bytes_taken += x->arrivals[slot].length;
	}
	x->nr_taken += n;
	x->info.taken += n;
	return n;
}

int weir_exchange_take(struct weir_exchange *x, struct weir_exchange_slot *slots, unsigned int max,
		       uint64_t timeout_ns)
{
	unsigned int n;
	int rc;

	if (!max)
		return -EINVAL;
	do {
		n = take_arrived(x, slots, max);
		rc = weir_exchange_unstage(x, slots, n);
		if (rc)
			return rc;
		if (n || weir_exchange_is_over(x))
			return (int)n;
		rc = weir_exchange_wait(x, is_ready, WEIR_EXCHANGE_NEWS, timeout_ns);
	} while (!rc);
	return rc;
}

int weir_exchange_release(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count)
{
	unsigned int i;
	uint32_t slot;
	int rc = 0;

	for (i = 0; !rc && i < count; i++) {
		slot = slots[i].number;
		if (slot >= x->in.slots || !x->arrivals[slot].is_taken)
			return -EINVAL;
		x->arrivals[slot].is_taken = false;
		x->nr_taken--;
		x->nr_released++;
		rc = release_slot(x, slot);
	}
	return rc ? rc : weir_exchange_wake_peer(x, WEIR_EXCHANGE_ROOM);
}

/* Copies what fits; the length counts everything. */
static int append_slot(struct weir_exchange *x, char *data, size_t max,
		       const struct weir_exchange_slot *slot)
{
	size_t room = x->get_length < max ? max - x->get_length : 0;
	int rc = 0;

	if (room)
		rc = weir_exchange_copy(x, data + x->get_length, slot->data,
					slot->length < room ? slot->length : room);
	x->get_length += slot->length;
	return rc;
}

int weir_exchange_get(struct weir_exchange *x, void *data, size_t max, size_t *length,
		      uint64_t timeout_ns)
{
	uint64_t deadline_ns = weir_deadline_ns(timeout_ns);
	struct weir_exchange_slot slot;
	int n, rc;

	do {
		n = weir_exchange_take(x, &slot, 1, weir_left_ns(deadline_ns));
		if (n <= 0)
			return n ? n : -ENOENT;
		rc = append_slot(x, data, max, &slot);
		weir_exchange_release(x, &slot, 1);
		if (rc)
			return rc;
	} while (!slot.last);
	*length = x->get_length;
	x->get_length = 0;
	return *length > max ? -EMSGSIZE : 0;
}
