/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/service.h"

#include <errno.h>
#include <stdlib.h>

#include "fsd/journal/state.h"

#define CALLS_PART 2 /* kept replies and requests for locks may take this part of a checkpoint */

int fsd_service_open(const struct fsd_service_host *host, uint32_t uid, uint32_t gid,
		     struct fsd_service **service)
{
	struct fsd_service *s = calloc(1, sizeof(*s));
	bool is_blank;
	int rc;

	if (!s)
		return -ENOMEM;
	s->host = *host;
	fsd_calls_init(&s->calls);
	rc = fsd_layout_read(&s->host.disk, &s->layout, &is_blank);
	if (!rc)
		rc = is_blank ? fsd_service_make_files(s, uid, gid) : fsd_service_load_files(s);
	if (rc)
		fsd_service_close(s);
	else
		*service = s;
	return rc;
}

/* Sends an empty reply to each open call, so that its mount repeats it elsewhere. */
static void turn_away(struct fsd_service *s)
{
	struct fsd_mount *mount;
	struct fsd_call *call;

	TAILQ_FOREACH(mount, &s->calls.list, entry) {
		TAILQ_FOREACH(call, &mount->calls, entry) {
			if (call->to)
				s->host.reply(s->host.arg, call->to, NULL, 0);
		}
	}
	TAILQ_FOREACH(call, &s->calls.due, due) {
		if (call->to && !call->mount)
			s->host.reply(s->host.arg, call->to, NULL, 0);
	}
}

void fsd_service_close(struct fsd_service *s)
{
	turn_away(s);
	if (s->fsd)
		fsd_close(s->fsd);
	fsd_calls_fini(&s->calls);
	fsd_bytes_free(&s->batch);
	free(s);
}

/* Failing to move the bytes of a read ends the call with an error. */
static void send_reply(struct fsd_service *s, struct fsd_call *call)
{
	const struct wire_fs_reply failed = { .status = call->status, .shared = 1 };

	if (call->to && call->status)
		s->host.reply(s->host.arg, call->to, &failed, sizeof(failed));
	else if (call->to)
		s->host.reply(s->host.arg, call->to, call->reply, call->length);
	fsd_calls_sent(&s->calls, call);
}

/* Return: an error if bytes of a change could not be moved: the log must not have it. */
static int check_moves(const struct fsd_service *s)
{
	const struct fsd_call *call;

	TAILQ_FOREACH(call, &s->calls.due, due) {
		if (call->status && !call->looks)
			return call->status;
	}
	return 0;
}

/* Whether this is still the volume's server. */
static int prove(struct fsd_service *s)
{
	uint8_t page[FSD_DISK_PAGE];

	return s->host.disk.read(s->host.disk.arg, 0, page, sizeof(page));
}

static int write_batch(struct fsd_service *s)
{
	int rc = fsd_log_append(&s->log, &s->batch);

	s->batches++;
	return rc == -ENOSPC ? fsd_service_checkpoint(s) : rc;
}

int fsd_service_commit(struct fsd_service *s)
{
	struct fsd_call *call;
	int settled = s->host.settle(s->host.arg), rc = s->error ? s->error : settled;

	if (!rc)
		rc = check_moves(s);
	if (!rc && s->batch.length)
		rc = write_batch(s);
	else if (!rc && !TAILQ_EMPTY(&s->calls.due))
		rc = prove(s);
	if (rc)
		return rc;
	s->batch.length = 0;
	s->has_freed = false;
	while ((call = TAILQ_FIRST(&s->calls.due)))
		send_reply(s, call);
	return 0;
}

int fsd_service_finish(struct fsd_service *s)
{
	int rc = fsd_service_commit(s);

	return rc || !s->log.end ? rc : fsd_service_checkpoint(s);
}

static int is_waiting(const struct fsd_service *s)
{
	return s->batch.length || !TAILQ_EMPTY(&s->calls.due);
}

static void refuse(struct fsd_service *s, void *to, int status)
{
	const struct wire_fs_reply reply = { .status = status, .shared = 1 };

	s->host.reply(s->host.arg, to, &reply, sizeof(reply));
}

/*
 * A known call does not run again. It waits, and moves no bytes: a call that is due has been
 * answered by a commit. The earlier try gets no reply.
 */
static void repeat(struct fsd_service *s, struct fsd_call *call, void *to)
{
	if (call->state == FSD_CALL_ANSWERED) {
		s->host.reply(s->host.arg, to, call->reply, call->length);
		return;
	}
	if (call->to)
		s->host.reply(s->host.arg, call->to, NULL, 0);
	call->to = to;
}

/*
 * Whether a checkpoint has room for one more change. Half of the room is shared out to all mounts
 * that may come, so that none can take all.
 */
static bool has_room(const struct fsd_service *s, const struct fsd_mount *wanted)
{
	uint64_t room = s->layout.checkpoint_bytes / CALLS_PART, common = FSD_CALL_ROOM;
	uint64_t share = room / 2 / FSD_MOUNTS_MAX;
	const struct fsd_mount *mount;

	if (wanted->room + FSD_CALL_ROOM <= share)
		return true;
	TAILQ_FOREACH(mount, &s->calls.list, entry)
		common += mount->room > share ? mount->room - share : 0;
	return common <= room / 2;
}

static void put_record(struct fsd_service *s, const struct fsd_record *record, const void *message)
{
	fsd_bytes_put(&s->batch, record, sizeof(*record));
	fsd_bytes_put(&s->batch, message, record->length);
	fsd_bytes_align(&s->batch, FSD_RECORD_ALIGN);
	s->inputs++;
	if (s->batch.is_short)
		s->error = -ENOMEM;
}

/* The mount has replies, and the next server must know, too. */
static void forget_replies(struct fsd_service *s, struct fsd_mount *mount,
			   const struct wire_fs_call *in)
{
	const struct fsd_record record = {
		.kind = FSD_RECORD_LATE,
		.mount = in->mount,
		.number = in->late,
	};

	fsd_calls_forget(mount, in->answered);
	if (in->late && fsd_calls_forget_late(mount, in->late))
		put_record(s, &record, NULL);
}

/* Return: a new call; or NULL, and @to has a reply or will have one. */
static struct fsd_call *admit(struct fsd_service *s, void *to, const struct wire_fs_call *in,
			      const void *message, size_t length)
{
	struct fsd_mount *mount = fsd_calls_mount(&s->calls, in->mount);
	bool awaits = fsd_message_awaits_lock(message, length),
	     looks = !fsd_may_change(message, length);
	bool is_new = false, is_full;
	struct fsd_call *call;

	if (!mount && in->mount && in->number && fsd_message_is(message, length, FS_MOUNT)) {
		mount = fsd_service_add_mount(s, in->mount);
		is_new = mount;
		if (!mount) {
			refuse(s, to, s->calls.nr == FSD_MOUNTS_MAX ? -ENFILE : -ENOMEM);
			return NULL;
		}
	}
	if (!mount || !in->number) {
		refuse(s, to, mount ? -EPROTO : -ENOTCONN);
		return NULL;
	}
	forget_replies(s, mount, in);
	call = fsd_calls_find(mount, in->number);
	if (call) {
		repeat(s, call, to);
		return NULL;
	}
	is_full = fsd_calls_is_full(mount, awaits) || (!looks && !has_room(s, mount));
	if (is_full || (in->number < mount->answered && !awaits)) {
		refuse(s, to, is_full ? -EAGAIN : -EALREADY);
		call = NULL;
	} else {
		call = fsd_calls_add(mount, in->number, awaits);
		if (!call)
			refuse(s, to, -ENOMEM);
	}
	if (call) {
		call->to = to;
		call->looks = looks;
	}
	if (!call && is_new)
		fsd_service_remove_mount(s, mount); /* it is in no log */
	return call;
}

/* Commits a batch that the next request must not be part of. */
static int finish_batch(struct fsd_service *s)
{
	return s->has_freed || s->error ? fsd_service_commit(s) : 0;
}

/* Whether the call is repeated while its first try moves bytes for another connection. */
static bool is_due(const struct fsd_service *s, const struct wire_fs_call *in)
{
	const struct fsd_mount *mount = fsd_calls_mount(&s->calls, in->mount);
	const struct fsd_call *call = mount ? fsd_calls_find(mount, in->number) : NULL;

	return call && call->state == FSD_CALL_DUE;
}

/* The reply waits for the commit: a mount that has left asks for nothing more. */
static int unmount(struct fsd_service *s, void *to, uint64_t id)
{
	int rc = fsd_service_leave(s, id);

	if (rc >= 0)
		rc = fsd_service_commit(s);
	if (rc >= 0)
		refuse(s, to, 0);
	return rc;
}

int fsd_service_leave(struct fsd_service *s, uint64_t id)
{
	const struct fsd_record record = { .kind = FSD_RECORD_LEAVE, .mount = id };
	int rc = finish_batch(s);
	struct fsd_mount *mount = fsd_calls_mount(&s->calls, id);

	if (rc)
		return rc;
	if (mount) {
		fsd_service_remove_mount(s, mount);
		s->has_freed |= fsd_has_freed(s->fsd);
		put_record(s, &record, NULL);
	}
	return is_waiting(s);
}

int fsd_service_request(struct fsd_service *s, void *to, const void *message, size_t length)
{
	struct fsd_record record = { .kind = FSD_RECORD_REQUEST };
	struct wire_fs_call in;
	struct fsd_call *call;
	int rc = finish_batch(s);

	if (rc)
		return rc;
	if (length < sizeof(in)) {
		refuse(s, to, -EPROTO);
		return is_waiting(s);
	}
	memcpy(&in, message, sizeof(in));
	message = (const uint8_t *)message + sizeof(in);
	record.length = (uint32_t)(length - sizeof(in));
	if (fsd_message_is(message, record.length, FS_UNMOUNT))
		return unmount(s, to, in.mount);
	if (is_due(s, &in))
		rc = fsd_service_commit(s);
	if (rc)
		return rc;
	call = admit(s, to, &in, message, record.length);
	if (!call)
		return is_waiting(s);
	record.mount = in.mount;
	record.number = in.number;
	record.answered = call->mount->answered; /* calls that only look may have raised it */
	s->host.wall(s->host.arg, &s->now);
	record.now = s->now;
	fsd_service_run(s, call, message, record.length);
	record.status = fsd_call_reply_status(call);
	if (!call->looks)
		put_record(s, &record, message);
	return is_waiting(s);
}

void fsd_service_mounts(const struct fsd_service *s, void (*fn)(void *arg, uint64_t mount),
			void *arg)
{
	const struct fsd_mount *mount;

	TAILQ_FOREACH(mount, &s->calls.list, entry)
		fn(arg, mount->id);
}

void fsd_service_info(const struct fsd_service *s, struct fsd_service_info *info)
{
	*info = (struct fsd_service_info){
		.replayed = s->replayed,
		.inputs = s->inputs,
		.batches = s->batches,
		.checkpoints = s->checkpoints,
		.mounts = s->calls.nr,
	};
	fsd_info(s->fsd, &info->fsd);
}
