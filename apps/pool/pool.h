/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir pool: makes pools and volumes, and shows the state of donors and groups. */
#ifndef WEIR_APPS_POOL_POOL_H
#define WEIR_APPS_POOL_POOL_H

#include "lib/pool/client.h"

/* The commands. argv[0] is the command's name for getopt. Return: an exit status. */
int pool_create(const char *cmd, int argc, char **argv);
int pool_status(const char *cmd, int argc, char **argv);
int pool_donors(const char *cmd, int argc, char **argv);
int pool_rebalance(const char *cmd, int argc, char **argv);
int pool_drain(const char *cmd, int argc, char **argv);
int pool_volume_create(const char *cmd, int argc, char **argv);
int pool_volume_list(const char *cmd, int argc, char **argv);
int pool_volume_import(const char *cmd, int argc, char **argv);
int pool_volume_export(const char *cmd, int argc, char **argv);
int pool_volume_rm(const char *cmd, int argc, char **argv);

/**
 * struct pool_session - a pool that a command works on; zeroed at first
 * @client: the pool
 * @map: as last read
 */
struct pool_session {
	struct weir_pool_client *client;
	struct weir_pool_map *map;
};

/* Opens the pool, and reads its map. On failure prints the reason. Return: 0 or EXIT_FAILED. */
int pool_session_open(struct pool_session *session, const char *cmd, const char *pool);
void pool_session_close(struct pool_session *session);

/*
 * Sleeps until the map changes, but at most @timeout_ms, and reads it. Return: 0; EXIT_FAILED with
 * the reason printed. After a stop_requested() it returns 0 early.
 */
int pool_session_look_again(struct pool_session *session, const char *cmd, unsigned int timeout_ms);

/* The members of a donor, by state. */
struct pool_places {
	unsigned int of[3]; /* by enum weir_pool_member_state */
};

struct pool_places pool_count_places(const struct weir_pool_map *map, uint16_t donor);

/* The groups by state, as a client finds them now: a group has one. */
enum pool_group_state {
	POOL_GROUP_WHOLE,
	POOL_GROUP_LEAN, /* lacks a member */
	POOL_GROUP_AWAY, /* cannot be read or written: too few donors with the data are there */
	POOL_GROUP_LOST, /* its data */
	POOL_GROUP_MISSING, /* too few donors to make it */
	POOL_GROUP_STATES
};

extern const char *const pool_group_states[POOL_GROUP_STATES];

enum pool_group_state pool_group_state(const struct weir_pool_map *map,
				       const struct weir_pool_group *group);

/* Members that have the data, and whose donors are there. */
unsigned int pool_count_serving(const struct weir_pool_map *map,
				const struct weir_pool_group *group);

struct pool_group_counts {
	uint64_t of[POOL_GROUP_STATES];
};

struct pool_group_counts pool_count_groups(const struct weir_pool_map *map);

/* The memory of the donors that are there. */
uint64_t pool_sum_bytes(const struct weir_pool_map *map);

/* Reads of donors that rebuild that found wrong bytes in the memory of donors that are there. */
uint64_t pool_sum_wrong_reads(const struct weir_pool_map *map);

/* "up", "draining", "failed" or "gone". */
const char *pool_donor_state(const struct weir_pool_map *map, uint16_t donor);

#endif
