/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The volumes of files that a donor of a pool serves. A thread watches the map. A volume that
 * nobody serves, or whose server is gone, gets one of the donors: all donors rank themselves by
 * the same lot, the first tries at once, and each other a little later.
 */
#ifndef WEIR_APPS_SERVE_FILES_FILE_SERVERS_H
#define WEIR_APPS_SERVE_FILES_FILE_SERVERS_H

#include "apps/serve/files/file_server.h"

struct file_servers;

/* Starts the thread. @options: without on_end; kept until the close. Return: 0, or an errno. */
int file_servers_start(const struct file_server_options *options, struct file_servers **files,
		struct weir_error *error);

/* Asks the thread and all servers to end. */
void file_servers_cancel(struct file_servers *files);

/* Waits for the end, after a cancel, and frees all. */
void file_servers_close(struct file_servers *files);

#endif
