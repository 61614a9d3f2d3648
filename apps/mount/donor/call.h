/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls to the donor's file server.
 *
 * Errors: a status from the donor is passed on. Any failure of the session becomes -EIO, as
 * programs expect of a failed disk.
 */
#ifndef WEIR_APPS_MOUNT_DONOR_CALL_H
#define WEIR_APPS_MOUNT_DONOR_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <weir/message.h>

#include "apps/mount/mount.h"
#include "wire/fs.h"

struct donor_message {
	size_t length;
	fuse_req_t req; /* may be interrupted; or NULL */
	unsigned int phase; /* in which the reply was true, or SHARING_NO_PHASE; see sharing.h */
	bool is_in_doubt; /* call_is_in_doubt() */
	union {
		struct wire_fs_head head;
		char bytes[WEIR_MESSAGE_MAX];
	};
};

struct donor_reply {
	size_t length;
	union {
		struct wire_fs_reply head;
		char bytes[WEIR_MESSAGE_MAX];
	};
};

/**
 * call_begin() - begin a message: zero its fixed part and fill in the head
 * @fixed: size of the fixed part
 * @req: the request whose user the call acts for, and who may interrupt the call; NULL: the client
 *	itself
 *
 * Return: the fixed part.
 */
void *call_begin(struct donor_message *q, enum wire_fs_op op, uint64_t ino, size_t fixed,
		 fuse_req_t req);
/* Both return 0 or -EMSGSIZE. */
int call_add_bytes(struct donor_message *q, const void *bytes, size_t length);
/* Adds the first string. Also returns -ENAMETOOLONG. */
int call_add_name(struct donor_message *q, const char *name);

/* 0, for the session's timeout, or UINT64_MAX if the mount waits for ever. */
static inline uint64_t call_timeout_ns(const struct mount *m)
{
	return m->options->hard ? UINT64_MAX : 0;
}

/**
 * call_wait() - call the donor and wait, as the mount's options say
 * @req: may be interrupted; or NULL
 *
 * Context: any thread outside callbacks.
 * Return: the session's status; see call_status().
 */
int call_wait(struct mount *m, fuse_req_t req, const void *message, size_t length,
	      struct donor_reply *reply);

/*
 * Calls of this thread end with -EINTR from then on, also of a mount that waits for ever. 0: no
 * longer.
 */
void call_end_at(uint64_t ns);
bool call_is_late(void);

/**
 * call() - call the donor and wait for the reply
 * @body_min: bytes that must follow the reply's head
 *
 * First settles the log of changes (change_log.h).
 *
 * Context: any thread outside callbacks.
 * Return: 0, or an errno for the program.
 */
int call(struct mount *m, struct donor_message *q, struct donor_reply *reply, size_t body_min);
/* The same for operations that reply attributes. */
int call_attr(struct mount *m, struct donor_message *q, struct wire_fs_attr *attr);
/* @nr: of several inodes */
int call_attrs(struct mount *m, struct donor_message *q, struct wire_fs_attr *attrs,
	       unsigned int nr);
/*
 * The same for operations that change names or attributes. After an error of the session nobody
 * knows what the donor did.
 */
int call_change(struct mount *m, struct donor_message *q, struct donor_reply *reply,
		size_t body_min);

static inline const void *call_reply_body(const struct donor_reply *reply)
{
	return reply->bytes + sizeof(struct wire_fs_reply);
}

/**
 * call_later() - call the donor without waiting
 * @message: begins with a wire_fs_head; copied
 * @fn: receives the session's status; see call_status()
 *
 * Return: 0 (@fn is called once), or -EIO (not called).
 */
int call_later(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
	       weir_reply_fn *fn, void *arg);
/* A weir_reply_fn that ends with a mount_end() of @arg. */
void call_ignore_reply(void *arg, int status, const void *reply, size_t length);
/*
 * Calls the donor and ignores the reply. The message is a call nevertheless: an unanswered one-way
 * message ends the session when its channel breaks (weir_send()).
 *
 * Context: any thread. Return: 0, or -EIO if not sent.
 */
int call_without_reply(struct mount *m, const void *message, size_t length);

/*
 * Whether the donor may have carried out a call that ended so: it has not answered in time, or the
 * channel broke.
 */
bool call_is_in_doubt(int status);

/*
 * The result of a call: -EINTR after an interruption, -EIO for another error of the session or a
 * malformed reply, else the donor's status.
 */
int call_status(int status, const void *reply, size_t length, size_t body_min);

#endif
