/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of an agent, and functions that its parts share: see agent.h. */
#ifndef WEIR_APPS_BLK_AGENT_INTERNAL_H
#define WEIR_APPS_BLK_AGENT_INTERNAL_H

#include <pthread.h>

#include "apps/blk/agent/agent.h"
#include "apps/blk/agent/pool_map.h"
#include "lib/pool/client.h"

#define BLK_AGENT_LOOK_MS 100 /* period of looks at what the module has found */
#define BLK_AGENT_CALM_MS 1000 /* the same, if the module tells of its news */
#define BLK_AGENT_AGAIN 75 /* exit status, as EX_TEMPFAIL: another agent may go on */
#define BLK_AGENT_TIMEOUT_MS 3000u /* most, unless the user says */

/* The module keeps this for the next agent. */
struct blk_agent_kept {
	uint64_t pool, volume;
	struct weir_pool_claim claim;
};
static_assert(sizeof(struct blk_agent_kept) <= WEIR_BLK_AGENT_MAX, "blk_agent_kept");

/* A LOOK: findings of the module. */
struct blk_look {
	int status;
	uint32_t flags, percent;
	uint64_t copied, proof, failed[WEIR_BLK_POOL_DONORS_MAX];
	struct weir_blk_ready ready[WEIR_BLK_READY_MAX];
	size_t nr_failed, nr_ready;
	char text[160];
};

/**
 * struct blk_agent - an agent
 * @client: keeps the claim, and waits for maps; of the watching thread, once it runs
 * @reporter: of the main thread, as are @talk, @news and @look, the newest; @watch_talk: of the
 *	watching thread
 * @hears: the module tells of its news
 * @map: @lock guards changes by the watching thread, and use by the main thread
 * @scratch: a map that is being read, of the watching thread; @own: of the main thread
 * @layout: of the device: its claim tells it from another with the same @number
 * @kept: as the module was told last; @kept_ns: when the watching thread last kept the claim
 * @out: a map for the module; guarded by @lock, as all that follows
 * @reported: incarnations that were reported, a ring of @nr_reported
 * @told: the newest member that was reported as ready, of each group and place
 * @is_unsent: the module does not have the newest map
 * @is_over: another client has the volume; @is_gone: there is no device any more; @stops: atomic
 */
struct blk_agent {
	const char *cmd;
	char name[WEIR_BLK_POOL_MAX + 1], place[WEIR_BLK_POOL_MAX + 1];
	const char *volume;
	uint32_t number;
	struct weir_pool_client *client, *reporter;
	struct blk_netlink talk, watch_talk, news;
	struct weir_pool_map *map, *scratch, *own;
	struct weir_blk_layout layout;
	struct blk_agent_kept kept;
	uint64_t kept_ns;
	pthread_mutex_t lock;
	struct blk_pool_map *out;
	struct blk_look look;
	uint64_t reported[4 * WEIR_BLK_POOL_DONORS_MAX];
	size_t nr_reported;
	uint64_t told[WEIR_POOL_GROUPS_MAX][WEIR_POOL_MEMBERS_MAX];
	unsigned int shown;
	bool is_unsent, is_over, is_gone, stops, hears;
	pthread_t watcher;
	bool has_watcher;
	int guard;
};

/* Return: NULL without memory. Stops on signals from now on. */
struct blk_agent *blk_agent_new(const char *cmd);

/* Opens the pool of @name, POOL/VOLUME. Return: an exit status. */
int blk_agent_prepare(struct blk_agent *a, const char *name);

/* Makes this the device's only agent. Waits for one that ends. */
int blk_agent_guard(struct blk_agent *a);

/* A write may wait for a map, and memory for that write. Threads that come later are alike. */
void blk_agent_keep_memory(void);

/* Frees all. @keeps: the claim stays, for the next agent. */
void blk_agent_finish(struct blk_agent *a, bool keeps);

/* Whether both threads are to end; makes them. Context: either thread. */
bool blk_agent_ends(struct blk_agent *a);
void blk_agent_end(struct blk_agent *a);

/*
 * Attaches a device and prints its name, writes its number to @ready, and is its agent until the
 * end. Return: an exit status.
 */
int blk_agent_attach_and_run(const struct blk_agent_options *options, int ready);

/* Is the next agent of a device. Return: an exit status, or BLK_AGENT_AGAIN. */
int blk_agent_replace(const char *cmd, uint32_t number);

/* Belongs to no terminal and no folder from now on. */
void blk_agent_leave_terminal(void);

/* Opens the connections to the module. Return: an exit status. */
int blk_agent_connect(struct blk_agent *a);

/* Sleeps for a period of looks, or until a signal or news. @calm: for longer, if news will come. */
void blk_agent_rest(const struct blk_agent *a, bool calm);

/* module.c: @talk is the calling thread's. */

/* Copies the bytes of a list, or as many as fit. Return: how many entries. */
size_t blk_agent_read_list(const struct nlattr *attr, void *to, size_t size, size_t bytes);

/* Return: 0, or an errno: -ENODEV the device is gone. */
int blk_agent_look(struct blk_agent *a, struct blk_netlink *talk, struct blk_look *look);

/* Tells the module of the newest map. @flags: beside BLANK and OVER. Context: without the lock. */
int blk_agent_send_map(struct blk_agent *a, struct blk_netlink *talk, uint32_t flags,
		       uint64_t proof);

/* Makes the disk. Return: an exit status. */
int blk_agent_send_start(struct blk_agent *a);

void blk_agent_detach(struct blk_agent *a);

/* Starts the watching thread. Return: an exit status. */
int blk_agent_watch(struct blk_agent *a);

/* Return: whether the module must be told of the claim. With the lock held, or before the watch. */
bool blk_agent_note_claim(struct blk_agent *a);

/* Return: whether the map is of the same pool and volume, and can be used. */
bool blk_agent_has_volume(const struct blk_agent *a, const struct weir_pool_map *map);

/* Return: whether somebody else has opened the volume, as @map shows. */
bool blk_agent_is_taken(const struct blk_agent *a, const struct weir_pool_map *map);

/* Waits until the copies are equal, and makes the disk. Return: an exit status. */
int blk_agent_start(struct blk_agent *a);

/* Until the device is gone, the claim is over, or a signal. */
void blk_agent_run(struct blk_agent *a);

#endif
