/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The server of the files of one volume of a pool, in a donor: claims the volume, loads the file
 * system, and serves mounts until it is stopped or loses the claim.
 *
 * Mounts connect to a listener of its own, whose address the pool's map shows. It lends each
 * mount a staging area, and no other memory.
 *
 * Threads. The listener's thread queues messages. The server's thread runs them in batches, see
 * fsd/journal/service.h.
 */
#ifndef WEIR_APPS_SERVE_FILES_FILE_SERVER_H
#define WEIR_APPS_SERVE_FILES_FILE_SERVER_H

#include <weir/donor.h>

#include "apps/serve/key_set.h"
#include "core/pool/map.h"

struct file_server;

/**
 * struct file_server_options - a donor of a pool; kept by the caller
 * @pool: the pool's place
 * @donor: the donor's name in the pool; @incarnation: of its memory
 * @listen: the donor's address; the port does not matter
 * @device: as for a session, or NULL
 * @memory_bytes: lent by the donor; buffers for mounts take as much at most
 * @identity: the donor's, or NULL
 * @on_log: from any thread
 * @on_end: the server has ended, and may be closed; from its thread
 * @arg: passed to both
 */
struct file_server_options {
	const char *pool, *donor, *listen, *device;
	uint64_t incarnation, memory_bytes;
	const struct weir_identity *identity;
	void (*on_log)(void *arg, enum weir_log_level level, const char *line);
	void (*on_end)(void *arg);
	void *arg;
};

/*
 * Starts a server, which tries to claim the volume. @keys: for mounts and for donors; NULL: none.
 * Return: NULL: out of memory.
 */
struct file_server *file_server_start(const struct file_server_options *options,
				      struct key_set *keys, const char *volume);

/* Asks the server to end. */
void file_server_stop(struct file_server *server);

/**
 * file_server_set_keys() - replace the keys that mounts may prove
 *
 * The mounts of revoked keys end at once. A server that has proven another key to a donor than the
 * present key ends, and another starts.
 *
 * Return: 0; a negative errno: the server ends, because it would still admit the keys before.
 */
int file_server_set_keys(struct file_server *server, struct key_set *keys,
			 struct weir_error *error);

/* Writes a line to @options->on_log. */
__attribute__((format(printf, 3, 4)))
void file_server_say(const struct file_server_options *options, enum weir_log_level level,
		     const char *format, ...);

/* Whether the server has ended: it lost the claim, or never had it. */
bool file_server_has_ended(const struct file_server *server);

/* Waits for the end of a server, and frees it. Another donor may serve the volume from now on. */
void file_server_close(struct file_server *server);

/* The volume's name. */
const char *file_server_volume(const struct file_server *server);

#endif
