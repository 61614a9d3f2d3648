/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages to the donor's file system and its answers.
 *
 * Statuses: what the donor says is passed on, and whatever happens to the session is EIO: that
 * is what programs expect of a disk that is gone.
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
 * call_begin() - the fixed part of a message, zeroed but for its head
 * @fixed: its size
 * @req: on whose behalf; NULL: the client's own
 *
 * Return: the fixed part.
 */
void *call_begin(struct donor_message *q, enum wire_fs_op op, uint64_t ino, size_t fixed,
		 fuse_req_t req);
/* Both return 0 or -EMSGSIZE. */
int call_add_bytes(struct donor_message *q, const void *bytes, size_t length);
/* The first string. -ENAMETOOLONG. */
int call_add_name(struct donor_message *q, const char *name);

/**
 * call() - ask and wait
 * @body_min: bytes that must follow the reply's head
 *
 * Context: any thread but a callback. Return: 0 or what the program is told.
 */
int call(struct mount *m, const struct donor_message *q, struct donor_reply *reply,
	 size_t body_min);
/* The same for the many that answer nothing, or attributes. */
int call_plain(struct mount *m, const struct donor_message *q);
int call_attr(struct mount *m, const struct donor_message *q, struct wire_fs_attr *attr);

static inline const void *call_reply_body(const struct donor_reply *reply)
{
	return reply->bytes + sizeof(struct wire_fs_reply);
}

/**
 * call_later() - ask and go on
 * @message: begins with a wire_fs_head; copied
 * @fn: gets the session's status; make sense of it with call_status()
 *
 * Return: 0, then @fn is called once; or -EIO, then it is not.
 */
int call_later(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
	       weir_reply_fn *fn, void *arg);
/*
 * Ask, and don't wonder about the answer. It is wanted all the same: a message that nobody answers
 * ends the session when its channel breaks (weir_send()).
 * Context: any thread. Return: 0, or -EIO: not sent.
 */
int call_without_reply(struct mount *m, const void *message, size_t length);

/* What a reply with at least @body_min bytes after its head amounts to. */
int call_status(int status, const void *reply, size_t length, size_t body_min);

#endif
