/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/file_server.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/common/client.h"
#include "apps/serve/files/listener.h"
#include "apps/serve/files/mounts.h"
#include "apps/serve/files/requests.h"
#include "fsd/journal/service.h"
#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "lib/pool/client.h"
#include "lib/volume/pool.h"
#include "lib/volume/target.h"

#define TICK_NS WEIR_NS_PER_S
#define GRACE_LEASES 6u /* of a mount that is gone: then its locks are free */

/**
 * struct file_server - a server
 * @volume, @service, @client: of the server's thread
 * @mounts: the same; one that is gone for @grace_ns is forgotten
 * @published: this server in the map
 * @has_new_keys: the server's thread is to compare its keys with the present ones
 */
struct file_server {
	struct file_server_options options;
	char name[WEIR_POOL_NAME_MAX];
	struct weir_pool_client *client;
	struct weir_volume *volume;
	struct fsd_service *service;
	struct file_listener listener;
	struct file_requests requests;
	struct file_mounts mounts;
	uint64_t grace_ns;
	struct weir_pool_volume published;
	pthread_t thread;
	atomic_bool has_new_keys, has_ended;
};

void file_server_say(const struct file_server_options *options, enum weir_log_level level,
		     const char *format, ...)
{
	char line[640];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	options->on_log(options->arg, level, line);
}

static int disk_read(void *arg, uint64_t offset, void *to, size_t length)
{
	struct file_server *s = arg;

	return weir_volume_read(s->volume, offset, to, length);
}

static int disk_write(void *arg, uint64_t offset, const void *from, size_t length)
{
	struct file_server *s = arg;

	return weir_volume_write(s->volume, offset, from, length);
}

static void start(void *arg, void *to, const struct fsd_data *piece, int *status)
{
	struct file_server *s = arg;
	struct file_request *request = to;

	staging_start(&s->listener.staging, request ? request->conn : NULL, piece, status);
}

static int settle(void *arg)
{
	return staging_settle(&((struct file_server *)arg)->listener.staging);
}

static void reply(void *arg, void *to, const void *bytes, size_t length)
{
	(void)arg;
	file_request_end(to, bytes, length);
}

static void wall(void *arg, struct wire_fs_time *now)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &ts);
	*now = (struct wire_fs_time){ .sec = ts.tv_sec, .nsec = (uint32_t)ts.tv_nsec };
}

static void random_bytes(void *arg, void *bytes, size_t length)
{
	(void)arg;
	randombytes_buf(bytes, length);
}

/* A mount without an entry, for want of memory, would keep its locks without an end. */
static void restore_mount(void *arg, uint64_t id)
{
	struct file_server *s = arg;

	if (mounts_restore(&s->mounts, id, weir_now_ns()))
		atomic_store(&s->listener.staging.lost, -ENOMEM);
}

/* Mounts that have been gone for long lose their opens and locks. */
static int end_mounts(struct file_server *s)
{
	uint64_t id;
	int rc = 0;

	while (rc >= 0 && mounts_expire(&s->mounts, weir_now_ns(), s->grace_ns, &id))
		rc = fsd_service_leave(s->service, id);
	return rc < 0 ? rc : fsd_service_commit(s->service);
}

/* Tells the map where the server is, if that has changed. The map may be out of reach. */
static int publish(struct file_server *s)
{
	struct weir_pool_volume now = s->published;
	uint64_t lease;
	int rc;

	weir_volume_pool_claim(s->volume, &lease, &now.server_claim);
	now.is_mounted = s->mounts.nr;
	if (now.server_claim == s->published.server_claim &&
	    now.is_mounted == s->published.is_mounted)
		return 0;
	rc = weir_pool_client_publish(s->client, &now, lease, NULL);
	if (!rc)
		s->published = now;
	return rc == -ESTALE ? rc : 0;
}

/* Bytes beyond the staging area are refused before the state machine makes room for them. */
static bool is_beyond_staging(const struct file_request *request)
{
	enum wire_fs_op op = file_message_op(request->message, request->length);
	struct wire_fs_transfer t;

	if ((op != FS_WRITE && op != FS_READ) ||
	    request->length < sizeof(struct wire_fs_call) + sizeof(t))
		return false;
	memcpy(&t, request->message + sizeof(struct wire_fs_call), sizeof(t));
	return t.place > STAGING_BYTES - FS_TRANSFER_MAX - FS_BLOCK;
}

/* Return: 0, or a status for a message that does not count. */
static int note_request(struct file_server *s, const struct file_request *request)
{
	enum wire_fs_op op = file_message_op(request->message, request->length);
	struct wire_fs_call call;

	if (!op)
		return -EPROTO;
	memcpy(&call, request->message, sizeof(call));
	return mounts_note(&s->mounts, request->conn, call.mount, op, weir_now_ns());
}

static int run_request(struct file_server *s, struct file_request *request)
{
	struct wire_fs_reply refused = { .status = note_request(s, request), .shared = 1 };
	int rc;

	if (!refused.status && is_beyond_staging(request))
		refused.status = -EINVAL;
	if (refused.status == -ECONNRESET) {
		file_request_end(request, NULL, 0);
		return 0;
	}
	if (!request->call || refused.status) {
		file_request_end(request, &refused, sizeof(refused));
		return 0;
	}
	rc = fsd_service_request(s->service, request, request->message, request->length);
	if (rc < 0)
		file_request_end(request, NULL, 0);
	return rc;
}

static int run_requests(struct file_server *s, struct file_request_list *list)
{
	struct file_request *request;
	int rc = 0;

	while (rc >= 0 && (request = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, request, entry);
		rc = run_request(s, request);
	}
	/* The map says that the volume is mounted before the mount knows. */
	if (rc >= 0 && !s->published.is_mounted && s->mounts.nr)
		rc = publish(s);
	return rc < 0 ? rc : fsd_service_commit(s->service);
}

/* The page of the superblock: an error says that another has the volume. */
static int check_claim(struct file_server *s)
{
	char page[FSD_DISK_PAGE];
	int rc = weir_volume_read(s->volume, 0, page, sizeof(page));

	return staging_is_end(rc) ? rc : 0;
}

/*
 * If the server would prove another key to a donor now, another server takes over: of this donor
 * or another, with the present keys.
 */
static void look_at_keys(struct file_server *s)
{
	if (!atomic_exchange(&s->has_new_keys, false))
		return;
	if (!listener_has_other_pool_key(&s->listener) && !weir_volume_count_old_keys(s->volume))
		return;
	file_server_say(&s->options, WEIR_LOG_INFO, "hands over volume=%s: keys have changed",
			s->name);
	file_server_stop(s);
}

static int tick(struct file_server *s)
{
	int rc = check_claim(s);

	look_at_keys(s);
	if (!rc)
		rc = end_mounts(s);
	return rc ? rc : publish(s);
}

static int serve_mounts(struct file_server *s)
{
	struct file_request_list list = TAILQ_HEAD_INITIALIZER(list);
	uint64_t next_ns = weir_now_ns();
	int rc = 0;

	while (!rc && file_requests_await(&s->requests, &list, next_ns)) {
		rc = run_requests(s, &list);
		if (!rc && weir_now_ns() >= next_ns) {
			rc = tick(s);
			next_ns = weir_now_ns() + TICK_NS;
		}
	}
	file_requests_close(&s->requests, &list);
	return rc;
}

/* Mounts follow a takeover at the pool's pace, and so does the patience with them. */
static int read_grace(struct file_server *s, struct weir_error *error)
{
	struct weir_pool_map *map = calloc(1, sizeof(*map));
	int rc = map ? weir_pool_client_read(s->client, map, error) : -ENOMEM;

	if (!rc)
		s->grace_ns = GRACE_LEASES * map->lease_ms * WEIR_NS_PER_MS;
	free(map);
	return rc;
}

static int open_volume(struct file_server *s, struct weir_error *error)
{
	char text[1024 + WEIR_POOL_NAME_MAX];
	const struct key_set *keys = s->listener.keys;
	const struct weir_volume_options options = {
		.size = sizeof(options),
		.volume = text,
		.key = keys ? keys->pool : NULL,
		.old_key = keys ? keys->old_pool : NULL,
		.device = s->options.device,
		.encryption = client_encryption(),
	};
	int rc = weir_pool_client_open(s->options.pool, &s->client, error);

	if (!rc)
		rc = read_grace(s, error);
	snprintf(text, sizeof(text), "%s/%s", s->options.pool, s->name);
	return rc ? rc : weir_volume_open_files(&options, &s->requests.stops, &s->volume, error);
}

static int open_service(struct file_server *s, struct weir_error *error)
{
	struct weir_volume_info info = { 0 };
	struct fsd_service_host host = {
		.disk = { disk_read, disk_write, 0, s },
		.start = start,
		.settle = settle,
		.reply = reply,
		.wall = wall,
		.random = random_bytes,
		.arg = s,
	};
	int rc;

	(void)weir_volume_info(s->volume, &info, sizeof(info));
	host.disk.bytes = fsd_disk_within(info.bytes);
	rc = fsd_service_open(&host, geteuid(), getegid(), &s->service);
	if (rc == -EPROTO)
		snprintf(error->text, sizeof(error->text),
			 "it holds something else than files of this version of weir");
	else if (rc == -EPROTONOSUPPORT)
		snprintf(error->text, sizeof(error->text),
			 "another version of weir has written its log: let that version serve it, "
			 "and stop it in order");
	else if (rc)
		snprintf(error->text, sizeof(error->text), "its file system: %s", strerror(-rc));
	return rc;
}

static int open_all(struct file_server *s, struct weir_error *error)
{
	struct fsd_service_info info;
	uint64_t start_ns = weir_now_ns(), open_ns = start_ns;
	int rc = open_volume(s, error);

	if (rc)
		return rc;
	open_ns = weir_now_ns();
	s->listener.staging.volume = s->volume;
	rc = open_service(s, error);
	if (!rc)
		rc = listener_open(&s->listener, s->published.address, sizeof(s->published.address),
				   error);
	if (rc)
		return rc;
	fsd_service_mounts(s->service, restore_mount, s);
	fsd_service_info(s->service, &info);
	file_server_say(&s->options, WEIR_LOG_INFO,
			"serves files volume=%s address=%s files=%" PRIu64
			" mounts=%u replayed=%" PRIu64 " volume_ms=%llu files_ms=%llu",
			s->name, s->published.address, info.fsd.files, info.mounts, info.replayed,
			(open_ns - start_ns) / WEIR_NS_PER_MS,
			(weir_now_ns() - open_ns) / WEIR_NS_PER_MS);
	return 0;
}

/* The volume last: its claim ends, and another may have it. */
static void close_all(struct file_server *s)
{
	(void)staging_settle(&s->listener.staging);
	if (s->service)
		fsd_service_close(s->service);
	mounts_fini(&s->mounts);
	listener_close(&s->listener);
	weir_volume_close(s->volume);
	weir_pool_client_close(s->client);
}

static void *run(void *arg)
{
	struct file_server *s = arg;
	struct weir_error error = { "" };
	int rc = open_all(s, &error);

	if (!rc) {
		rc = serve_mounts(s);
		if (!rc)
			rc = fsd_service_finish(s->service);
		file_server_say(&s->options, rc && rc != -ESTALE ? WEIR_LOG_ERROR : WEIR_LOG_INFO,
				"no longer serves files volume=%s id=W407: %s", s->name,
				rc == -ESTALE ? "another donor does" :
				rc	      ? weir_strerror(rc) :
						"stopped");
	} else if (rc != -EBUSY && rc != -ESTALE && rc != -EAGAIN && rc != -ECANCELED) {
		file_server_say(&s->options, WEIR_LOG_WARNING,
				"does not serve files volume=%s id=W408: %s", s->name, error.text);
	}
	close_all(s);
	atomic_store(&s->has_ended, true);
	s->options.on_end(s->options.arg);
	return NULL;
}

static void file_server_free(struct file_server *s)
{
	listener_fini(&s->listener);
	file_requests_fini(&s->requests);
	free(s);
}

struct file_server *file_server_start(const struct file_server_options *options,
				      struct key_set *keys, const char *volume)
{
	struct file_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->options = *options;
	snprintf(s->name, sizeof(s->name), "%s", volume);
	memcpy(s->published.name, s->name, sizeof(s->name));
	snprintf(s->published.server, sizeof(s->published.server), "%s", options->donor);
	s->published.server_incarnation = options->incarnation;
	mounts_init(&s->mounts);
	file_requests_init(&s->requests);
	listener_init(&s->listener, &s->options, &s->requests, keys);
	if (!weir_thread_create(&s->thread, "weir-files", run, s, NULL))
		return s;
	file_server_free(s);
	return NULL;
}

void file_server_stop(struct file_server *s)
{
	file_requests_stop(&s->requests);
}

bool file_server_has_ended(const struct file_server *s)
{
	return atomic_load(&s->has_ended);
}

void file_server_close(struct file_server *s)
{
	pthread_join(s->thread, NULL);
	file_server_free(s);
}

/* A server without a listener opens the volume, and cannot look: other keys end the server. */
int file_server_set_keys(struct file_server *s, struct key_set *keys, struct weir_error *error)
{
	bool is_open;
	int rc;

	if (!s->listener.keys)
		return 0;
	rc = listener_set_keys(&s->listener, keys, &is_open, error);
	if (rc)
		file_server_say(&s->options, WEIR_LOG_ERROR,
				"keys not reloaded, the server ends volume=%s id=W301: %s", s->name,
				error->text);
	atomic_store(&s->has_new_keys, true);
	if (rc || (!is_open && !key_set_has_same_pool(s->listener.keys, keys)))
		file_server_stop(s);
	return rc;
}

const char *file_server_volume(const struct file_server *s)
{
	return s->name;
}
