/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/client.h"
#include "fsd/image/image.h"
#include "fsd/journal/checkpoint.h"
#include "fsd/journal/state.h"

#define META_PART 4 /* metadata in memory may take this part of a checkpoint */

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
		struct fsd_call *call = mount->client_id == client ? fsd_calls_find(mount, number) :
								     NULL;

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

int fsd_service_checkpoint(struct fsd_service *s)
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

/* A call of the log. The reply was sent, or the mount will ask again. */
static int replay_request(struct fsd_service *s, const struct fsd_record *record,
			  const void *message)
{
	struct fsd_mount *mount = fsd_calls_mount(&s->calls, record->mount);
	struct fsd_call *call;

	if (!mount && fsd_message_is(message, record->length, FS_MOUNT))
		mount = fsd_service_add_mount(s, record->mount);
	if (!mount || fsd_calls_find(mount, record->number))
		return -EIO;
	fsd_calls_forget(mount, record->answered);
	call = fsd_calls_add(mount, record->number,
			     fsd_message_awaits_lock(message, record->length));
	if (!call)
		return -ENOMEM;
	s->now = record->now;
	fsd_service_run(s, call, message, record->length);
	if (!s->error && fsd_call_reply_status(call) != record->status)
		return -EIO;
	while ((call = TAILQ_FIRST(&s->calls.due)))
		fsd_calls_sent(&s->calls, call);
	return s->error;
}

static int replay_record(struct fsd_service *s, struct fsd_reader *batch)
{
	struct fsd_record record;
	struct fsd_mount *mount;
	const void *message;

	if (!fsd_reader_get(batch, &record, sizeof(record)))
		return -EIO;
	message = fsd_reader_skip(batch, record.length);
	if (!message || !fsd_reader_skip(batch, -record.length % FSD_RECORD_ALIGN))
		return -EIO;
	s->replayed++;
	if (record.kind == FSD_RECORD_REQUEST)
		return replay_request(s, &record, message);
	mount = fsd_calls_mount(&s->calls, record.mount);
	if (mount && record.kind == FSD_RECORD_LATE)
		return fsd_calls_forget_late(mount, record.number) ? 0 : -EIO;
	if (record.kind != FSD_RECORD_LEAVE || !mount)
		return -EIO;
	fsd_service_remove_mount(s, mount);
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
int fsd_service_make_files(struct fsd_service *s, uint32_t uid, uint32_t gid)
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
		rc = fsd_service_checkpoint(s);
	return rc ? rc : fsd_layout_write(&s->host.disk, &s->layout);
}

int fsd_service_load_files(struct fsd_service *s)
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
	return rc ? rc : fsd_service_checkpoint(s);
}
