/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mounts of a server of files, and which connection speaks for each.
 *
 * A connection speaks for one mount, and a mount is spoken for by its newest connection. So no
 * message of an earlier connection counts after one of a later: by then the mount may have
 * forgotten the call. A key has half of all mounts at most, so that another key's can come.
 *
 * Context: the server's thread. Time is an argument.
 */
#ifndef WEIR_APPS_SERVE_FILES_MOUNTS_H
#define WEIR_APPS_SERVE_FILES_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "apps/serve/files/staging.h"
#include "fsd/journal/calls.h"

#define MOUNTS_OF_KEY_MAX (FSD_MOUNTS_MAX / 2)

/**
 * struct file_mount - a mount
 * @conn: its connection, or NULL since @gone_ns
 * @newest: number of its newest connection; 0: none yet
 * @tenant: of that connection
 */
struct file_mount {
	TAILQ_ENTRY(file_mount) entry;
	uint64_t id, gone_ns, newest;
	unsigned int tenant;
	struct staging_conn *conn;
};

/* @nr: in @list */
struct file_mounts {
	TAILQ_HEAD(, file_mount) list;
	unsigned int nr;
};

void mounts_init(struct file_mounts *mounts);
void mounts_fini(struct file_mounts *mounts);

/* A mount that the file system knows, without a connection. Return: 0; -ENOMEM. */
int mounts_restore(struct file_mounts *mounts, uint64_t id, uint64_t now_ns);

/**
 * mounts_note() - a message of a mount has come
 * @id: the mount's number
 * @op: FS_MOUNT adds the mount, FS_UNMOUNT removes it
 *
 * Return: 0; a status for the reply, and the message does not count: -EPERM the connection speaks
 * for another mount; -ENFILE too many mounts; -EDQUOT too many of this key; -ENOMEM; or
 * -ECONNRESET the mount has a newer connection, and awaits no reply.
 */
int mounts_note(struct file_mounts *mounts, struct staging_conn *conn, uint64_t id,
		enum wire_fs_op op, uint64_t now_ns);

/**
 * mounts_expire() - find and forget a mount that has been gone for long, or has a revoked key
 * @grace_ns: for how long
 * @id: receives its number
 *
 * Return: whether there was one.
 */
bool mounts_expire(struct file_mounts *mounts, uint64_t now_ns, uint64_t grace_ns, uint64_t *id);

#endif
