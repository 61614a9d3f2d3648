/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file servers of a donor, one for each volume of files that it serves. A thread watches the
 * pool's map. If nobody serves a volume, or its server is gone, one of the donors takes over. Each
 * donor computes the same order of all donors (rendezvous hashing of volume id and incarnation):
 * the first tries at once, and each other 300 ms after the one before it.
 */
#ifndef WEIR_APPS_SERVE_FILES_FILE_SERVERS_H
#define WEIR_APPS_SERVE_FILES_FILE_SERVERS_H

#include "apps/serve/files/file_server.h"

struct file_servers;

/**
 * file_servers_start() - start the thread
 * @options: without on_end; kept until the close
 * @keys: of the donor; NULL: none
 * @servers: receives the servers; the caller owes a file_servers_close()
 * @error: may be NULL
 *
 * Return: 0, or an error of weir_pool_client_open() or of the thread.
 */
int file_servers_start(const struct file_server_options *options, struct key_set *keys,
		       struct file_servers **servers, struct weir_error *error);

/* Replaces the keys of all servers: see file_server_set_keys(). NULL is ignored. */
int file_servers_set_keys(struct file_servers *servers, struct key_set *keys,
			  struct weir_error *error);

/* Asks all servers to end, and the thread, which then starts no further one. NULL is ignored. */
void file_servers_cancel(struct file_servers *servers);

/*
 * After a cancel: waits until all servers have ended. While they leave a checkpoint and give their
 * claims back, the donor must stay in the map: else another donor would take over in the middle.
 * NULL is ignored.
 */
void file_servers_finish(struct file_servers *servers);

/* After a cancel: waits for the servers, then for the thread, and frees all. */
void file_servers_close(struct file_servers *servers);

#endif
