/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The coordinator: decides which donors are members of which groups. One donor of a pool runs it:
 * the one that holds the key "leader". It is not on the data path.
 *
 * The coordinator compares the map with the rules and names the next change, until nothing is left
 * to do. So a change of leader loses no decision: the next leader sees the same map. The host puts
 * each change if the key is as read and the leader is, too; a coordinator that has lost its lease
 * without notice then changes nothing.
 *
 * Rules:
 * - A member whose donor is gone, or is reported as failed, becomes OUT, unless the group cannot
 *   be read without it. Such a member stays SERVING: the group waits for its return.
 * - An incarnation that is OUT of one group leaves all others in the same way, so that its donor
 *   can start again: with another memory, it can serve all of them.
 * - A member whose donor is another incarnation becomes OUT in any case. A group with fewer SERVING
 *   members than its scheme needs has lost its data, and stays as it is while a volume has data.
 * - The place of an OUT member waits for the donor's next incarnation for a while; then another
 *   donor gets it. The new member is SYNCING.
 * - A SYNCING member becomes SERVING once each volume that has data has reported it. The member
 *   must have been SYNCING in the map that was read: a client that opens a volume afterwards knows
 *   of the member, and writes there too.
 * - No two members of a group stand in the same failure domain.
 * - A member on a draining donor stays SERVING until another donor has its data.
 *
 * Time. The ends of leases are the store's business. Waiting times run by the coordinator's own
 * clock, from the moment when it first saw a state. The wall clock is for people only.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POOL_COORDINATOR_H
#define WEIR_CORE_POOL_COORDINATOR_H

#include "core/pool/map.h"

#define WEIR_POOL_NEVER UINT64_MAX

/**
 * struct weir_pool_coordinator - what a coordinator remembers between maps
 * @judges_ns: from then on, a donor without a lease counts as gone
 * @seen: version of each group
 * @since_ns: when the coordinator first saw that version
 * @is_outcast: by donor: its current incarnation is OUT of a group, or reported
 */
struct weir_pool_coordinator {
	uint64_t judges_ns;
	uint64_t seen[WEIR_POOL_GROUPS_MAX];
	uint64_t since_ns[WEIR_POOL_GROUPS_MAX];
	bool is_outcast[WEIR_POOL_DONORS_MAX];
};

enum weir_pool_op_kind {
	WEIR_POOL_PUT_TABLE, /* make the table of a scheme */
	WEIR_POOL_PUT_GROUP, /* make or change a group */
	WEIR_POOL_DROP_FAILED, /* remove a report about an incarnation that is gone */
};

/**
 * struct weir_pool_op - a change of one key
 * @kind: an enum weir_pool_op_kind
 * @index: number of the table, group or donor in the map
 * @expected: version that the key must have
 * @table: for PUT_TABLE
 * @group: for PUT_GROUP
 */
struct weir_pool_op {
	uint8_t kind;
	uint16_t index;
	uint64_t expected;
	struct weir_pool_table table;
	struct weir_pool_group group;
};

/**
 * weir_pool_coordinator_begin() - become the leader, or reach the store again
 * @c: the coordinator; all zeroes at first
 * @lease_ms: the pool's
 * @now_ns: time
 *
 * After a time without the store, donors need a moment to renew their leases. For half a lease,
 * nobody counts as gone for want of one.
 */
void weir_pool_coordinator_begin(struct weir_pool_coordinator *c, uint32_t lease_ms,
				 uint64_t now_ns);

/**
 * weir_pool_coordinator_next() - name the next change
 * @c: the coordinator
 * @map: the map as last read, with the changes applied that have been made since
 * @now_ns: time
 * @wall_ms: wall clock
 * @op: receives the change. When the store has made it, the host owes a weir_pool_coordinator_did()
 *
 * If the store refuses a change because a version has changed, the host reads the map again. It
 * does so, too, when nothing is left to do after changes: some changes need a newer map.
 *
 * Return: true if there is a change to make.
 */
bool weir_pool_coordinator_next(struct weir_pool_coordinator *c, const struct weir_pool_map *map,
				uint64_t now_ns, uint64_t wall_ms, struct weir_pool_op *op);

/* The store has made the change, and its key has version @stored. */
void weir_pool_coordinator_did(struct weir_pool_map *map, const struct weir_pool_op *op,
			       uint64_t stored);

/* Return: when time alone allows another change; WEIR_POOL_NEVER if it does not. */
uint64_t weir_pool_coordinator_deadline_ns(const struct weir_pool_coordinator *c,
					   const struct weir_pool_map *map, uint64_t now_ns);

/* Return: the number of volumes of this scheme that have data. */
uint16_t weir_pool_map_count_data(const struct weir_pool_map *map, struct weir_pool_scheme scheme);

#endif
