/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups: one hub and its members, joined by exchanges. All call the same operations in the same
 * order; each returns when this end's part is done.
 *
 * An operation waits for the slowest, up to its timeout. If one is slower than that, or gone, the
 * operation fails here, weir_group_culprit() says who it was, and the group is of no more use:
 * what the others have is unknown. So all others fail, too, when this end closes the group.
 *
 * Context of all: one thread at a time for a group.
 */
#ifndef WEIR_GROUP_H
#define WEIR_GROUP_H

#include <weir/exchange.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_group;

#define WEIR_GROUP_MAX 256 /* members, the hub included */

/* What is added up. */
enum weir_group_type { WEIR_GROUP_F32, WEIR_GROUP_F64, WEIR_GROUP_I32, WEIR_GROUP_I64 };

/**
 * weir_group_host() - be the hub: wait until all members have joined
 * @listener: where they connect; the caller's, and free for other use afterwards
 * @size: members, this end included, 1 to WEIR_GROUP_MAX
 *
 * Return: 0; -EINVAL; -ETIMEDOUT not all have come; what weir_exchange_accept() returns.
 */
int weir_group_host(struct weir_exchange_listener *listener, unsigned int size, uint64_t timeout_ns,
		    struct weir_group **group, struct weir_error *error);

/* Be a member. Return: as weir_exchange_connect(); -EPROTO no group is there. */
int weir_group_join(const char *hub, const struct weir_exchange_options *options,
		    uint64_t timeout_ns, struct weir_group **group, struct weir_error *error);

/* The hub is 0, the others are numbered as they came. */
unsigned int weir_group_rank(const struct weir_group *group);
unsigned int weir_group_size(const struct weir_group *group);

/*
 * All operations return 0; -ETIMEDOUT; -ECONNRESET; -EMSGSIZE an end has given another length;
 * -EPROTO; and after the first that failed, its error.
 */

/* The hub's @data to all. */
int weir_group_broadcast(struct weir_group *group, void *data, size_t length, uint64_t timeout_ns);

/* Everybody's @data to the hub, by rank. @all: at the hub, length times size; else NULL. */
int weir_group_gather(struct weir_group *group, const void *data, size_t length, void *all,
		      uint64_t timeout_ns);

/* To each its part of the hub's @all, by rank. */
int weir_group_scatter(struct weir_group *group, const void *all, void *data, size_t length,
		       uint64_t timeout_ns);

/* Everybody's @data to everybody. @all: length times size. */
int weir_group_all_gather(struct weir_group *group, const void *data, size_t length, void *all,
			  uint64_t timeout_ns);

/**
 * weir_group_reduce_scatter() - add everybody's numbers up, and give each a part of the sums
 * @data: @count times size numbers
 * @part: receives @count sums: those of this rank's part
 *
 * The hub adds in the order of ranks, so that the same numbers give the same sums each time.
 * -ENOMEM also.
 */
int weir_group_reduce_scatter(struct weir_group *group, const void *data, void *part, size_t count,
			      enum weir_group_type type, uint64_t timeout_ns);

/* The exchange with @rank: at the hub with a member, at a member with the hub. NULL: there is none. */
struct weir_exchange *weir_group_exchange(struct weir_group *group, unsigned int rank);

/* Whose fault the first error was; -1 there was none. */
int weir_group_culprit(const struct weir_group *group);

/*
 * Leaves. While no operation has failed it waits, for 5 s at most, until all have left that it was
 * joined to: so they have what was sent to them.
 */
void weir_group_close(struct weir_group *group);

#ifdef __cplusplus
}
#endif
#endif
