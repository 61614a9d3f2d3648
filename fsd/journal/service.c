/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/service.h"

#include <errno.h>
#include <stdlib.h>

#include "fsd/client.h"
#include "fsd/image/image.h"
#include "fsd/journal/calls.h"
#include "fsd/journal/checkpoint.h"
#include "fsd/journal/log.h"

#define RECORD_ALIGN 8
#define META_PART 4 /* metadata in memory may take this part of a checkpoint, */
#define CALLS_PART 2 /* and kept replies and requests for locks this */

enum record_kind { RECORD_REQUEST = 1, RECORD_LEAVE, RECORD_LATE };

/*
 * An input in the log, little-endian; its message follows, and zeroes up to RECORD_ALIGN. Of
 * RECORD_LATE, @number is the call that the mount names.
 */
struct record {
	uint32_t kind, length;
	uint64_t mount, number, answered;
	struct wire_fs_time now;
	int32_t status; /* of the reply; 1: the call waited. So a wrong replay is noticed */
	uint32_t zero;
};
static_assert(sizeof(struct record) == 56, "record");

/**
 * struct fsd_service - a file server
 * @fsd: its state
 * @log: since the checkpoint of number @generation
 * @batch: records for the log, until the commit
 * @has_freed: the next request must wait for the commit
 * @replays: the inputs come from the log
 * @now: time of the running request
 * @error: memory was short in the middle of a request: the state is undefined
 */
struct fsd_service {
	struct fsd_service_host host;
	struct fsd_layout layout;
	struct fsd *fsd;
	struct fsd_calls calls;
	struct fsd_log log;
	uint64_t generation;
	struct fsd_bytes batch;
	bool has_freed, replays;
	struct wire_fs_time now;
	int error;
	uint64_t replayed, inputs, batches, checkpoints;
};

static int take_chunk(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory)
{
	(void)arg;
	*chunk = (struct wire_fs_chunk){ .length = length };
	*memory = NULL;
	return 0;
}

static uint64_t find_room(void *arg)
{
	return ((struct fsd_service *)arg)->layout.data_bytes;
}

static int send_nothing(void *arg, void *peer, const void *message, size_t length)
{
	(void)arg;
	(void)peer;
	(void)message;
	(void)length;
	return 0;
}

static void answer(void *arg, void *to, const void *reply, size_t length)
{
	struct fsd_service *s = arg;
	struct wire_fs_reply head;

	memcpy(&head, reply, sizeof(head));
	if (!((struct fsd_call *)to)->looks && length > FSD_CALL_REPLY_MAX)
		s->error = -EMSGSIZE;
	else if (fsd_calls_answer(&s->calls, to, reply, length) || head.status == -ENOMEM)
		s->error = -ENOMEM;
}

static void read_wall(void *arg, struct wire_fs_time *now)
{
	*now = ((struct fsd_service *)arg)->now;
}

static uint64_t read_clock(void *arg)
{
	(void)arg;
	return 0; /* no request waits for a time */
}

static void move_data(void *arg, const struct fsd_data *piece)
{
	struct fsd_service *s = arg;
	struct fsd_call *call = piece->call;
	struct fsd_data at = *piece;

	/* A request in the log has moved all bytes. */
	if (s->replays)
		return;
	at.volume += s->layout.data;
	s->host.start(s->host.arg, call ? call->to : NULL, &at, call ? &call->status : NULL);
}

static struct fsd_host fsd_host_of(struct fsd_service *s)
{
	return (struct fsd_host){
		.take_chunk = take_chunk,
		.room = find_room,
		.tell = send_nothing,
		.answer = answer,
		.wall = read_wall,
		.clock_ns = read_clock,
		.arg = s,
		.data = move_data,
	};
}

static struct fsd_options options_of(const struct fsd_service *s)
{
	struct fsd_options options = {
		.bytes_max = s->layout.data_bytes,
		.chunk_bytes = s->layout.data_bytes,
		.uid = s->layout.uid,
		.gid = s->layout.gid,
		.meta_max = s->layout.checkpoint_bytes / META_PART,
	};

	memcpy(options.hash_key, s->layout.hash_key, sizeof(options.hash_key));
	return options;
}

static uint64_t number_of(const void *call)
{
	return ((const struct fsd_call *)call)->number;
}

/* The call of an image that waits for a lock. */
static void *find_waiting(void *arg, uint64_t client, uint64_t number)
{
	struct fsd_service *s = arg;
	struct fsd_mount *mount;

	TAILQ_FOREACH(mount, &s->calls.list, entry) {
		struct fsd_call *call =
			mount->client_id == client ? fsd_calls_find(mount, number) : NULL;

		if (call && call->state == FSD_CALL_WAITS)
			return call;
	}
	return NULL;
}

static struct fsd_image_calls image_calls_of(struct fsd_service *s)
{
	return (struct fsd_image_calls){ number_of, find_waiting, s };
}

/* Finds the mounts' clients. Return: whether each has a mount, and each call that waits a lock. */
static bool match_clients(struct fsd_service *s)
{
	const struct fsd_client *client;
	struct fsd_mount *mount;
	uint32_t clients = 0, waits = 0, waiting = 0;

	TAILQ_FOREACH(client, &s->fsd->clients, entry) {
		clients++;
		waits += client->nr_waits;
	}
	TAILQ_FOREACH(mount, &s->calls.list, entry) {
		const struct fsd_call *call;

		mount->client = fsd_client_find(s->fsd, mount->client_id);
		if (!mount->client)
			return false;
		TAILQ_FOREACH(call, &mount->calls, entry)
			waiting += call->state == FSD_CALL_WAITS;
	}
	return clients == s->calls.nr && waits == waiting;
}

/* Loads the server's state. */
static int load_image(struct fsd_service *s, struct fsd_reader *image)
{
	const struct fsd_image_calls calls = image_calls_of(s);
	const struct fsd_options options = options_of(s);
	const struct fsd_host host = fsd_host_of(s);
	struct fsd *fsd;
	int rc = fsd_image_load(&host, &options, &calls, image, &fsd);

	if (rc)
		return rc;
	if (s->fsd)
		fsd_close(s->fsd);
	s->fsd = fsd;
	return match_clients(s) && !image->left ? 0 : -EIO;
}

/* Makes the state a checkpoint, and goes on from its image. */
static int checkpoint(struct fsd_service *s)
{
	const struct fsd_image_calls calls = image_calls_of(s);
	struct fsd_bytes state = { 0 };
	struct fsd_reader image;
	size_t start;
	uint64_t salt;
	int rc = fsd_calls_save(&s->calls, &state);

	start = state.length;
	if (!rc)
		rc = fsd_image_save(s->fsd, &calls, &state);
	s->host.random(s->host.arg, &salt, sizeof(salt));
	if (!rc)
		rc = fsd_checkpoint_write(&s->host.disk, &s->layout, s->generation + 1, salt,
					  &state);
	if (!rc) {
		s->generation++;
		s->checkpoints++;
		fsd_log_begin(&s->log, salt);
		image = (struct fsd_reader){ state.at + start, state.length - start };
		rc = load_image(s, &image);
	}
	fsd_bytes_free(&state);
	return rc;
}

static struct fsd_mount *add_mount(struct fsd_service *s, uint64_t id)
{
	struct fsd_mount *mount = fsd_calls_add_mount(&s->calls, id);

	if (!mount)
		return NULL;
	if (fsd_join(s->fsd, NULL, &mount->client)) {
		fsd_calls_remove_mount(&s->calls, mount);
		return NULL;
	}
	mount->client_id = mount->client->id;
	return mount;
}

static void leave(struct fsd_service *s, struct fsd_mount *mount)
{
	fsd_leave(mount->client);
	fsd_calls_remove_mount(&s->calls, mount);
}

static bool is_op(const void *message, size_t length, enum wire_fs_op op)
{
	struct wire_fs_head head;

	if (length < sizeof(head))
		return false;
	memcpy(&head, message, sizeof(head));
	return head.op == op;
}

/* Whether the call may take as long as another holds a lock. */
static bool awaits_lock(const void *message, size_t length)
{
	struct wire_fs_lock lock;

	if (length < sizeof(lock) || !is_op(message, length, FS_SETLK))
		return false;
	memcpy(&lock, message, sizeof(lock));
	return lock.flags & FS_LOCK_WAIT;
}

/* Return: the status of the reply; 1: the call waits. */
static int status_of(const struct fsd_call *call)
{
	struct wire_fs_reply reply;

	if (call->state == FSD_CALL_WAITS)
		return 1;
	memcpy(&reply, call->reply, sizeof(reply));
	return reply.status;
}

static void run(struct fsd_service *s, struct fsd_call *call, const void *message, size_t length)
{
	fsd_request(call->mount->client, call, message, length);
	s->has_freed |= fsd_has_freed(s->fsd);
}

static void put_record(struct fsd_service *s, const struct record *record, const void *message)
{
	fsd_bytes_put(&s->batch, record, sizeof(*record));
	fsd_bytes_put(&s->batch, message, record->length);
	fsd_bytes_align(&s->batch, RECORD_ALIGN);
	s->inputs++;
	if (s->batch.is_short)
		s->error = -ENOMEM;
}

/* A call of the log. The reply was sent, or the mount will ask again. */
static int replay_request(struct fsd_service *s, const struct record *record, const void *message)
{
	struct fsd_mount *mount = fsd_calls_mount(&s->calls, record->mount);
	struct fsd_call *call;

	if (!mount && is_op(message, record->length, FS_MOUNT))
		mount = add_mount(s, record->mount);
	if (!mount || fsd_calls_find(mount, record->number))
		return -EIO;
	fsd_calls_forget(mount, record->answered);
	call = fsd_calls_add(mount, record->number, awaits_lock(message, record->length));
	if (!call)
		return -ENOMEM;
	s->now = record->now;
	run(s, call, message, record->length);
	if (!s->error && status_of(call) != record->status)
		return -EIO;
	while ((call = TAILQ_FIRST(&s->calls.due)))
		fsd_calls_sent(&s->calls, call);
	return s->error;
}

static int replay_record(struct fsd_service *s, struct fsd_reader *batch)
{
	struct record record;
	struct fsd_mount *mount;
	const void *message;

	if (!fsd_reader_get(batch, &record, sizeof(record)))
		return -EIO;
	message = fsd_reader_skip(batch, record.length);
	if (!message || !fsd_reader_skip(batch, -record.length % RECORD_ALIGN))
		return -EIO;
	s->replayed++;
	if (record.kind == RECORD_REQUEST)
		return replay_request(s, &record, message);
	mount = fsd_calls_mount(&s->calls, record.mount);
	if (mount && record.kind == RECORD_LATE)
		return fsd_calls_forget_late(mount, record.number) ? 0 : -EIO;
	if (record.kind != RECORD_LEAVE || !mount)
		return -EIO;
	leave(s, mount);
	return 0;
}

static int replay_log(struct fsd_service *s)
{
	struct fsd_bytes batch;
	int rc;

	s->replays = true;
	while (!(rc = fsd_log_read(&s->log, &batch))) {
		struct fsd_reader reader = { batch.at, batch.length };

		while (!rc && reader.left)
			rc = replay_record(s, &reader);
		fsd_bytes_free(&batch);
		if (rc)
			return rc;
	}
	s->replays = false;
	s->has_freed = false;
	return rc == -ENODATA ? 0 : rc;
}

static void begin_log(struct fsd_service *s)
{
	s->log = (struct fsd_log){
		.disk = &s->host.disk,
		.start = s->layout.log,
		.bytes = s->layout.log_bytes,
	};
}

/* The superblock is written last: without it the volume is still empty. */
static int make_files(struct fsd_service *s, uint32_t uid, uint32_t gid)
{
	const struct fsd_host host = fsd_host_of(s);
	struct fsd_options options;
	int rc = fsd_layout_make(&s->layout, s->host.disk.bytes);

	if (rc)
		return rc;
	s->layout.uid = uid;
	s->layout.gid = gid;
	s->host.random(s->host.arg, s->layout.hash_key, sizeof(s->layout.hash_key));
	options = options_of(s);
	begin_log(s);
	s->host.wall(s->host.arg, &s->now);
	rc = fsd_open(&host, &options, &s->fsd);
	if (!rc)
		rc = checkpoint(s);
	return rc ? rc : fsd_layout_write(&s->host.disk, &s->layout);
}

static int load_files(struct fsd_service *s)
{
	struct fsd_bytes state;
	struct fsd_reader reader;
	uint64_t salt;
	int rc = fsd_checkpoint_read(&s->host.disk, &s->layout, &s->generation, &salt, &state);

	if (rc)
		return rc;
	begin_log(s);
	fsd_log_begin(&s->log, salt);
	reader = (struct fsd_reader){ state.at, state.length };
	rc = fsd_calls_load(&s->calls, &reader);
	if (!rc)
		rc = load_image(s, &reader);
	fsd_bytes_free(&state);
	if (!rc)
		rc = replay_log(s);
	return rc ? rc : checkpoint(s);
}

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
		rc = is_blank ? make_files(s, uid, gid) : load_files(s);
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
	return rc == -ENOSPC ? checkpoint(s) : rc;
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

	return rc || !s->log.end ? rc : checkpoint(s);
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

/* The mount has replies, and the next server must know, too. */
static void forget_replies(struct fsd_service *s, struct fsd_mount *mount,
			   const struct wire_fs_call *in)
{
	const struct record record = {
		.kind = RECORD_LATE,
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
	bool awaits = awaits_lock(message, length), looks = !fsd_may_change(message, length);
	bool is_new = false, is_full;
	struct fsd_call *call;

	if (!mount && in->mount && in->number && is_op(message, length, FS_MOUNT)) {
		mount = add_mount(s, in->mount);
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
		leave(s, mount); /* it is in no log */
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
	const struct record record = { .kind = RECORD_LEAVE, .mount = id };
	int rc = finish_batch(s);
	struct fsd_mount *mount = fsd_calls_mount(&s->calls, id);

	if (rc)
		return rc;
	if (mount) {
		leave(s, mount);
		s->has_freed |= fsd_has_freed(s->fsd);
		put_record(s, &record, NULL);
	}
	return is_waiting(s);
}

int fsd_service_request(struct fsd_service *s, void *to, const void *message, size_t length)
{
	struct record record = { .kind = RECORD_REQUEST };
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
	if (is_op(message, record.length, FS_UNMOUNT))
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
	run(s, call, message, record.length);
	record.status = status_of(call);
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
