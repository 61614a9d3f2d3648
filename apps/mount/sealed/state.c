/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/sealed/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/fs/folder.h"
#include "apps/mount/mount.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/conn/key.h"
#include "lib/sealed/slot.h"

#define MAGIC "weirseen"
#define VERSION 1u
#define SAVE_NS (5 * WEIR_NS_PER_S) /* at least, between two writes of the thread */
#define LOAD_MAX 50u /* the thread writes for a fiftieth of the time at most */

/* Then come @pages pages, and a MAC over all before. */
struct seal_state_head {
	char magic[8];
	uint32_t version, is_open;
	int64_t saved;
	uint64_t pages;
};

_Static_assert(sizeof(struct seal_state_head) == 32, "the head of a state has no padding");
_Static_assert(sizeof(struct seen_entry) == 80, "a page of a state has no padding");

/**
 * struct seal_state - the file
 * @written: changes of @seen in the file
 * @lock, @wakeup: for @stops, the end of the thread
 * @has_failed: the log has the failure of a write
 */
struct seal_state {
	const char *path;
	const struct weir_sealed_keys *keys;
	struct seen_blocks *seen;
	uint64_t written;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wakeup;
	bool stops, has_failed;
};

/* Bytes that grow. @rc: -ENOMEM after a failure. */
struct seal_state_text {
	uint8_t *bytes;
	size_t length, room;
	int rc;
};

static void add(struct seal_state_text *text, const void *bytes, size_t length)
{
	uint8_t *more;

	if (!text->rc && text->length + length > text->room) {
		text->room = 2 * text->room + length;
		more = realloc(text->bytes, text->room);
		text->rc = more ? 0 : -ENOMEM;
		text->bytes = more ? more : text->bytes;
	}
	if (text->rc)
		return;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
}

static void add_entry(void *arg, const struct seen_entry *entry)
{
	add(arg, entry, sizeof(*entry));
}

/* Replaces the file as a whole: after a crash there is the new file, or the old if this failed. */
static int replace_file(const char *path, const struct seal_state_text *text)
{
	char new[PATH_MAX];
	size_t at = 0;
	ssize_t n = 0;
	int fd, rc = 0;

	if (snprintf(new, sizeof(new), "%s.new", path) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	while (at < text->length && (n = write(fd, text->bytes + at, text->length - at)) > 0)
		at += (size_t)n;
	if (n < 0 || fsync(fd))
		rc = -errno;
	else if (at < text->length)
		rc = -ENOSPC;
	close(fd);
	if (!rc && rename(new, path))
		rc = -errno;
	if (rc)
		unlink(new);
	return rc ? rc : folder_sync(path);
}

/* @is_open: more changes may follow */
static int save(struct seal_state *state, bool is_open)
{
	struct seal_state_head head = {
		.version = VERSION,
		.is_open = is_open,
		.saved = time(NULL),
	};
	uint8_t mac[WEIR_SLOT_STATE_MAC];
	struct seal_state_text text = { 0 };
	uint64_t changes;
	int rc;

	memcpy(head.magic, MAGIC, sizeof(head.magic));
	add(&text, &head, sizeof(head));
	changes = seen_walk(state->seen, add_entry, &text);
	if (!text.rc) {
		head.pages = (text.length - sizeof(head)) / sizeof(struct seen_entry);
		memcpy(text.bytes, &head, sizeof(head));
		weir_slot_mac_state(state->keys, text.bytes, text.length, mac);
		add(&text, mac, sizeof(mac));
	}
	rc = text.rc ? text.rc : replace_file(state->path, &text);
	free(text.bytes);
	if (!rc)
		state->written = changes;
	return rc;
}

static int read_file(const char *path, struct seal_state_text *text, struct weir_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;
	uint8_t part[16384];
	ssize_t n;

	if (fd < 0)
		return weir_error_set(error, -errno, "%s: %s", path, strerror(errno));
	rc = weir_key_check_file(fd, path, geteuid(), error);
	while (!rc && (n = read(fd, part, sizeof(part)))) {
		if (n > 0)
			add(text, part, (size_t)n);
		else if (errno != EINTR)
			rc = weir_error_set(error, -errno, "%s: %s", path, strerror(errno));
	}
	if (!rc && text->rc)
		rc = weir_error_set(error, text->rc, "%s: out of memory", path);
	close(fd);
	return rc;
}

static int refuse(const char *path, struct weir_error *error)
{
	return weir_error_set(error, -EBADMSG,
			      "%s knows other sealed files than the donor has now, or is "
			      "damaged: the donor has begun anew, is another, or hides files. "
			      "To trust the donor, remove %s",
			      path, path);
}

/* Checks the whole text, and fills @seen. */
static int parse(struct seal_state *state, const struct seal_state_text *text,
		 enum seal_state_age *age, int64_t *saved, struct weir_error *error)
{
	const size_t rest = sizeof(struct seal_state_head) + WEIR_SLOT_STATE_MAC;
	uint8_t mac[WEIR_SLOT_STATE_MAC];
	struct seen_entry entry;
	struct seal_state_head head;

	if (text->length < rest || (text->length - rest) % sizeof(entry))
		return refuse(state->path, error);
	memcpy(&head, text->bytes, sizeof(head));
	weir_slot_mac_state(state->keys, text->bytes, text->length - sizeof(mac), mac);
	if (memcmp(head.magic, MAGIC, sizeof(head.magic)) || head.version != VERSION ||
	    head.pages != (text->length - rest) / sizeof(entry) ||
	    sodium_memcmp(mac, text->bytes + text->length - sizeof(mac), sizeof(mac)))
		return refuse(state->path, error);
	for (uint64_t i = 0; i < head.pages; i++) {
		memcpy(&entry, text->bytes + sizeof(head) + i * sizeof(entry), sizeof(entry));
		if (!seen_restore(state->seen, &entry))
			return weir_error_set(error, -ENOMEM, "%s: out of memory", state->path);
	}
	*age = head.is_open ? SEAL_STATE_OLD : SEAL_STATE_WHOLE;
	*saved = head.saved;
	return 0;
}

static int load(struct seal_state *state, enum seal_state_age *age, int64_t *saved,
		struct weir_error *error)
{
	struct seal_state_text text = { 0 };
	int rc = read_file(state->path, &text, error);

	*age = SEAL_STATE_NEW;
	if (!rc)
		rc = parse(state, &text, age, saved, error);
	free(text.bytes);
	return rc == -ENOENT ? 0 : rc;
}

/* Return: whether to go on after @ns. */
static bool rest(struct seal_state *state, uint64_t ns)
{
	uint64_t until_ns = weir_now_ns() + ns;
	const struct timespec until = weir_timespec(until_ns);
	bool stops;

	pthread_mutex_lock(&state->lock);
	while (!state->stops && weir_now_ns() < until_ns)
		pthread_cond_timedwait(&state->wakeup, &state->lock, &until);
	stops = state->stops;
	pthread_mutex_unlock(&state->lock);
	return !stops;
}

static void *run(void *arg)
{
	struct seal_state *state = arg;
	uint64_t pause_ns = SAVE_NS, begun_ns;
	int rc;

	while (rest(state, pause_ns)) {
		pause_ns = SAVE_NS;
		if (seen_changes(state->seen) == state->written)
			continue;
		begun_ns = weir_now_ns();
		rc = save(state, true);
		if (rc && !state->has_failed)
			mount_log(WEIR_LOG_ERROR, "state not written file=%s id=W510: %s",
				  state->path, strerror(-rc));
		state->has_failed = rc;
		if ((weir_now_ns() - begun_ns) * LOAD_MAX > pause_ns)
			pause_ns = (weir_now_ns() - begun_ns) * LOAD_MAX;
	}
	return NULL;
}

static void state_free(struct seal_state *state)
{
	pthread_cond_destroy(&state->wakeup);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

static struct seal_state *state_new(const char *path, const struct weir_sealed_keys *keys,
				    struct seen_blocks *seen)
{
	struct seal_state *state = calloc(1, sizeof(*state));
	pthread_condattr_t monotonic;

	if (!state)
		return NULL;
	state->path = path;
	state->keys = keys;
	state->seen = seen;
	pthread_mutex_init(&state->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&state->wakeup, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return state;
}

/* Writes the file at once, so that a file without write permission ends the mount now. */
int seal_state_open(const char *path, const struct weir_sealed_keys *keys,
		    struct seen_blocks *seen, struct seal_state **out, enum seal_state_age *age,
		    int64_t *saved, struct weir_error *error)
{
	struct seal_state *state = state_new(path, keys, seen);
	int rc;

	if (!state)
		return weir_error_set(error, -ENOMEM, "out of memory");
	rc = load(state, age, saved, error);
	if (!rc) {
		rc = save(state, true);
		if (rc)
			weir_error_set(error, rc, "%s: cannot be written: %s", path,
				       strerror(-rc));
	}
	if (!rc)
		rc = weir_thread_create(&state->thread, "weir-state", run, state, error);
	if (rc) {
		state_free(state);
		return rc;
	}
	*out = state;
	return 0;
}

int seal_state_close(struct seal_state *state)
{
	int rc;

	if (!state)
		return 0;
	pthread_mutex_lock(&state->lock);
	state->stops = true;
	pthread_cond_signal(&state->wakeup);
	pthread_mutex_unlock(&state->lock);
	pthread_join(state->thread, NULL);
	rc = save(state, false);
	state_free(state);
	return rc;
}
