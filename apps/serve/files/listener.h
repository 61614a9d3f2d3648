/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The listener of a server of files: admits mounts by their keys, lends each a staging area, and
 * queues their messages. Keys may change before the listener opens, and while it is open.
 */
#ifndef WEIR_APPS_SERVE_FILES_LISTENER_H
#define WEIR_APPS_SERVE_FILES_LISTENER_H

#include "apps/serve/files/file_server.h"
#include "apps/serve/files/requests.h"
#include "apps/serve/files/staging.h"

/**
 * struct file_listener - a listener
 * @options: of the server
 * @requests: where messages go
 * @staging: the connections of mounts
 * @opening: held until the listener is known to its callbacks
 * @keys: for donors, to the end; NULL: none
 * @lock: guards @admitted and @is_open, and is held while the keys change
 * @admitted: for mounts
 * @is_open: staging.donor is open
 */
struct file_listener {
	const struct file_server_options *options;
	struct file_requests *requests;
	struct staging staging;
	pthread_mutex_t opening, lock;
	struct key_set *keys, *admitted;
	bool is_open;
};

/* @keys: see file_server_start(). */
void listener_init(struct file_listener *listener, const struct file_server_options *options,
		   struct file_requests *requests, struct key_set *keys);
/* After listener_close(). */
void listener_fini(struct file_listener *listener);

/**
 * listener_open() - let mounts connect
 * @address: of @size bytes, receives where
 *
 * Return: 0; an error of weir_donor_open() or weir_donor_keys_set().
 */
int listener_open(struct file_listener *listener, char *address, size_t size,
		  struct weir_error *error);

/* Ends all connections, if the listener has opened. */
void listener_close(struct file_listener *listener);

/**
 * listener_set_keys() - replace the keys that mounts may prove
 * @is_open: receives whether the listener is open; else it takes the keys as it opens
 *
 * Return: 0; a negative errno: mounts may still prove the keys before.
 */
int listener_set_keys(struct file_listener *listener, struct key_set *keys, bool *is_open,
		      struct weir_error *error);

/* Whether the key for other donors has changed since listener_init(). */
bool listener_has_other_pool_key(struct file_listener *listener);

#endif
