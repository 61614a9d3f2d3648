/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A pool in random interleavings, from a seed. The store has versions, as etcd has, and is away at
 * times; two coordinators have maps of any age. Donors die, start again, lose their leases and are
 * drained. Clients open each volume one after another, and donors rebuild it. The memory of the
 * donors is modelled naively: for each group and volume, the number of the last write, and the
 * latest epoch that may write.
 *
 * The promises: a SERVING member that is alive has each completed write; a group loses its data
 * only with the memory; and once all is calm, each group is whole.
 *
 * The decisions of the core are those of the pool. The steps of clients and donors in lib/volume
 * are modelled here, so their mistakes are planted here, too.
 *
 * Context of all: one thread has a world.
 */
#ifndef WEIR_SIM_HUNT_POOL_POOL_WORLD_H
#define WEIR_SIM_HUNT_POOL_POOL_WORLD_H

#include "core/pool/balance.h"
#include "core/pool/coordinator.h"

#define POOL_DONORS 6
#define POOL_VOLUMES 2
#define POOL_GROUPS 3
#define POOL_LEADERS 2

/* Planted in the steps of clients and donors. */
enum pool_mistake {
	POOL_NO_MISTAKE,
	POOL_REPORTS_WITHOUT_A_CLAIM,
	POOL_REBUILDS_WITHOUT_A_FENCE, /* no keys are revoked: a stale epoch writes */
	POOL_OPENS_WITHOUT_REPORTED_MEMBERS,
	POOL_WRITES_BEFORE_COPIES_ARE_EQUAL,
	POOL_COMPLETES_BEFORE_THE_LAST_COPY,
	POOL_FILLS_AROUND_A_WRITE, /* the rebuild misses a late write */
	POOL_NR_MISTAKES,
};

struct pool_donor {
	bool is_up, has_lease;
	uint64_t incarnation;
	uint32_t memory[POOL_GROUPS][POOL_VOLUMES];
	uint64_t epoch[POOL_GROUPS][POOL_VOLUMES];
};

/*
 * A write goes to the members that the client knows; a bit for each donor that has it. @filled: by
 * group and donor, the membership that has all data. @is_open: by group.
 */
struct pool_client {
	struct weir_pool_map map;
	bool has_claim, is_open[POOL_GROUPS], is_writing, was_blank;
	uint64_t epoch;
	uint64_t filled[POOL_GROUPS][POOL_DONORS];
	uint16_t group;
	uint32_t number, has;
	uint64_t incarnations[POOL_DONORS];
};

/* A donor that has a volume open. @value is on its way to a member. */
struct pool_rebuilder {
	struct weir_pool_map map;
	bool is_active, is_copying, has_copied;
	uint64_t epoch, joined, incarnation;
	uint16_t donor, group;
	uint32_t value;
};

struct pool_leader {
	struct weir_pool_coordinator c;
	struct weir_pool_map map;
	uint64_t token; /* version of the leader's key as it won it */
};

/* Sums over worlds. A sum of zero shows that the worlds did not test an event. */
struct pool_counts {
	uint64_t writes, lost, renewed, promoted, drained, refused, rebuilt, fenced, taken_over,
		moved, deposed, outages;
};

/**
 * struct pool_world - a world
 * @truth: the store; @is_away: nobody can read or change it
 * @claim: version of the claim's key; 0: nobody has the volume
 * @synced: the membership reported
 * @digest: of all events; @on_event: is told of each, or NULL
 * @why: the first promise that was broken, or NULL
 */
struct pool_world {
	uint64_t random, now_ns, incarnations;
	struct weir_pool_map truth;
	bool is_away;
	struct pool_donor donor[POOL_DONORS];
	struct pool_client client[POOL_VOLUMES];
	struct pool_rebuilder rebuilder[POOL_VOLUMES];
	uint64_t claim[POOL_VOLUMES];
	struct pool_leader leader[POOL_LEADERS];
	uint64_t synced[POOL_VOLUMES][POOL_GROUPS][POOL_DONORS];
	uint32_t completed[POOL_GROUPS][POOL_VOLUMES];
	uint32_t perils;
	bool is_calm;
	enum pool_mistake mistake;
	struct pool_counts *counts;
	uint64_t digest;
	void (*on_event)(uint64_t now_ns, const char *what, uint64_t a, uint64_t b);
	const char *why;
};

/* Begins a world without a mistake. @counts: *kept*. The seed chooses the scheme, too. */
void pool_world_begin(struct pool_world *w, uint64_t seed, struct pool_counts *counts);

/* Takes steps, until a promise is broken. */
void pool_world_run(struct pool_world *w, uint32_t steps);

/* All failures end, and one donor is drained: the pool must become whole. */
void pool_world_calm_down(struct pool_world *w);

/* Shared by the parts of the world. */

uint32_t pool_below(struct pool_world *w, uint32_t n);
bool pool_expect(struct pool_world *w, bool holds, const char *what);
void pool_note(struct pool_world *w, const char *what, uint64_t a, uint64_t b);

/* Reads the store. Return: false: it is away, and @to as before. */
bool pool_read_map(const struct pool_world *w, struct weir_pool_map *to);

bool pool_is_alive(const struct pool_world *w, const struct weir_pool_member *m);
const struct weir_pool_member *pool_find_member(const struct weir_pool_group *group, uint16_t d);

/* A step of a volume's client, and of a donor that rebuilds the volume. */
void pool_client_step(struct pool_world *w, int v);
void pool_rebuilder_step(struct pool_world *w, int v);

/* Also in the middle of a write: then some members have it, and others do not. */
void pool_client_close(struct pool_world *w, struct pool_client *c, int v);

#endif
