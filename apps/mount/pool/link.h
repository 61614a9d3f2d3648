/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The link of a mount to the donor that serves a pool's volume now.
 *
 * Each call has a number and stays here until its reply. The donor may die, or another may serve
 * the volume. Then the link's thread finds the server in the pool's map and connects. It repeats
 * all calls without a reply, in order. The server gives a known call its first answer again. So the
 * mount sees a pause.
 *
 * A call that waits for a lock may take long. So the server keeps its reply apart from those of
 * all others, until a later call says that the reply has arrived.
 *
 * The bytes of a read or write go through a slot of the staging area that the server lends. A
 * slot is in use until the reply. After an error nobody knows what still arrives there: the link
 * then takes another connection, and with it another staging area.
 *
 * Locks: link.lock, a leaf. Callbacks of calls run without it, in the session's thread, or in
 * that of the link.
 */
#ifndef WEIR_APPS_MOUNT_POOL_LINK_H
#define WEIR_APPS_MOUNT_POOL_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <weir/message.h>

#include "core/pool/map.h"
#include "wire/fs.h"

#define LINK_SLOTS_MAX 64u

struct mount;
struct link_call;
struct weir_key;
struct weir_pool_client;
struct weir_region;
struct weir_session;

TAILQ_HEAD(link_call_list, link_call);

enum link_state {
	LINK_DOWN, /* no connection yet, or none any more */
	LINK_UP,
	LINK_LOST, /* no server will know this mount again: calls fail */
};

/**
 * struct link - a mount's link
 * @mount: for its messages and options
 * @volume: in the pool; @client: of the opening and then the link's thread, like @map
 * @lock: guards what follows
 * @changed: @state or @is_broken, or @users is 0
 * @is_broken: the session had an error
 * @stops: the link ends; @ends_ns: without a server until then, it does; 0: never
 * @users: threads that submit to @session
 * @id: of the mount; @numbers: calls so far
 * @claim: of the server that @session leads to
 * @calls: without a reply, by number
 * @late: that have waited for a lock, and whose replies the server keeps
 * @slots: of the staging area; @free_slots: a bit for each
 */
struct link {
	struct mount *mount;
	char volume[WEIR_POOL_NAME_MAX];
	struct weir_pool_client *client;
	struct weir_pool_map *map;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum link_state state;
	bool is_broken, stops;
	unsigned int users;
	uint64_t ends_ns, id, numbers, claim;
	struct weir_session *session;
	struct weir_region *staging;
	struct link_call_list calls, late;
	unsigned int slots;
	uint64_t free_slots;
};

/* Whether a donor's name on the command line is a pool's volume. */
bool link_is_pool(const char *donor);

/**
 * link_open() - find the volume, and wait until a donor serves it
 * @where: "pool:PLACE/VOLUME", "file:PATH/VOLUME" or "etcd:http://HOST:2379/NAME/VOLUME"
 *
 * Return: 0, or an exit status after a message. The caller owes a link_close() in either case.
 */
int link_open(struct link *link, struct mount *m, const char *where);

/* Ends calls that wait with -EIO, and closes the link. */
void link_close(struct link *link);

/* No call waits longer than the mount's timeout any more: the mount ends. */
void link_stop(struct link *link);

/**
 * link_call() - call the server, whichever it is
 * @message: begins with a wire_fs_head; copied
 * @data: NULL, or the bytes of an FS_READ or FS_WRITE; kept until @fn. The slot's place is filled
 *	in
 * @fn: called once; its status is 0, or -EIO if there is no server any more. An FS_READ's bytes are
 *	in @data then
 *
 * Context: any thread. @fn may run before this returns. Return: 0; -ENOMEM.
 */
int link_call(struct link *link, const void *message, size_t length, void *data, weir_reply_fn *fn,
	      void *arg);

/* link_call() for a caller that waits. @goes_on: as weir_call_while(). Return: also -ECANCELED. */
int link_call_wait(struct link *link, const void *message, size_t length, void *reply,
		   size_t reply_max, size_t *reply_length, bool (*goes_on)(void *arg), void *arg);

/* For link_call.c: begins each call that has not begun, while the link is up. */
void link_begin_calls(struct link *link);
/* The calls begin again on the next connection. Lock held. */
void link_reset_calls(struct link *link);
/* All calls end with -EIO. Without the lock. */
void link_fail_calls(struct link *link);
/* Frees what is left once no call is made any more. */
void link_free_calls(struct link *link);
/* The server does not know the mount. Without the lock. */
void link_lose(struct link *link);

#endif
