/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inside of a group: the bytes that an operation moves between this member and each other
 * member.
 *
 * Messages go through the public calls of exchanges. The group looks into an exchange to see
 * what the peer has found and taken, and whether the peer is alive. Arrived slots are taken at
 * once and held until needed, so an idle exchange has no events to report.
 */
#ifndef WEIR_LIB_GROUP_GROUP_H
#define WEIR_LIB_GROUP_GROUP_H

#include <poll.h>
#include <weir/group.h>

/**
 * struct weir_group_peer - another member
 * @x: the exchange; NULL: this member itself
 * @held: ring of taken slots: @held_count from @held_first on
 * @held_max: the peer's number of slots
 * @out, @out_left: bytes left to put; @out_owed: the message is not complete
 * @flush_owed: the message has not arrived completely
 * @in, @in_left: room left for arriving bytes; @in_owed: the message is not complete
 * @finish_owed: the peer has not taken everything
 */
struct weir_group_peer {
	struct weir_exchange *x;
	struct weir_exchange_slot *held;
	unsigned int held_first, held_count, held_max;
	const char *out;
	size_t out_left;
	bool out_owed, flush_owed;
	char *in;
	size_t in_left;
	bool in_owed;
	bool finish_owed;
};

/**
 * struct weir_group - a member's view of the group
 * @member, @size: our number, and the number of members
 * @peers: @size of them
 * @status: 0, or the error that ended the group; @failed: the member concerned
 * @add, @add_arg: reduce: called for each arriving part, in the order of members
 * @turn: reduce: the member whose part is next
 * @mine, @sum, @part: reduce: our part, the result, and their length
 * @fds: @size descriptors for poll(2)
 * @inquired_ns: last probe of silent peers, or start of the operation
 */
struct weir_group {
	unsigned int member, size;
	struct weir_group_peer *peers;
	int status, failed;
	weir_group_add_fn *add;
	void *add_arg;
	unsigned int turn;
	const void *mine;
	char *sum;
	size_t part;
	struct pollfd *fds;
	uint64_t inquired_ns;
};

/* Return: a group without exchanges; NULL: out of memory. */
struct weir_group *weir_group_new(unsigned int member, unsigned int size);

/* Gives the exchange with @peer to the group. Return: 0; -ENOMEM: the caller keeps @x. */
int weir_group_add_peer(struct weir_group *group, unsigned int peer, struct weir_exchange *x);

/* Whether the operation still has work with @peer. */
static inline bool weir_group_is_owed(const struct weir_group_peer *peer)
{
	return peer->out_owed || peer->flush_owed || peer->in_owed || peer->finish_owed;
}

/* Copies user memory, on the GPU if the slots are there. Return: 0; -EIO. */
int weir_group_copy(struct weir_group *group, void *to, const void *from, size_t length);

/**
 * weir_group_step() - do all work that needs no waiting
 * @moved: set if there was any
 *
 * Return: 0 the operation is complete; -EAGAIN not yet; or the error that ended the group.
 */
int weir_group_step(struct weir_group *group, bool *moved);

#endif
