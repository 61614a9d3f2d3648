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
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/donor_keys.h"
#include "apps/serve/files/mounts.h"
#include "fsd/journal/service.h"
#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "lib/pool/client.h"
#include "lib/volume/pool.h"
#include "lib/volume/target.h"

#define CLIENTS_MAX 128u
#define CLIENTS_MIN 4u
#define TICK_NS WEIR_NS_PER_S
#define GRACE_LEASES 6u /* of a mount that is gone: then its locks are free */

/* A message of a mount. @call: NULL: it has its reply, and only says that the mount is there. */
struct file_request {
	TAILQ_ENTRY(file_request) entry;
	struct file_server *server;
	struct staging_conn *conn;
	struct weir_call *call;
	size_t length;
	uint8_t message[];
};

TAILQ_HEAD(file_request_list, file_request);

/**
 * struct file_server - a server
 * @volume, @service, @client: of the server's thread
 * @mounts: the same; one that is gone for @grace_ns is forgotten
 * @published: this server in the map
 * @opening: held until the listener is known to its callbacks
 * @keys: for donors, to the end; NULL: none
 * @keys_lock: guards @admitted and @listens, and is held while the listener's keys change
 * @admitted: for mounts
 * @listens: staging.donor is open
 * @has_new_keys: the server's thread is to compare its keys with the present ones
 * @lock: guards what follows
 * @arrived: a request, or the end
 * @requests: in order
 * @is_closed: nobody serves requests any more
 */
struct file_server {
	struct file_server_options options;
	char name[WEIR_POOL_NAME_MAX];
	struct weir_pool_client *client;
	struct weir_volume *volume;
	struct fsd_service *service;
	struct staging staging;
	struct file_mounts mounts;
	uint64_t grace_ns;
	struct weir_pool_volume published;
	pthread_mutex_t opening, keys_lock;
	struct key_set *keys, *admitted;
	bool listens;
	atomic_bool has_new_keys;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	struct file_request_list requests;
	bool stops, is_closed, has_ended;
};

__attribute__((format(printf, 3, 4)))
static void say(const struct file_server *s, enum weir_log_level level, const char *format, ...)
{
	char line[640];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	s->options.on_log(s->options.arg, level, line);
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

	staging_start(&s->staging, request ? request->conn : NULL, piece, status);
}

static int settle(void *arg)
{
	return staging_settle(&((struct file_server *)arg)->staging);
}

/* A client that is gone needs no reply. */
static void reply(void *arg, void *to, const void *bytes, size_t length)
{
	struct file_request *request = to;

	(void)arg;
	if (request->call)
		(void)weir_reply(request->call, bytes, length);
	staging_unref(request->conn);
	free(request);
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

/* Without room the kernel would kill the donor when a client fills the area. */
static bool has_room(struct file_server *s, const struct weir_peer *peer)
{
	uint64_t left = available_memory(""), promised = staging_promised(&s->staging);

	left -= lesser(left, promised);
	if (left >= STAGING_AREA)
		return true;
	say(s, WEIR_LOG_ERROR,
	    "no staging area client=%s id=W206: this machine and its control group have %s left "
	    "beside what is lent, and a mount takes %s: lend less, by --memory",
	    weir_peer_name(peer), size_format(left).text, size_format(STAGING_AREA).text);
	return false;
}

static void on_join(void *arg, struct weir_peer *peer)
{
	struct file_server *s = arg;

	pthread_mutex_lock(&s->opening);
	pthread_mutex_unlock(&s->opening);
	if (!(weir_peer_rights(peer) & WEIR_RIGHT_FILES) || !has_room(s, peer))
		return;
	if (!staging_join(&s->staging, peer))
		say(s, WEIR_LOG_ERROR, "no staging area client=%s id=W206: out of memory",
		    weir_peer_name(peer));
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	staging_leave(&((struct file_server *)arg)->staging, peer);
}

static void reply_staging(const struct staging_conn *conn, struct weir_call *call)
{
	const struct {
		struct wire_fs_reply reply;
		struct wire_fs_chunk chunk;
	} out = {
		.reply.shared = 1,
		.chunk = { conn->token.addr, conn->token.length, conn->token.rkey, 0 },
	};

	(void)weir_reply(call, &out, sizeof(out));
}

static enum wire_fs_op op_of(const void *message, size_t length)
{
	struct wire_fs_head head;

	if (length < sizeof(struct wire_fs_call) + sizeof(head))
		return 0;
	memcpy(&head, (const char *)message + sizeof(struct wire_fs_call), sizeof(head));
	return head.op;
}

/* Queues a message, unless the server has ended. */
static void enqueue(struct file_server *s, struct file_request *request)
{
	bool is_closed;

	staging_ref(request->conn);
	pthread_mutex_lock(&s->lock);
	is_closed = s->is_closed;
	if (!is_closed) {
		TAILQ_INSERT_TAIL(&s->requests, request, entry);
		pthread_cond_signal(&s->arrived);
	}
	pthread_mutex_unlock(&s->lock);
	if (is_closed)
		reply(s, request, NULL, 0);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	struct file_server *s = arg;
	struct staging_conn *conn = staging_find(&s->staging, peer);
	bool may = weir_peer_rights(peer) & WEIR_RIGHT_FILES;
	const struct wire_fs_reply none = { .status = may ? -ENOMEM : -EACCES, .shared = 1 };
	struct file_request *request = NULL;

	if (!call)
		return;
	if (conn && op_of(data, length) == FS_VOLUME) {
		reply_staging(conn, call);
		call = NULL;
	}
	if (conn)
		request = malloc(sizeof(*request) + length);
	if (!request) {
		if (call)
			(void)weir_reply(call, &none, sizeof(none));
		return;
	}
	request->server = s;
	request->conn = conn;
	request->call = call;
	request->length = length;
	memcpy(request->message, data, length);
	enqueue(s, request);
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	struct file_server *s = arg;

	s->options.on_log(s->options.arg, level, line);
}

/* A mount without an entry, for want of memory, would keep its locks without an end. */
static void restore_mount(void *arg, uint64_t id)
{
	struct file_server *s = arg;

	if (mounts_restore(&s->mounts, id, weir_now_ns()))
		atomic_store(&s->staging.lost, -ENOMEM);
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
	enum wire_fs_op op = op_of(request->message, request->length);
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
	enum wire_fs_op op = op_of(request->message, request->length);
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
		reply(s, request, NULL, 0);
		return 0;
	}
	if (!request->call || refused.status) {
		reply(s, request, &refused, sizeof(refused));
		return 0;
	}
	rc = fsd_service_request(s->service, request, request->message, request->length);
	if (rc < 0)
		reply(s, request, NULL, 0);
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

/* Whether the server would prove another key to a donor if it started now. */
static bool must_start_again(struct file_server *s)
{
	bool has_other;

	pthread_mutex_lock(&s->keys_lock);
	has_other = s->keys && !key_set_has_same_pool(s->keys, s->admitted);
	pthread_mutex_unlock(&s->keys_lock);
	return has_other || weir_volume_count_old_keys(s->volume);
}

/* Another server takes over, of this donor or another, with the present keys. */
static void look_at_keys(struct file_server *s)
{
	if (!atomic_exchange(&s->has_new_keys, false) || !must_start_again(s))
		return;
	say(s, WEIR_LOG_INFO, "hands over volume=%s: keys have changed", s->name);
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

/* Waits for requests until @until_ns. Return: whether the server goes on. */
static bool await_requests(struct file_server *s, struct file_request_list *list,
			   uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / WEIR_NS_PER_S),
		.tv_nsec = (long)(until_ns % WEIR_NS_PER_S),
	};
	bool goes_on;

	pthread_mutex_lock(&s->lock);
	while (TAILQ_EMPTY(&s->requests) && !s->stops && weir_now_ns() < until_ns)
		pthread_cond_timedwait(&s->arrived, &s->lock, &until);
	TAILQ_CONCAT(list, &s->requests, entry);
	goes_on = !s->stops;
	pthread_mutex_unlock(&s->lock);
	return goes_on;
}

static int serve_mounts(struct file_server *s)
{
	struct file_request_list list = TAILQ_HEAD_INITIALIZER(list);
	uint64_t next_ns = weir_now_ns();
	int rc = 0;

	while (!rc && await_requests(s, &list, next_ns)) {
		rc = run_requests(s, &list);
		if (!rc && weir_now_ns() >= next_ns) {
			rc = tick(s);
			next_ns = weir_now_ns() + TICK_NS;
		}
	}
	pthread_mutex_lock(&s->lock);
	TAILQ_CONCAT(&list, &s->requests, entry);
	s->is_closed = true;
	pthread_mutex_unlock(&s->lock);
	while (!TAILQ_EMPTY(&list)) {
		struct file_request *request = TAILQ_FIRST(&list);

		TAILQ_REMOVE(&list, request, entry);
		reply(s, request, NULL, 0);
	}
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
	const struct weir_volume_options options = {
		.size = sizeof(options),
		.volume = text,
		.key = s->keys ? s->keys->pool : NULL,
		.old_key = s->keys ? s->keys->old_pool : NULL,
		.device = s->options.device,
		.encryption = client_encryption(),
	};
	int rc = weir_pool_client_open(s->options.pool, &s->client, error);

	if (!rc)
		rc = read_grace(s, error);
	snprintf(text, sizeof(text), "%s/%s", s->options.pool, s->name);
	return rc ? rc : weir_volume_open_files(&options, &s->stops, &s->volume, error);
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

/* The donor's address with any free port. */
static void choose_listen(const struct file_server *s, char *listen, size_t size)
{
	const char *colon = strrchr(s->options.listen, ':');

	snprintf(listen, size, "%.*s:0", (int)(colon ? colon - s->options.listen : 0),
		 s->options.listen);
}

/* The donor's thread may need @opening before it can take keys. */
static int open_donor(struct file_server *s, const struct weir_donor_options *options,
		      struct weir_error *error)
{
	int rc;

	pthread_mutex_lock(&s->keys_lock);
	pthread_mutex_lock(&s->opening);
	rc = weir_donor_open(options, &s->staging.donor, error);
	pthread_mutex_unlock(&s->opening);
	if (!rc && s->admitted)
		rc = weir_donor_keys_set(s->staging.donor, s->admitted->key, s->admitted->nr,
					 error);
	s->listens = !rc;
	pthread_mutex_unlock(&s->keys_lock);
	return rc;
}

/* The staging areas together take no more memory than the donor lends, or four areas. */
static unsigned int clients_max(const struct file_server *s)
{
	uint64_t areas = s->options.memory_bytes / STAGING_AREA;

	return (unsigned int)lesser(greater(areas, CLIENTS_MIN), CLIENTS_MAX);
}

/*
 * A key has half of the connections and their memory at most, so that another key's mounts can
 * come. Clients create no regions here: the least quota keeps them from it.
 */
static int open_listener(struct file_server *s, struct weir_error *error)
{
	char listen[WEIR_POOL_NAME_MAX + 8];
	unsigned int clients = clients_max(s), of_key = s->admitted ? clients / 2 : clients;
	struct weir_donor_info info;
	const struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = listen,
		.device = s->options.device,
		.tenants_max = s->admitted ? DONOR_TENANTS_MAX : 0,
		.identity = s->options.identity,
		.memory_bytes = clients * STAGING_AREA,
		.clients_max = clients,
		.key_clients_max = of_key,
		.key_bytes_max = of_key * STAGING_AREA,
		.quota_bytes = 1,
		.no_huge_pages = true,
		.encryption = client_encryption(),
		.on_message = on_message,
		.on_join = on_join,
		.on_leave = on_leave,
		.on_log = on_log,
		.arg = s,
	};
	int rc;

	choose_listen(s, listen, sizeof(listen));
	rc = open_donor(s, &options, error);
	if (rc)
		return rc;
	weir_donor_info(s->staging.donor, &info, sizeof(info));
	snprintf(s->published.address, sizeof(s->published.address), "%s", info.address);
	return 0;
}

static int open_all(struct file_server *s, struct weir_error *error)
{
	struct fsd_service_info info;
	uint64_t start_ns = weir_now_ns(), open_ns = start_ns;
	int rc = open_volume(s, error);

	if (rc)
		return rc;
	open_ns = weir_now_ns();
	s->staging.volume = s->volume;
	rc = open_service(s, error);
	if (!rc)
		rc = open_listener(s, error);
	if (rc)
		return rc;
	fsd_service_mounts(s->service, restore_mount, s);
	fsd_service_info(s->service, &info);
	say(s, WEIR_LOG_INFO,
	    "serves files volume=%s address=%s files=%" PRIu64 " mounts=%u replayed=%" PRIu64
	    " volume_ms=%llu files_ms=%llu",
	    s->name, s->published.address, info.fsd.files, info.mounts, info.replayed,
	    (open_ns - start_ns) / WEIR_NS_PER_MS, (weir_now_ns() - open_ns) / WEIR_NS_PER_MS);
	return 0;
}

/* The volume last: its claim ends, and another may have it. */
static void close_all(struct file_server *s)
{
	(void)staging_settle(&s->staging);
	if (s->service)
		fsd_service_close(s->service);
	mounts_fini(&s->mounts);
	pthread_mutex_lock(&s->keys_lock);
	s->listens = false;
	pthread_mutex_unlock(&s->keys_lock);
	if (s->staging.donor)
		weir_donor_close(s->staging.donor);
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
		say(s, rc && rc != -ESTALE ? WEIR_LOG_ERROR : WEIR_LOG_INFO,
		    "no longer serves files volume=%s id=W407: %s", s->name,
		    rc == -ESTALE ? "another donor does" :
		    rc		  ? weir_strerror(rc) :
				    "stopped");
	} else if (rc != -EBUSY && rc != -ESTALE && rc != -EAGAIN && rc != -ECANCELED) {
		say(s, WEIR_LOG_WARNING, "does not serve files volume=%s id=W408: %s", s->name,
		    error.text);
	}
	close_all(s);
	pthread_mutex_lock(&s->lock);
	s->has_ended = true;
	pthread_mutex_unlock(&s->lock);
	s->options.on_end(s->options.arg);
	return NULL;
}

static void file_server_free(struct file_server *s)
{
	staging_fini(&s->staging);
	pthread_cond_destroy(&s->arrived);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->opening);
	pthread_mutex_destroy(&s->keys_lock);
	key_set_put(s->keys);
	key_set_put(s->admitted);
	free(s);
}

struct file_server *file_server_start(const struct file_server_options *options,
				      struct key_set *keys, const char *volume)
{
	struct file_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t monotonic;

	if (!s)
		return NULL;
	s->options = *options;
	snprintf(s->name, sizeof(s->name), "%s", volume);
	memcpy(s->published.name, s->name, sizeof(s->name));
	snprintf(s->published.server, sizeof(s->published.server), "%s", options->donor);
	s->published.server_incarnation = options->incarnation;
	TAILQ_INIT(&s->requests);
	mounts_init(&s->mounts);
	staging_init(&s->staging);
	if (keys) {
		s->keys = key_set_get(keys);
		s->admitted = key_set_get(keys);
	}
	pthread_mutex_init(&s->opening, NULL);
	pthread_mutex_init(&s->keys_lock, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->arrived, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!weir_thread_create(&s->thread, "weir-files", run, s, NULL))
		return s;
	file_server_free(s);
	return NULL;
}

void file_server_stop(struct file_server *s)
{
	pthread_mutex_lock(&s->lock);
	__atomic_store_n(&s->stops, true, __ATOMIC_RELEASE);
	pthread_cond_signal(&s->arrived);
	pthread_mutex_unlock(&s->lock);
}

bool file_server_has_ended(const struct file_server *server)
{
	struct file_server *s = (struct file_server *)server;
	bool has_ended;

	pthread_mutex_lock(&s->lock);
	has_ended = s->has_ended;
	pthread_mutex_unlock(&s->lock);
	return has_ended;
}

void file_server_close(struct file_server *s)
{
	pthread_join(s->thread, NULL);
	file_server_free(s);
}

/* A server without a listener opens the volume, and cannot look: other keys end the server. */
int file_server_set_keys(struct file_server *s, struct key_set *keys, struct weir_error *error)
{
	bool is_opening;
	int rc = 0;

	if (!s->keys)
		return 0;
	pthread_mutex_lock(&s->keys_lock);
	key_set_put(s->admitted);
	s->admitted = key_set_get(keys);
	is_opening = !s->listens;
	if (s->listens)
		rc = weir_donor_keys_set(s->staging.donor, keys->key, keys->nr, error);
	if (rc)
		say(s, WEIR_LOG_ERROR, "keys not reloaded, the server ends volume=%s id=W301: %s",
		    s->name, error->text);
	pthread_mutex_unlock(&s->keys_lock);
	atomic_store(&s->has_new_keys, true);
	if (rc || (is_opening && !key_set_has_same_pool(s->keys, keys)))
		file_server_stop(s);
	return rc;
}

const char *file_server_volume(const struct file_server *s)
{
	return s->name;
}
