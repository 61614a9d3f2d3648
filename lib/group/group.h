/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside a group: what one operation moves between this member and each other one.
 *
 * Messages go through the public calls on exchanges; what the peer has found and has taken, and
 * whether it is there, is asked of the exchange itself. What has come is taken at once and held
 * until its turn, so that an exchange with nothing to do has nothing to tell either.
 */
#ifndef WEIR_LIB_GROUP_H
#define WEIR_LIB_GROUP_H

#include <poll.h>
#include <weir/group.h>

/**
 * struct weir_group_peer - another member, and this member's part with it
 * @x: the exchange; NULL: this member itself
 * @held: slots that were taken, from @held_first on @held_count of them, going round
 * @held_max: as many as the peer has
 * @out, @out_left: what is to be put; @out_owed: until its end has been
 * @flush_owed: it has not all arrived
 * @in, @in_left: where what comes goes; @in_owed: until its end has come
 * @finish_owed: it has not taken all that it was sent
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
 * struct weir_group - a member's view
 * @member, @size: which of how many
 * @peers: @size of them
 * @status: 0, or what ended the group; @failed: who
 * @add, @add_arg: what comes is added instead of copied, of one member after the other
 * @turn: whose turn that is
 * @mine, @sum, @part: this member's own part of the sum, where that goes, and their length
 * @fds: to wait with; @size of them
 * @inquired_ns: when those who are owed were last asked whether they are there, or the operation
 *	began
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

/* Return: a group without exchanges, or NULL: out of memory. */
struct weir_group *weir_group_new(unsigned int member, unsigned int size);

/* The exchange with @peer is the group's from now on. Return: 0; -ENOMEM, and it is not. */
int weir_group_add_peer(struct weir_group *group, unsigned int peer, struct weir_exchange *x);

/* Whether an operation has anything left to do with @peer. */
static inline bool weir_group_is_owed(const struct weir_group_peer *peer)
{
	return peer->out_owed || peer->flush_owed || peer->in_owed || peer->finish_owed;
}

/* Copies the user's memory, which may be a GPU's if the slots are. Return: 0; -EIO. */
int weir_group_copy(struct weir_group *group, void *to, const void *from, size_t length);

/**
 * weir_group_step() - what can be done at once
 * @moved: set if anything was
 *
 * Return: 0 the operation is over; -EAGAIN not yet; what ended the group.
 */
int weir_group_step(struct weir_group *group, bool *moved);

#endif
