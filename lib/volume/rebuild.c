/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/volume/rebuild.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/volume.h>

#include "core/pool/rebuild.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/base/thread.h"
#include "lib/conn/key.h"
#include "lib/pool/client.h"
#include "lib/volume/pool.h"
#include "lib/volume/reclaim.h"

#define LEASE_MS 1500 /* until the map is read */

/* Copies of a key and of the one before it; either may be missing. */
struct rebuild_keys {
	bool has_key, has_old;
	struct weir_key key, old;
};

/**
 * struct weir_volume_rebuilder - the thread
 * @self: the donor; its @stops is below
 * @pool, @device, @log: see the options
 * @keys: of the thread; @next_keys: to take, or NULL; under @lock
 * @client: of the thread
 * @map: as last read; @turns: which of its volumes this donor fills next
 * @users, @revision: of the map when this donor last took unused memory back
 * @look_ns: when the donor looks for unused memory next, unless @users change
 * @retry_ns: the same after a failure, whatever changes; @failures in a row
 * @stops: the thread shall end; atomic
 */
struct weir_volume_rebuilder {
	struct weir_volume_rebuild self;
	char *pool, *device;
	pthread_mutex_t lock;
	struct rebuild_keys *keys, *next_keys;
	uint64_t encryption;
	struct weir_log log;
	struct weir_pool_client *client;
	struct weir_pool_map map;
	struct weir_pool_rebuild turns;
	uint64_t users, revision, look_ns, retry_ns;
	unsigned int failures;
	pthread_t thread;
	bool stops;
};

static bool stops(const struct weir_volume_rebuilder *r)
{
	return __atomic_load_n(&r->stops, __ATOMIC_ACQUIRE);
}

/* Return: NULL: out of memory. */
static struct rebuild_keys *copy_keys(const struct weir_key *key, const struct weir_key *old_key)
{
	struct rebuild_keys *keys = weir_secret_alloc(sizeof(*keys));

	if (!keys)
		return NULL;
	keys->has_key = key;
	keys->has_old = old_key;
	if (key)
		keys->key = *key;
	if (old_key)
		keys->old = *old_key;
	return keys;
}

static const struct weir_key *key_of(const struct weir_volume_rebuilder *r)
{
	return r->keys->has_key ? &r->keys->key : NULL;
}

/* Between two uses of the keys. */
static void take_next_keys(struct weir_volume_rebuilder *r)
{
	struct rebuild_keys *unused = NULL;

	pthread_mutex_lock(&r->lock);
	if (r->next_keys) {
		unused = r->keys;
		r->keys = r->next_keys;
		r->next_keys = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	weir_secret_free(unused);
}

int weir_volume_rebuilder_set_keys(struct weir_volume_rebuilder *r, const struct weir_key *key,
				   const struct weir_key *old_key)
{
	struct rebuild_keys *keys = copy_keys(key, old_key), *unused;

	if (!keys)
		return -ENOMEM;
	pthread_mutex_lock(&r->lock);
	unused = r->next_keys;
	r->next_keys = keys;
	pthread_mutex_unlock(&r->lock);
	weir_secret_free(unused);
	return 0;
}

static int fill(struct weir_volume_rebuilder *r, const char *name, uint64_t *bytes,
		struct weir_error *error)
{
	char text[1024 + WEIR_POOL_NAME_MAX];
	struct weir_volume_options options = {
		.size = sizeof(options),
		.volume = text,
		.key = key_of(r),
		.old_key = r->keys->has_old ? &r->keys->old : NULL,
		.device = r->device,
		.encryption = r->encryption,
	};
	struct weir_volume_info info = { 0 };
	struct weir_volume *volume;
	int rc;

	snprintf(text, sizeof(text), "%s/%s", r->pool, name);
	rc = weir_volume_start(&options, &r->self, &volume, error);
	if (rc)
		return rc;
	rc = weir_volume_pool_wait_open(volume, error);
	(void)weir_volume_info(volume, &info, sizeof(info));
	*bytes = info.copied_bytes;
	weir_volume_close(volume);
	return rc;
}

static enum weir_pool_rebuild_end end_of(int rc)
{
	switch (rc) {
	case 0:
		return WEIR_POOL_REBUILD_DONE;
	case -EBUSY:
		return WEIR_POOL_REBUILD_HAS_OTHER;
	case -ESTALE:
	case -ECANCELED:
		return WEIR_POOL_REBUILD_GAVE_WAY;
	default:
		return WEIR_POOL_REBUILD_FAILED;
	}
}

static void rebuild(struct weir_volume_rebuilder *r, uint16_t index)
{
	const char *name = r->map.volume[index].name;
	uint64_t start_ns = weir_now_ns(), bytes = 0;
	struct weir_error error = { "" };
	int rc = fill(r, name, &bytes, &error);
	uint64_t ms = (weir_now_ns() - start_ns) / WEIR_NS_PER_MS;

	if (!rc)
		weir_log_line(&r->log, WEIR_LOG_INFO,
			      "rebuilt pool=%s volume=%s bytes=%" PRIu64 " ms=%" PRIu64,
			      r->map.name, name, bytes, ms);
	else if (end_of(rc) == WEIR_POOL_REBUILD_FAILED)
		weir_log_line(&r->log, WEIR_LOG_WARNING,
			      "not rebuilt pool=%s volume=%s id=W405: %s", r->map.name, name,
			      error.text);
	weir_pool_rebuild_ended(&r->turns, index, end_of(rc), weir_now_ns());
}

/*
 * Takes memory back that lost its user in the map. A user may have come and gone between two looks
 * at the map, which only the revision tells: for those, a look in each lease is enough.
 */
static void reclaim(struct weir_volume_rebuilder *r)
{
	const struct weir_volume_reclaim self = { .donor = r->self.donor,
						  .device = r->device,
						  .incarnation = r->self.incarnation,
						  .key = key_of(r),
						  .encryption = r->encryption };
	uint64_t users = weir_volume_reclaim_users(&self, &r->map), now_ns = weir_now_ns();
	uint64_t revision = r->map.revision;
	struct weir_volume_reclaimed back;
	struct weir_error error = { "" };

	if (now_ns < r->retry_ns ||
	    (users == r->users && (revision == r->revision || now_ns < r->look_ns)))
		return;
	r->look_ns = now_ns + r->map.lease_ms * WEIR_NS_PER_MS;
	if (weir_volume_reclaim(&self, r->client, &r->map, &back, &error)) {
		weir_log_line(&r->log, WEIR_LOG_WARNING,
			      "unused memory not taken back pool=%s id=W406: %s", r->map.name,
			      error.text);
		r->retry_ns = weir_now_ns() +
			      weir_pool_rebuild_pause_ns(r->map.lease_ms, ++r->failures);
	} else {
		r->failures = 0;
		if (!back.left) { /* else, as after a failure, the donor looks again */
			r->users = users;
			r->revision = revision;
		}
	}
	if (back.regions)
		weir_log_line(&r->log, WEIR_LOG_INFO,
			      "took unused memory back pool=%s regions=%u bytes=%" PRIu64,
			      r->map.name, back.regions, back.bytes);
}

static void *run(void *arg)
{
	struct weir_volume_rebuilder *r = arg;

	while (!stops(r)) {
		uint64_t due_ns = UINT64_MAX;
		bool is_silent = weir_pool_client_read(r->client, &r->map, NULL);
		uint16_t volume = r->map.nr_volumes;

		take_next_keys(r);
		if (!is_silent) {
			reclaim(r);
			volume = weir_pool_rebuild_next(&r->turns, &r->map, weir_now_ns(),
							&due_ns);
		}
		if (volume < r->map.nr_volumes)
			rebuild(r, volume);
		if (!stops(r))
			weir_pool_client_rest(r->client, &r->map, is_silent, due_ns);
	}
	return NULL;
}

static void rebuilder_free(struct weir_volume_rebuilder *r)
{
	weir_pool_client_close(r->client);
	weir_secret_free(r->keys);
	weir_secret_free(r->next_keys);
	pthread_mutex_destroy(&r->lock);
	free(r->pool);
	free(r->device);
	free(r);
}

int weir_volume_rebuilder_start(const struct weir_volume_rebuilder_options *options,
				struct weir_volume_rebuilder **rebuilder, struct weir_error *error)
{
	struct weir_volume_rebuilder *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return weir_error_set(error, -ENOMEM, "out of memory");
	r->self.incarnation = options->incarnation;
	r->self.stops = &r->stops;
	r->turns.incarnation = options->incarnation;
	snprintf(r->self.donor, sizeof(r->self.donor), "%s", options->donor);
	memcpy(r->turns.donor, r->self.donor, sizeof(r->turns.donor));
	pthread_mutex_init(&r->lock, NULL);
	r->keys = copy_keys(options->key, options->old_key);
	r->encryption = options->encryption;
	r->log = (struct weir_log){ options->on_log, options->arg };
	r->pool = strdup(options->pool);
	r->device = options->device ? strdup(options->device) : NULL;
	r->map.lease_ms = LEASE_MS;
	rc = r->keys && r->pool && (r->device || !options->device) ?
		     weir_pool_client_open(options->pool, &r->client, error) :
		     weir_error_set(error, -ENOMEM, "out of memory");
	if (!rc)
		rc = weir_thread_create(&r->thread, "weir-rebuild", run, r, error);
	if (rc)
		rebuilder_free(r);
	else
		*rebuilder = r;
	return rc;
}

void weir_volume_rebuilder_cancel(struct weir_volume_rebuilder *r)
{
	if (r)
		__atomic_store_n(&r->stops, true, __ATOMIC_RELEASE);
}

void weir_volume_rebuilder_close(struct weir_volume_rebuilder *r)
{
	if (!r)
		return;
	pthread_join(r->thread, NULL);
	rebuilder_free(r);
}
