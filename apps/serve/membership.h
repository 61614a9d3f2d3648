/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's membership in a pool: the agent that keeps the donor in the map, the rebuilder of
 * volumes, and the file servers.
 *
 * Context of all: the thread of weir serve.
 */
#ifndef WEIR_APPS_SERVE_MEMBERSHIP_H
#define WEIR_APPS_SERVE_MEMBERSHIP_H

#include "apps/serve/files/file_servers.h"
#include "apps/serve/key_set.h"
#include "lib/pool/agent.h"
#include "lib/volume/rebuild.h"

/**
 * struct membership - zero but for the options of the command line
 * @pool: NULL: the donor is in no pool, and all functions do nothing
 * @domain: NULL: the host's name
 * @name: of the donor; NULL: its address
 * @advertise: the host that others connect to; NULL: that of the donor's address
 */
struct membership {
	const char *pool, *domain, *name, *advertise;
	char address[WEIR_POOL_NAME_MAX + 8]; /* as the pool's map has it */
	char donor_name[WEIR_POOL_NAME_MAX];
	struct weir_pool_agent *agent;
	struct weir_volume_rebuilder *rebuilder;
	struct file_server_options file_options;
	struct file_servers *file_servers;
};

/**
 * struct joining_donor - the donor that joins
 * @keys: its keys now; NULL: none
 * @identity: NULL: none
 * @on_restart: called on any thread when the pool has gone on without the donor's memory
 */
struct joining_donor {
	const char *cmd, *device;
	struct weir_donor *donor;
	struct key_set *keys;
	struct weir_identity *identity;
	void (*on_restart)(void *arg);
};

/** membership_check() - check the options; prints what is wrong, and returns an exit code */
int membership_check(const struct membership *m, const char *cmd);

/**
 * membership_join() - enter the map, and begin to rebuild and to serve files
 *
 * Prints what is wrong. Return: an exit code; in any case the caller owes a membership_leave().
 */
int membership_join(struct membership *m, const struct joining_donor *donor);

/**
 * membership_set_keys() - replace the keys
 *
 * Return: 0; -ENOMEM: a part of the pool's servers ends, or rebuilds by the keys before.
 */
int membership_set_keys(struct membership *m, struct key_set *keys, struct weir_error *error);

/** membership_leave() - hand over what is served, and leave the map */
void membership_leave(struct membership *m);

#endif
