/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/exchange/memory.h"
#include "lib/exchange/post.h"
#include "lib/exchange/wait.h"
#include "lib/group/group.h"

enum { RELEASE_MAX = 16 };

/* The slots may include some of the next operation, if the peer is ahead. */
static int take_arrived(struct weir_group_peer *peer, bool *moved)
{
	unsigned int end, room;
	int n;

	while (peer->held_count < peer->held_max) {
		end = (peer->held_first + peer->held_count) % peer->held_max;
		room = end < peer->held_first ? peer->held_first - end : peer->held_max - end;
		n = weir_exchange_take(peer->x, &peer->held[end], room, 0);
		if (n == -EAGAIN)
			return 0;
		if (n <= 0)
			return n ? n : -ECONNRESET;
		peer->held_count += (unsigned int)n;
		*moved = true;
	}
	return 0;
}

static void give_back(struct weir_group_peer *peer, unsigned int count)
{
	unsigned int run = peer->held_max - peer->held_first;

	if (run > count)
		run = count;
	weir_exchange_release(peer->x, &peer->held[peer->held_first], run);
	weir_exchange_release(peer->x, &peer->held[0], count - run);
	peer->held_first = (peer->held_first + count) % peer->held_max;
	peer->held_count -= count;
}

/*
 * All exchanges of a group have their slots in the same kind of memory, and user memory is of
 * that kind or the host's.
 */
int weir_group_copy(struct weir_group *group, void *to, const void *from, size_t length)
{
	unsigned int i;

	if (!length || to == from)
		return 0;
	for (i = 0; i < group->size; i++)
		if (group->peers[i].x)
			return weir_exchange_copy(group->peers[i].x, to, from, length);
	memcpy(to, from, length);
	return 0;
}

/* The first member's part is copied, the others are added. */
static int add_or_copy(struct weir_group *group, char *into, const void *from, size_t length)
{
	if (!group->add || !group->turn)
		return weir_group_copy(group, into, from, length);
	if (length)
		group->add(into, from, length, group->add_arg);
	return 0;
}

/* Return: 1 the message is complete; 0 not yet; -EPROTO wrong length; -EIO. */
static int consume_slot(struct weir_group *group, struct weir_group_peer *peer,
			const struct weir_exchange_slot *slot)
{
	int status;

	if (slot->length > peer->in_left || (slot->last && slot->length < peer->in_left))
		return -EPROTO;
	status = add_or_copy(group, peer->in, slot->data, slot->length);
	if (status)
		return status;
	peer->in += slot->length;
	peer->in_left -= slot->length;
	return slot->last;
}

static int consume_held(struct weir_group *group, struct weir_group_peer *peer, bool *moved)
{
	unsigned int count = 0;
	int status = 0;

	while (!status && peer->held_count > count) {
		status = consume_slot(group, peer,
				      &peer->held[(peer->held_first + count) % peer->held_max]);
		if (status < 0)
			return status;
		*moved = true;
		if (++count == RELEASE_MAX) {
			give_back(peer, count);
			count = 0;
		}
	}
	give_back(peer, count);
	if (status)
		peer->in_owed = false;
	return 0;
}

/*
 * Adds up parts in the order of members, ours at our turn. If copying ours fails, an exchange
 * has ended and its next use reports the error.
 */
static bool is_turn_of(struct weir_group *group, unsigned int member)
{
	while (group->add && group->turn < group->size) {
		if (group->turn == group->member)
			(void)add_or_copy(group, group->sum, group->mine, group->part);
		else if (group->peers[group->turn].in_owed)
			break;
		group->turn++;
	}
	return !group->add || group->turn == member;
}

static int receive_from(struct weir_group *group, unsigned int member, bool *moved)
{
	struct weir_group_peer *peer = &group->peers[member];
	int status;

	if (!peer->in_owed)
		return 0;
	if (is_turn_of(group, member)) {
		status = consume_held(group, peer, moved);
		if (status || !peer->in_owed)
			return status;
	}
	return take_arrived(peer, moved);
}

static int send_to_peer(struct weir_group_peer *peer, bool *moved)
{
	size_t done = 0;
	int status;

	if (peer->out_owed) {
		status = weir_exchange_put(peer->x, peer->out, peer->out_left, 0, &done);
		if (status && status != -EAGAIN)
			return status;
		if (status)
			peer->out += done, peer->out_left -= done;
		else
			peer->out_owed = false;
		*moved |= !status || done;
	}
	if (peer->out_owed || !peer->flush_owed)
		return 0;
	/* A slot with a notice will be found by the peer even if its arrival is not confirmed. */
	status = weir_slot_poll_unshown(&peer->x->out) ? weir_exchange_flush(peer->x, 0) : 0;
	if (status)
		return status == -EAGAIN ? 0 : status;
	peer->flush_owed = false;
	*moved = true;
	return 0;
}

/* A slot is free again once the peer has taken the data. */
static bool is_all_taken(const struct weir_exchange *x)
{
	return x->out.freed == x->out.committed;
}

/*
 * A peer that has left takes no more. Freed slots are returned now: the peer waits for them, and
 * no later operation would return them.
 */
static void finish_with(struct weir_group_peer *peer, bool *moved)
{
	int status;

	if (!peer->finish_owed)
		return;
	weir_exchange_post_returns(peer->x);
	status = weir_exchange_wait(peer->x, is_all_taken, WEIR_EXCHANGE_ROOM, 0);
	if (status == -EAGAIN || (!status && peer->x->nr_returns))
		return;
	peer->finish_owed = false;
	*moved = true;
}

int weir_group_step(struct weir_group *group, bool *moved)
{
	bool is_over = true;
	unsigned int i;
	int status;

	for (i = 0; i < group->size; i++) {
		struct weir_group_peer *peer = &group->peers[i];

		if (!peer->x)
			continue;
		status = send_to_peer(peer, moved);
		if (!status)
			status = receive_from(group, i, moved);
		finish_with(peer, moved);
		if (status) {
			group->failed = (int)i;
			return status;
		}
		is_over &= !weir_group_is_owed(peer);
	}
	return is_over && is_turn_of(group, group->size) ? 0 : -EAGAIN;
}
