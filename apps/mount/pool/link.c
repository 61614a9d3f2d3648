/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/pool/link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/region.h>
#include <weir/session.h>

#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/number.h"
#include "apps/mount/mount.h"
#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "lib/pool/client.h"
#include "lib/pool/pin.h"

#define SESSION_NS (2 * WEIR_NS_PER_S) /* a server that is silent for so long is suspected */
#define LOOK_MS 200u /* at the map, while there is no server */
#define SAY_NS (3 * WEIR_NS_PER_S) /* a longer pause is worth a message */
#define OPEN_NS (60 * WEIR_NS_PER_S) /* for the first server */
#define REFUSALS_MAX 3u /* of the key, before the first server */
#define REFUSED_MS_MAX 2000u /* between two tries at a server that refuses */

bool link_is_pool(const char *donor)
{
	return !strncmp(donor, "pool:", 5) || !strncmp(donor, "file:", 5) ||
	       !strncmp(donor, "etcd:", 5);
}

void link_lose(struct link *link)
{
	pthread_mutex_lock(&link->lock);
	link->state = LINK_LOST;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
}

static void on_down(void *arg, int status)
{
	struct link *link = arg;

	(void)status;
	pthread_mutex_lock(&link->lock);
	link->is_broken = true;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
}

/* Asks for the staging area. It shows, too, that the server is alive. */
static int attach_staging(struct link *link, struct weir_session *session,
			  struct weir_region **staging)
{
	struct {
		struct wire_fs_call call;
		struct wire_fs_volume volume;
	} ask = { .call.mount = link->id, .volume.head.op = FS_VOLUME };
	struct {
		struct wire_fs_reply reply;
		struct wire_fs_chunk chunk;
	} got = { 0 };
	struct weir_region_token token;
	size_t length;
	int rc = weir_call(session, &ask, sizeof(ask), &got, sizeof(got), &length);

	if (rc)
		return rc;
	if (length < sizeof(got.reply) || got.reply.status)
		return length < sizeof(got.reply) ? -EPROTO : got.reply.status;
	if (length != sizeof(got) || got.chunk.length < FS_SLOT_BYTES)
		return -EPROTO;
	token = (struct weir_region_token){
		.addr = got.chunk.addr,
		.length = got.chunk.length,
		.rkey = got.chunk.rkey,
	};
	return weir_region_attach(session, &token, staging);
}

/*
 * The server of files is a part of its donor, and has the donor's identity. Without the donor's
 * entry, the map does not say which identity that is.
 */
static int pin_server(struct link *link, const struct weir_pool_volume *volume,
		      struct weir_session_options *options, struct weir_error *error)
{
	uint16_t donor = weir_pool_map_donor(link->map, volume->server);

	if (donor == WEIR_POOL_NO_DONOR ||
	    link->map->donor[donor].incarnation != volume->server_incarnation) {
		snprintf(error->text, sizeof(error->text),
			 "donor %s, which serves volume %s, is not in the pool now", volume->server,
			 link->volume);
		return -EAGAIN;
	}
	options->donor_identity = weir_pool_identity(&link->map->donor[donor]);
	return weir_pool_pin(volume->server, options->donor_identity, options->key, error);
}

static int connect_server(struct link *link, const struct weir_pool_volume *volume,
			  struct weir_error *error)
{
	struct weir_session_tuning tuning = { .size = sizeof(tuning) };
	struct weir_session_options options = {
		.size = sizeof(options),
		.tuning = &tuning,
		.device = link->mount->options->device,
		.key = link->mount->key,
		.encryption = client_encryption(),
		.timeout_ns = SESSION_NS,
		.on_down = on_down,
		.arg = link,
	};
	struct weir_region *staging = NULL;
	struct weir_session *session;
	int rc;

	client_window(&tuning);
	pthread_mutex_lock(&link->lock);
	link->is_broken = false;
	pthread_mutex_unlock(&link->lock);
	rc = pin_server(link, volume, &options, error);
	if (!rc)
		rc = weir_session_open(volume->address, &options, &session, error);
	if (rc)
		return rc;
	rc = attach_staging(link, session, &staging);
	if (rc) {
		snprintf(error->text, sizeof(error->text), "the server at %s: %s", volume->address,
			 weir_strerror(rc));
		weir_session_close(session);
		return rc;
	}
	pthread_mutex_lock(&link->lock);
	link->session = session;
	link->staging = staging;
	link->claim = volume->server_claim;
	link->slots = (unsigned int)(weir_region_length(staging) / FS_SLOT_BYTES);
	if (link->slots > LINK_SLOTS_MAX)
		link->slots = LINK_SLOTS_MAX;
	link->free_slots = UINT64_MAX >> (64 - link->slots);
	link_reset_calls(link);
	if (link->state == LINK_DOWN)
		link->state = LINK_UP;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
	return 0;
}

/* Ends the connection: all its calls have had their callbacks afterwards. */
static void disconnect(struct link *link)
{
	struct weir_session *session;
	struct weir_region *staging;

	pthread_mutex_lock(&link->lock);
	if (link->state == LINK_UP)
		link->state = LINK_DOWN;
	while (link->users)
		pthread_cond_wait(&link->changed, &link->lock);
	session = link->session;
	staging = link->staging;
	link->session = NULL;
	link->staging = NULL;
	pthread_mutex_unlock(&link->lock);
	if (!session)
		return;
	weir_region_close(staging);
	weir_session_close(session);
}

/* Sleeps until the connection has an error, or the mount ends. */
static void await_error(struct link *link)
{
	pthread_mutex_lock(&link->lock);
	while (link->state == LINK_UP && !link->is_broken && !link->stops)
		pthread_cond_wait(&link->changed, &link->lock);
	pthread_mutex_unlock(&link->lock);
}

static bool is_over(struct link *link)
{
	bool is_over;

	pthread_mutex_lock(&link->lock);
	is_over = link->stops || link->state == LINK_LOST ||
		  (link->ends_ns && weir_now_ns() > link->ends_ns);
	pthread_mutex_unlock(&link->lock);
	return is_over;
}

/* The volume in the map, or NULL with the reason. */
static const struct weir_pool_volume *find_volume(struct link *link, struct weir_error *error)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(link->map, link->volume);

	if (!volume)
		snprintf(error->text, sizeof(error->text),
			 "pool %s has no volume %s: see 'weir pool volume list'", link->map->name,
			 link->volume);
	else if (!volume->is_files)
		snprintf(error->text, sizeof(error->text),
			 "volume %s holds no files: 'weir pool volume create --files' makes one "
			 "that does",
			 link->volume);
	return volume && volume->is_files ? volume : NULL;
}

/* Whether an error of a new connection says that nobody is there. */
static bool is_silence(int rc)
{
	return rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ECONNREFUSED ||
	       rc == -ECONNRESET || rc == -ENOTCONN;
}

/*
 * One try to connect. A server that cannot be reached is suspected, so that another donor takes the
 * volume over; one that refuses a mount is not at fault. Return: 0; -EAGAIN no server yet; an
 * errno.
 */
static int try_server(struct link *link, struct weir_error *error)
{
	const struct weir_pool_volume *volume;
	int rc = weir_pool_client_read(link->client, link->map, error);

	if (rc)
		return rc;
	volume = find_volume(link, error);
	if (!volume)
		return -ENOENT;
	if (!weir_pool_map_is_served(volume)) {
		snprintf(error->text, sizeof(error->text), "no donor of pool %s serves volume %s",
			 link->map->name, link->volume);
		return -EAGAIN;
	}
	rc = connect_server(link, volume, error);
	if (is_silence(rc))
		(void)weir_pool_client_suspect(link->client, link->volume, volume->server_claim,
					       NULL);
	return rc;
}

/* A wait for a map that is out of reach ends at once. */
static void rest(struct link *link)
{
	int rc = weir_pool_client_wait(link->client, link->map, LOOK_MS, NULL);

	if (rc && rc != -ETIMEDOUT)
		poll(NULL, 0, (int)LOOK_MS);
}

/**
 * struct link_refusals - those of the mount's key by one server
 * @claim: of the server
 * @since_ns: the first; @number: how many in a row, 0 for none
 * @has_said: the log has them
 */
struct link_refusals {
	uint64_t claim, since_ns;
	unsigned int number;
	bool has_said;
};

static uint64_t claim_of(struct link *link)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(link->map, link->volume);

	return volume ? volume->server_claim : 0;
}

/*
 * Nobody proves a refusal: it may come from another process at the address of a dead server, or
 * from a donor that will read the key soon. So the mount goes on, and says so after a lease.
 */
static void note_refusal(struct link *link, int rc, struct link_refusals *refusals,
			 const struct weir_error *error)
{
	uint64_t now_ns = weir_now_ns();

	if (rc != -EKEYREJECTED || refusals->claim != claim_of(link))
		*refusals = (struct link_refusals){ .has_said = rc && refusals->has_said };
	if (rc != -EKEYREJECTED)
		return;
	if (!refusals->number++) {
		refusals->claim = claim_of(link);
		refusals->since_ns = now_ns;
	}
	if (refusals->has_said || refusals->number < REFUSALS_MAX ||
	    now_ns < refusals->since_ns + link->map->lease_ms * WEIR_NS_PER_MS)
		return;
	mount_log(WEIR_LOG_ERROR,
		  "refused volume=%s id=W507: %s. The mount waits until a server admits its key",
		  link->volume, error->text);
	refusals->has_said = true;
}

/* The more often one server has refused, the longer; another server in the map ends the rest. */
static void rest_between(struct link *link, const struct link_refusals *refusals)
{
	uint64_t pause_ms = LOOK_MS;
	uint64_t end_ns;

	if (refusals->number)
		pause_ms = lesser((uint64_t)LOOK_MS << lesser(refusals->number, 8), REFUSED_MS_MAX);
	end_ns = weir_now_ns() + pause_ms * WEIR_NS_PER_MS;
	do {
		rest(link);
		if (!refusals->number || weir_pool_client_read(link->client, link->map, NULL))
			return;
	} while (!is_over(link) && weir_now_ns() < end_ns && claim_of(link) == refusals->claim);
}

/*
 * Tries until there is a server, or the mount ends: with the volume, too, but neither with a map
 * that cannot be found for a while nor with a refusal. A long pause is worth two messages.
 */
static void find_server(struct link *link)
{
	uint64_t start_ns = weir_now_ns();
	struct weir_error error = { "" };
	struct link_refusals refusals = { .number = 0 };
	bool has_said = false;
	int rc = -EAGAIN;

	while (rc && !is_over(link)) {
		rc = try_server(link, &error);
		note_refusal(link, rc, &refusals, &error);
		if (rc == -ENOENT && !find_volume(link, &error))
			link_lose(link);
		if (rc && !has_said && weir_now_ns() > start_ns + SAY_NS) {
			mount_log(WEIR_LOG_WARNING,
				  "waits volume=%s id=W506: waiting for a donor that serves it: %s",
				  link->volume, error.text);
			has_said = true;
		}
		if (rc && !is_over(link))
			rest_between(link, &refusals);
	}
	if (!rc && has_said)
		mount_log(WEIR_LOG_INFO, "served again volume=%s seconds=%llu", link->volume,
			  (weir_now_ns() - start_ns) / WEIR_NS_PER_S);
}

static bool is_up(struct link *link)
{
	bool is_up;

	pthread_mutex_lock(&link->lock);
	is_up = link->state == LINK_UP && !link->stops;
	pthread_mutex_unlock(&link->lock);
	return is_up;
}

static void *keep(void *arg)
{
	struct link *link = arg;
	bool is_asked;

	do {
		await_error(link);
		disconnect(link);
		find_server(link);
		link_begin_calls(link);
	} while (is_up(link));
	disconnect(link);
	pthread_mutex_lock(&link->lock);
	is_asked = link->stops || link->ends_ns;
	pthread_mutex_unlock(&link->lock);
	if (!is_asked)
		mount_lost(link->mount);
	pthread_mutex_lock(&link->lock);
	link->state = LINK_LOST;
	link_reset_calls(link);
	pthread_mutex_unlock(&link->lock);
	link_fail_calls(link);
	return NULL;
}

/* Whether one of the signals that end a mount is pending. */
static bool is_interrupted(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
				     sigismember(&set, SIGHUP));
}

/* Waits for the first server. Return: an exit status. */
static int await_server(struct link *link)
{
	const char *cmd = link->mount->options->cmd;
	uint64_t start_ns = weir_now_ns();
	struct weir_error error = { "" };
	unsigned int refusals = 0;
	bool has_said = false;
	int rc;

	while ((rc = try_server(link, &error))) {
		bool may_come = rc != -ENOENT && rc != -EACCES && rc != -ENODEV &&
				rc != -EPROTO && rc != -EINVAL;

		/* A server that ends may look like one that refuses the key. */
		refusals += rc == -EKEYREJECTED;
		may_come &= refusals < REFUSALS_MAX;

		if (may_come && link->map->stored && !weir_pool_map_count_donors(link->map))
			return failure(cmd, "pool %s has no donors: start 'weir serve --pool'",
				       link->map->name);
		if (!may_come || weir_now_ns() > start_ns + OPEN_NS)
			return failure(cmd, "%s", error.text);
		if (is_interrupted())
			return failure(cmd, "interrupted while waiting: %s", error.text);
		if (!has_said && weir_now_ns() > start_ns + SAY_NS)
			fprintf(stderr, "%s: waiting: %s\n", cmd, error.text);
		has_said |= weir_now_ns() > start_ns + SAY_NS;
		rest(link);
	}
	return EXIT_OK;
}

/* Splits PLACE/VOLUME. */
static int split_where(struct link *link, const char *where, char *pool, size_t size)
{
	const char *slash = strrchr(where, '/');

	if (!slash || slash == where || (size_t)(slash - where) >= size ||
	    !weir_pool_map_is_name(slash + 1))
		return failure(link->mount->options->cmd, "%s: expected POOL/VOLUME", where);
	snprintf(pool, size, "%.*s", (int)(slash - where), where);
	snprintf(link->volume, sizeof(link->volume), "%s", slash + 1);
	return EXIT_OK;
}

int link_open(struct link *link, struct mount *m, const char *where)
{
	struct weir_error error;
	char pool[1024];
	int status;

	link->mount = m;
	pthread_mutex_init(&link->lock, NULL);
	pthread_cond_init(&link->changed, NULL);
	TAILQ_INIT(&link->calls);
	TAILQ_INIT(&link->late);
	while (!link->id)
		randombytes_buf(&link->id, sizeof(link->id));
	link->map = calloc(1, sizeof(*link->map));
	if (!link->map)
		return failure(m->options->cmd, "out of memory");
	status = split_where(link, where, pool, sizeof(pool));
	if (!status && weir_pool_client_open(pool, &link->client, &error))
		status = failure(m->options->cmd, "%s", error.text);
	if (!status)
		status = await_server(link);
	if (!status && weir_thread_create(&link->thread, "weir-link", keep, link, &error))
		status = failure(m->options->cmd, "%s", error.text);
	link->has_thread = !status;
	return status;
}

void link_stop(struct link *link)
{
	pthread_mutex_lock(&link->lock);
	link->ends_ns = weir_now_ns() + link->mount->options->timeout * WEIR_NS_PER_S;
	pthread_mutex_unlock(&link->lock);
}

static bool is_in_time(void *arg)
{
	return !is_over(arg);
}

/* Without it the server keeps opens and locks for a while. */
static void say_goodbye(struct link *link)
{
	struct wire_fs_head head = { .op = FS_UNMOUNT };
	struct wire_fs_reply reply;
	size_t length;

	(void)link_call_wait(link, &head, sizeof(head), &reply, sizeof(reply), &length, is_in_time,
			     link);
}

void link_close(struct link *link)
{
	if (link->has_thread)
		say_goodbye(link);
	pthread_mutex_lock(&link->lock);
	link->stops = true;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
	if (link->has_thread)
		pthread_join(link->thread, NULL);
	else
		disconnect(link);
	link_free_calls(link);
	weir_pool_client_close(link->client);
	free(link->map);
	pthread_cond_destroy(&link->changed);
	pthread_mutex_destroy(&link->lock);
}
