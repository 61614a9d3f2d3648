/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/calls.h"

#include <errno.h>

#include "fsd/image/format.h"

/* In a checkpoint, little-endian. */
struct saved_mount {
	uint64_t id, answered, client_id;
	uint32_t calls, zero;
};

enum saved_call_flags { SAVED_WAITS = 1, SAVED_AWAITS_LOCK = 2 };

struct saved_call {
	uint64_t number;
	uint32_t flags, length; /* bytes of the reply, which follows */
};

static_assert(sizeof(struct saved_call) + FSD_CALL_REPLY_MAX + sizeof(struct image_lock) ==
		      FSD_CALL_ROOM, "room of a call");
/* The longest replies of requests that change something. */
static_assert(sizeof(struct wire_fs_reply) + 4 * sizeof(struct wire_fs_attr) == FSD_CALL_REPLY_MAX,
	      "FS_RENAME");
static_assert(sizeof(struct wire_fs_mounted) <= FSD_CALL_REPLY_MAX, "wire_fs_mounted");
static_assert(sizeof(struct wire_fs_locked) <= FSD_CALL_REPLY_MAX, "wire_fs_locked");
static_assert(sizeof(struct wire_fs_transferred) <= FSD_CALL_REPLY_MAX, "wire_fs_transferred");

void fsd_calls_init(struct fsd_calls *calls)
{
	TAILQ_INIT(&calls->list);
	TAILQ_INIT(&calls->due);
	calls->nr = 0;
}

static uint32_t *count_of(struct fsd_mount *mount, bool awaits_lock)
{
	return awaits_lock ? &mount->nr_waits : &mount->nr_calls;
}

static void set_room(struct fsd_call *call, uint32_t room)
{
	if (call->mount)
		call->mount->room += room - call->room;
	call->room = room;
}

static void free_call(struct fsd_call *call)
{
	set_room(call, 0);
	if (call->mount) {
		TAILQ_REMOVE(&call->mount->calls, call, entry);
		--*count_of(call->mount, call->awaits_lock);
	}
	free(call->reply);
	free(call);
}

void fsd_calls_fini(struct fsd_calls *calls)
{
	struct fsd_mount *mount;
	struct fsd_call *call;

	while ((mount = TAILQ_FIRST(&calls->list)))
		fsd_calls_remove_mount(calls, mount);
	while ((call = TAILQ_FIRST(&calls->due))) {
		TAILQ_REMOVE(&calls->due, call, due);
		free_call(call);
	}
}

struct fsd_mount *fsd_calls_mount(const struct fsd_calls *calls, uint64_t id)
{
	struct fsd_mount *mount;

	TAILQ_FOREACH(mount, &calls->list, entry) {
		if (mount->id == id)
			break;
	}
	return mount;
}

struct fsd_mount *fsd_calls_add_mount(struct fsd_calls *calls, uint64_t id)
{
	struct fsd_mount *mount = NULL;

	if (calls->nr < FSD_MOUNTS_MAX)
		mount = calloc(1, sizeof(*mount));
	if (!mount)
		return NULL;
	mount->id = id;
	TAILQ_INIT(&mount->calls);
	TAILQ_INSERT_TAIL(&calls->list, mount, entry);
	calls->nr++;
	return mount;
}

void fsd_calls_remove_mount(struct fsd_calls *calls, struct fsd_mount *mount)
{
	struct fsd_call *call, *next;

	for (call = TAILQ_FIRST(&mount->calls); call; call = next) {
		next = TAILQ_NEXT(call, entry);
		if (call->state != FSD_CALL_DUE) {
			free_call(call);
			continue;
		}
		TAILQ_REMOVE(&mount->calls, call, entry);
		call->mount = NULL;
	}
	TAILQ_REMOVE(&calls->list, mount, entry);
	calls->nr--;
	free(mount);
}

struct fsd_call *fsd_calls_find(const struct fsd_mount *mount, uint64_t number)
{
	struct fsd_call *call;

	TAILQ_FOREACH_REVERSE(call, &mount->calls, fsd_call_list, entry) {
		if (call->number == number)
			break;
	}
	return call;
}

bool fsd_calls_is_full(const struct fsd_mount *mount, bool awaits_lock)
{
	return (awaits_lock ? mount->nr_waits : mount->nr_calls) == FSD_MOUNT_CALLS_MAX;
}

struct fsd_call *fsd_calls_add(struct fsd_mount *mount, uint64_t number, bool awaits_lock)
{
	struct fsd_call *call = NULL;

	if (!fsd_calls_is_full(mount, awaits_lock))
		call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->mount = mount;
	call->number = number;
	call->awaits_lock = awaits_lock;
	TAILQ_INSERT_TAIL(&mount->calls, call, entry);
	++*count_of(mount, awaits_lock);
	set_room(call, FSD_CALL_ROOM);
	return call;
}

void fsd_calls_forget(struct fsd_mount *mount, uint64_t answered)
{
	struct fsd_call *call, *next;

	if (answered <= mount->answered)
		return;
	mount->answered = answered;
	for (call = TAILQ_FIRST(&mount->calls); call; call = next) {
		next = TAILQ_NEXT(call, entry);
		if (call->number < answered && call->state == FSD_CALL_ANSWERED &&
		    !call->awaits_lock)
			free_call(call);
	}
}

bool fsd_calls_forget_late(struct fsd_mount *mount, uint64_t number)
{
	struct fsd_call *call = fsd_calls_find(mount, number);

	if (!call || call->state != FSD_CALL_ANSWERED || !call->awaits_lock)
		return false;
	free_call(call);
	return true;
}

int fsd_calls_answer(struct fsd_calls *calls, struct fsd_call *call, const void *bytes,
		     size_t length)
{
	call->reply = malloc(length);
	if (!call->reply)
		return -ENOMEM;
	memcpy(call->reply, bytes, length);
	call->length = length;
	set_room(call, call->looks ? 0 : (uint32_t)(sizeof(struct saved_call) + length));
	call->state = FSD_CALL_DUE;
	TAILQ_INSERT_TAIL(&calls->due, call, due);
	return 0;
}

void fsd_calls_sent(struct fsd_calls *calls, struct fsd_call *call)
{
	TAILQ_REMOVE(&calls->due, call, due);
	call->state = FSD_CALL_ANSWERED;
	call->to = NULL;
	if (!call->mount || call->looks ||
	    (call->number < call->mount->answered && !call->awaits_lock))
		free_call(call);
}

static void save_call(const struct fsd_call *call, struct fsd_bytes *state)
{
	const struct saved_call out = {
		.number = call->number,
		.flags = (call->state == FSD_CALL_WAITS ? SAVED_WAITS : 0) |
			 (call->awaits_lock ? SAVED_AWAITS_LOCK : 0),
		.length = (uint32_t)call->length,
	};

	fsd_bytes_put(state, &out, sizeof(out));
	fsd_bytes_put(state, call->reply, call->length);
}

int fsd_calls_save(const struct fsd_calls *calls, struct fsd_bytes *state)
{
	const struct fsd_mount *mount;
	const struct fsd_call *call;

	fsd_bytes_put(state, &(uint64_t){ calls->nr }, sizeof(uint64_t));
	TAILQ_FOREACH(mount, &calls->list, entry) {
		struct saved_mount out = {
			.id = mount->id,
			.answered = mount->answered,
			.client_id = mount->client_id,
		};

		TAILQ_FOREACH(call, &mount->calls, entry)
			out.calls += !call->looks;
		fsd_bytes_put(state, &out, sizeof(out));
		TAILQ_FOREACH(call, &mount->calls, entry) {
			if (!call->looks)
				save_call(call, state);
		}
	}
	return state->is_short ? -ENOMEM : 0;
}

static int load_call(struct fsd_mount *mount, struct fsd_reader *state)
{
	struct saved_call in;
	struct fsd_call *call;
	bool waits, awaits_lock;
	const void *reply;

	if (!fsd_reader_get(state, &in, sizeof(in)))
		return -EIO;
	reply = fsd_reader_skip(state, in.length);
	waits = in.flags & SAVED_WAITS;
	awaits_lock = in.flags & SAVED_AWAITS_LOCK;
	if (!reply || (!waits && in.length < sizeof(struct wire_fs_reply)) ||
	    (waits && (in.length || !awaits_lock)) || fsd_calls_is_full(mount, awaits_lock) ||
	    fsd_calls_find(mount, in.number))
		return -EIO;
	call = fsd_calls_add(mount, in.number, awaits_lock);
	if (!call)
		return -ENOMEM;
	call->state = waits ? FSD_CALL_WAITS : FSD_CALL_ANSWERED;
	call->length = in.length;
	if (!in.length)
		return 0;
	set_room(call, (uint32_t)(sizeof(in) + in.length));
	call->reply = malloc(in.length);
	if (!call->reply)
		return -ENOMEM;
	memcpy(call->reply, reply, in.length);
	return 0;
}

/* Whether a mount is there already, by its number or by its client. */
static bool is_known(const struct fsd_calls *calls, const struct saved_mount *in)
{
	const struct fsd_mount *mount;

	TAILQ_FOREACH(mount, &calls->list, entry) {
		if (mount->id == in->id || mount->client_id == in->client_id)
			return true;
	}
	return false;
}

int fsd_calls_load(struct fsd_calls *calls, struct fsd_reader *state)
{
	uint64_t mounts;
	int rc = 0;

	if (!fsd_reader_get(state, &mounts, sizeof(mounts)) || mounts > FSD_MOUNTS_MAX)
		return -EIO;
	for (uint64_t i = 0; i < mounts && !rc; i++) {
		struct saved_mount in;
		struct fsd_mount *mount;

		if (!fsd_reader_get(state, &in, sizeof(in)) || is_known(calls, &in))
			return -EIO;
		mount = fsd_calls_add_mount(calls, in.id);
		if (!mount)
			return -ENOMEM;
		mount->answered = in.answered;
		mount->client_id = in.client_id;
		for (uint32_t j = 0; j < in.calls && !rc; j++)
			rc = load_call(mount, state);
	}
	return rc;
}
