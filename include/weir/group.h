/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups: programs that send the same to all, and to one what all have (HiPower, section 4.2).
 *
 * A group has members 0 to size - 1, with an exchange between each two. Its operations are those of
 * ring and parameter server: broadcast, gather, reduce-scatter and all-gather. Every member calls
 * the same operations with the same lengths in the same order. One is begun, and then waited for:
 *
 *	weir_group_broadcast(g, 0, data, length);
 *	status = weir_group_wait(g, WEIR_EXCHANGE_FOREVER);
 *
 * until when its memory is the group's. It has succeeded when this member has all that it is to
 * receive, and all that it sends is where the others find it, as long as the group lives: before
 * it is closed, weir_group_finish(). Nobody waits for those that he has nothing to do with;
 * weir_group_barrier() waits for all.
 *
 * A slow member holds up those that send to it once its slots are full, and those that receive from
 * it. A wait that is over ends nothing: wait again, or close. A dead member, or one that sends
 * another length, ends the group at each member that has to do with it: weir_group_wait() says so,
 * weir_group_failed() says who it was, and whoever then closes his group ends it for the rest.
 *
 * Where its exchanges have their slots in a GPU's memory, so may operations have theirs, or in the
 * host's; -EIO says that the CUDA driver failed to copy.
 *
 * Context of all: one thread at a time for a group, also to close it.
 */
#ifndef WEIR_GROUP_H
#define WEIR_GROUP_H

#include <weir/exchange.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_group;

#define WEIR_GROUP_SIZE_MAX 256

/**
 * weir_group_lead() - be member 0, whom the others look for
 * @listener: where they do; stays the caller's. Unless its options say how many exchanges share its
 *	memory, those of the group do
 * @size: members, 1 to WEIR_GROUP_SIZE_MAX
 * @timeout_ns: for all to come
 * @group: receives the group; end it with weir_group_close()
 * @error: may be NULL
 *
 * Return: 0; -EINVAL; -EEXIST two say that they are one member; -EPROTO one has another size, or
 * talks nonsense; -ETIMEDOUT not all have come; -ECANCELED the options' goes_on has said so, or the
 * listener was closed; -ECONNRESET one has left again; or as weir_exchange_accept().
 */
int weir_group_lead(struct weir_exchange_listener *listener, unsigned int size, uint64_t timeout_ns,
		    struct weir_group **group, struct weir_error *error);

/**
 * weir_group_join() - be another member
 * @address: where member 0 listens: "host:port"
 * @here: of this member, where the others reach it, without a port; NULL: 127.0.0.1
 * @member: which one this is, 1 to size - 1
 * @size, @group, @error: as above
 * @options: of each exchange, as member 0's listener has them; NULL for defaults; its timeout is
 *	for the whole call
 *
 * Return: as weir_group_lead(), weir_exchange_listen() and weir_exchange_connect().
 */
int weir_group_join(const char *address, const char *here, unsigned int member, unsigned int size,
		    const struct weir_exchange_options *options, struct weir_group **group,
		    struct weir_error *error);

unsigned int weir_group_member(const struct weir_group *group);
unsigned int weir_group_size(const struct weir_group *group);

/**
 * weir_group_broadcast() - begin: what one member has goes to all
 * @from: the member
 * @data: there read, elsewhere written; *kept until* it is over
 * @length: bytes
 *
 * Return: 0; -EBUSY the operation before is not over; -EINVAL; -ECONNRESET the group has ended.
 */
int weir_group_broadcast(struct weir_group *group, unsigned int from, void *data, size_t length);

/**
 * weir_group_gather() - begin: what all have goes to one member
 * @to: the member
 * @data: what this one has; *kept until* it is over
 * @length: bytes of it
 * @all: at @to: receives @length bytes of each member, in their order; elsewhere ignored. May
 *	have @data in its place
 *
 * Return: as weir_group_broadcast().
 */
int weir_group_gather(struct weir_group *group, unsigned int to, const void *data, size_t length,
		      void *all);

/* As weir_group_gather(), at every member: what all have goes to all. */
int weir_group_all_gather(struct weir_group *group, const void *data, size_t length, void *all);

/**
 * typedef weir_group_add_fn - puts two pieces together
 * @into: the result so far, and then the new one
 * @from: what is added to it: in a slot, so in a GPU's memory if those are
 * @length: bytes, of whole slots but for the last piece: so slots are of whole elements
 */
typedef void weir_group_add_fn(void *into, const void *from, size_t length, void *arg);

/**
 * weir_group_reduce_scatter() - begin: each member receives the sum of one part of what all have
 * @data: parts for members 0 to size - 1, one after the other; *kept until* it is over
 * @length: bytes of a part
 * @sum: receives, of this member's part, that of member 0, then member 1's added, and so on: in
 *	this order, so that the result does not depend on who came first. Not within @data
 * @add: runs in weir_group_wait()
 * @arg: for it
 *
 * Return: as weir_group_broadcast().
 */
int weir_group_reduce_scatter(struct weir_group *group, const void *data, size_t length, void *sum,
			      weir_group_add_fn *add, void *arg);

/**
 * weir_group_barrier() - begin: wait until all members have come here
 *
 * Return: as weir_group_broadcast().
 */
int weir_group_barrier(struct weir_group *group);

/**
 * weir_group_finish() - begin: wait until the others have taken all that this member sent
 *
 * Then it can be closed, and nobody misses anything. Who is gone is not waited for.
 *
 * Return: as weir_group_broadcast().
 */
int weir_group_finish(struct weir_group *group);

/**
 * weir_group_wait() - do what was begun
 * @timeout_ns: 0 does not wait; WEIR_EXCHANGE_FOREVER has no end
 *
 * Return: 0: it is over, or nothing was begun; -EAGAIN (timeout 0) or -ETIMEDOUT it goes on at the
 * next call; -ECONNRESET a member is gone; -EPROTO one sent another length than it was to. After
 * the last two the group has ended, and its memory is the caller's again.
 */
int weir_group_wait(struct weir_group *group, uint64_t timeout_ns);

/* The member that ended the group, or -1. */
int weir_group_failed(const struct weir_group *group);

/* The exchange with @member, for its information; NULL: it is this one. The group's. */
const struct weir_exchange *weir_group_exchange(const struct weir_group *group,
						unsigned int member);

/* Ends the group and its exchanges. Waits for nothing: see weir_group_finish(). NULL is nothing. */
void weir_group_close(struct weir_group *group);

#ifdef __cplusplus
}
#endif
#endif
