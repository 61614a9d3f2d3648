/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups: collective operations between programs (HiPower, section 4.2).
 *
 * A group has members 0 to size - 1, with an exchange between each two. Its operations are those of
 * ring and parameter server: broadcast, gather, reduce-scatter and all-gather. Every member calls
 * the same operations with the same lengths in the same order. A member begins an operation, then
 * waits for its end:
 *
 *	weir_group_broadcast(g, 0, data, length);
 *	status = weir_group_wait(g, WEIR_EXCHANGE_FOREVER);
 *
 * Until the wait returns, the operation's memory belongs to the group. An operation succeeds at a
 * member when the member has received all its data and its own data is where the receivers find it
 * while the group lives. A member therefore calls weir_group_finish() before it closes the group. A
 * member waits only for its senders and receivers; weir_group_barrier() waits for all members.
 *
 * A slow member delays members that send to it once its slots are full, and members that receive
 * from it. A timeout of a wait ends nothing: the caller waits again, or closes the group. A member
 * that dies or sends a wrong length ends the group at each member that exchanges data with it.
 * There weir_group_wait() returns the error and weir_group_failed() names the member. When those
 * members close the group, it ends for the rest.
 *
 * If the exchanges' slots are in GPU memory, the memory of an operation may be in the GPU or the
 * host. -EIO means that the CUDA driver failed to copy.
 *
 * Context of all calls: one thread at a time per group, also for the close.
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
 * weir_group_lead() - create a group as member 0
 * @listener: where the other members connect; stays the caller's. Unless its options set a number
 *	of exchanges, the group's exchanges share its memory
 * @size: members, 1 to WEIR_GROUP_SIZE_MAX
 * @timeout_ns: how long to wait for all members
 * @group: receives the group
 * @error: may be NULL
 *
 * The caller owes a weir_group_close().
 *
 * Return: 0, or
 *	-EINVAL      an argument is out of range;
 *	-EEXIST      two peers claim the same member number;
 *	-EPROTO      a peer gives another size, or an invalid message;
 *	-ETIMEDOUT   some members did not connect in time;
 *	-ECANCELED   goes_on returned false, or the listener was closed;
 *	-ECONNRESET  a member has disconnected;
 *	or an error of weir_exchange_accept().
 */
int weir_group_lead(struct weir_exchange_listener *listener, unsigned int size, uint64_t timeout_ns,
		    struct weir_group **group, struct weir_error *error);

/**
 * weir_group_join() - join a group as another member
 * @address: where member 0 listens: "host:port"
 * @here: this member's own address for the other members, without a port; NULL: 127.0.0.1
 * @member: this member's number, 1 to size - 1
 * @size: members, 1 to WEIR_GROUP_SIZE_MAX
 * @options: for each exchange, the same as for member 0's listener; NULL for defaults; its timeout
 *	covers the whole call
 * @group: receives the group
 * @error: may be NULL
 *
 * The caller owes a weir_group_close().
 *
 * Return: as for weir_group_lead(), weir_exchange_listen() and weir_exchange_connect().
 */
int weir_group_join(const char *address, const char *here, unsigned int member, unsigned int size,
		    const struct weir_exchange_options *options, struct weir_group **group,
		    struct weir_error *error);

/* Return: this member's number, and the number of members. */
unsigned int weir_group_member(const struct weir_group *group);
unsigned int weir_group_size(const struct weir_group *group);

/**
 * weir_group_broadcast() - begin to send a member's data to all members
 * @group: the group
 * @from: the sending member
 * @data: read at @from, written at all other members; kept until the operation ends
 * @length: bytes
 *
 * Return: 0, or
 *	-EBUSY       the previous operation has not ended;
 *	-EINVAL      an argument is out of range;
 *	-ECONNRESET  the group has ended.
 */
int weir_group_broadcast(struct weir_group *group, unsigned int from, void *data, size_t length);

/**
 * weir_group_gather() - begin to send all members' data to a single member
 * @group: the group
 * @to: the receiving member
 * @data: this member's data; kept until the operation ends
 * @length: bytes of @data
 * @all: at @to: receives @length bytes of each member, in member order; may already contain @data
 *	at its place. Ignored elsewhere
 *
 * Return: as for weir_group_broadcast().
 */
int weir_group_gather(struct weir_group *group, unsigned int to, const void *data, size_t length,
		      void *all);

/* Like weir_group_gather() to every member. Return: as for weir_group_broadcast(). */
int weir_group_all_gather(struct weir_group *group, const void *data, size_t length, void *all);

/**
 * typedef weir_group_add_fn - combines two pieces
 * @into: first operand and result
 * @from: second operand, in a slot, so in GPU memory if the slots are
 * @length: bytes: whole slots, except for the last piece. A slot must hold a whole number of
 *	elements
 * @arg: from weir_group_reduce_scatter()
 */
typedef void weir_group_add_fn(void *into, const void *from, size_t length, void *arg);

/**
 * weir_group_reduce_scatter() - begin to reduce all members' data, a part at each member
 * @group: the group
 * @data: parts for members 0 to size - 1, one after the other; kept until the operation ends
 * @length: bytes of a part
 * @sum: receives the sum of this member's part; must not overlap @data. The sum starts with member
 *	0's data and adds member 1's, and so on, so the order of arrival does not affect the
 *	result
 * @add: runs in weir_group_wait()
 * @arg: passed to @add
 *
 * Return: as for weir_group_broadcast().
 */
int weir_group_reduce_scatter(struct weir_group *group, const void *data, size_t length, void *sum,
			      weir_group_add_fn *add, void *arg);

/**
 * weir_group_barrier() - begin to wait until all members have reached this call
 * @group: the group
 *
 * Return: as for weir_group_broadcast().
 */
int weir_group_barrier(struct weir_group *group);

/**
 * weir_group_finish() - begin to wait until the others have taken all data of this member
 * @group: the group
 *
 * After the operation, closing the group loses no data. Members that are gone are ignored.
 *
 * Return: as for weir_group_broadcast().
 */
int weir_group_finish(struct weir_group *group);

/**
 * weir_group_wait() - carry out the operation that was begun
 * @group: the group
 * @timeout_ns: 0 does not wait; WEIR_EXCHANGE_FOREVER has no end
 *
 * After -ENOTCONN, -ECONNRESET or -EPROTO the group has ended, and the operation's memory is the
 * caller's again.
 *
 * Return: 0 (the operation has ended, or none was begun), or
 *	-EAGAIN      not yet (timeout 0): call again;
 *	-ETIMEDOUT   not in time: call again;
 *	-ENOTCONN    a member has closed its group;
 *	-ECONNRESET  a member is lost;
 *	-EPROTO      a member sent a wrong length.
 */
int weir_group_wait(struct weir_group *group, uint64_t timeout_ns);

/* Return: the member that ended the group, or -1. */
int weir_group_failed(const struct weir_group *group);

/*
 * Return: the exchange with @member, for weir_exchange_info(), owned by the group; NULL for this
 * member.
 */
const struct weir_exchange *weir_group_exchange(const struct weir_group *group,
						unsigned int member);

/* Ends the group and its exchanges. Waits for nothing: see weir_group_finish(). NULL is allowed. */
void weir_group_close(struct weir_group *group);

#ifdef __cplusplus
}
#endif
#endif
