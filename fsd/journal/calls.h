/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mounts of a server, and their calls until the mount has the reply.
 *
 * A mount owns its calls, and the server owns its mounts; a pointer is valid until the call or the
 * mount is removed. Context of all: the server's thread.
 */
#ifndef WEIR_FSD_JOURNAL_CALLS_H
#define WEIR_FSD_JOURNAL_CALLS_H

#include <sys/queue.h>

#include "fsd/fsd.h"
#include "fsd/image/bytes.h"

#define FSD_MOUNTS_MAX 256u
#define FSD_MOUNT_CALLS_MAX 1024u /* of a mount, and as many that wait for a lock */

/* Most bytes of a change in a checkpoint: the call, its reply, and the lock that it waits for. */
#define FSD_CALL_REPLY_MAX 424u
#define FSD_CALL_ROOM (16u + FSD_CALL_REPLY_MAX + 64u)

enum fsd_call_state {
	FSD_CALL_WAITS, /* for a lock, or runs now */
	FSD_CALL_DUE, /* the reply waits for the commit */
	FSD_CALL_ANSWERED, /* kept for a repetition */
};

/**
 * struct fsd_call - a call
 * @entry: of the mount; @due: of the calls to answer
 * @mount: NULL: the mount has left
 * @to: the host's, for its reply(); NULL: there is no request, or it has its reply
 * @looks: changes nothing, and may run again
 * @awaits_lock: may take long: its reply is kept until the mount names it, however many calls later
 * @status: error of the last move of bytes; set by the host
 * @reply: @length bytes, once known
 * @room: bytes in a checkpoint, at most
 */
struct fsd_call {
	TAILQ_ENTRY(fsd_call) entry, due;
	struct fsd_mount *mount;
	uint64_t number;
	void *to;
	enum fsd_call_state state;
	bool looks, awaits_lock;
	int status;
	size_t length;
	uint8_t *reply;
	uint32_t room;
};

TAILQ_HEAD(fsd_call_list, fsd_call);

/**
 * struct fsd_mount - a mount
 * @id: the mount's number
 * @answered: the mount has the replies of all calls below, but for those that await a lock
 * @client: in the server; @client_id: its number there
 * @nr_calls: in @calls; @nr_waits: more that await a lock
 * @room: of all calls
 */
struct fsd_mount {
	TAILQ_ENTRY(fsd_mount) entry;
	uint64_t id, answered, client_id;
	struct fsd_client *client;
	struct fsd_call_list calls;
	uint32_t nr_calls, nr_waits, room;
};

/* @list: @nr mounts; @due: replies to send, in order */
struct fsd_calls {
	TAILQ_HEAD(, fsd_mount) list;
	uint32_t nr;
	struct fsd_call_list due;
};

void fsd_calls_init(struct fsd_calls *calls);
void fsd_calls_fini(struct fsd_calls *calls);

struct fsd_mount *fsd_calls_mount(const struct fsd_calls *calls, uint64_t id);
/* Return: NULL: too many, or out of memory. */
struct fsd_mount *fsd_calls_add_mount(struct fsd_calls *calls, uint64_t id);
/* Frees the mount and all calls without a reply to send. */
void fsd_calls_remove_mount(struct fsd_calls *calls, struct fsd_mount *mount);

struct fsd_call *fsd_calls_find(const struct fsd_mount *mount, uint64_t number);
/* Whether a mount has as many calls as it may have. */
bool fsd_calls_is_full(const struct fsd_mount *mount, bool awaits_lock);
/* Return: NULL: too many, or out of memory. */
struct fsd_call *fsd_calls_add(struct fsd_mount *mount, uint64_t number, bool awaits_lock);
/* Frees answered calls below @answered. */
void fsd_calls_forget(struct fsd_mount *mount, uint64_t answered);
/* Frees an answered call that has awaited a lock. Return: whether there was one. */
bool fsd_calls_forget_late(struct fsd_mount *mount, uint64_t number);

/* Gives a call its reply. @bytes: copied. Return: 0; -ENOMEM. */
int fsd_calls_answer(struct fsd_calls *calls, struct fsd_call *call, const void *bytes,
		     size_t length);
/* The reply is sent. May free the call. */
void fsd_calls_sent(struct fsd_calls *calls, struct fsd_call *call);

/* Appends all mounts and calls; reads the same. Return: 0; -ENOMEM; -EIO damaged. */
int fsd_calls_save(const struct fsd_calls *calls, struct fsd_bytes *state);
int fsd_calls_load(struct fsd_calls *calls, struct fsd_reader *state);

#endif
