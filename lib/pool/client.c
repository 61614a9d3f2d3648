/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/pool/client.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/link/reconnect.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/pool/codec.h"

#define TRIES_MAX 16 /* at a key that others change at the same time */

/**
 * struct weir_pool_client - a client
 * @store: the pool's store
 * @volume: the open volume, or empty
 * @lease: holds the claim on @volume
 * @epoch: version of the claim's key when the claim was made; @claimed: its version now
 * @opened: version of the volume's key since then
 * @rebuilds: the claim is a donor's that rebuilds; @serves: a donor's that serves files;
 *	@was_blank: the volume had no data when it was opened
 * @scratch: a map that is being read
 * @attempts: tries to reach the store since the last successful read
 */
struct weir_pool_client {
	struct weir_pool_store *store;
	char volume[WEIR_POOL_NAME_MAX];
	uint64_t lease, epoch, claimed, opened;
	uint32_t lease_ms;
	bool rebuilds, serves, was_blank;
	struct weir_pool_map scratch;
	struct weir_reconnect attempts;
};

/* The line in FOLDER/NAME. Return: whether there is one. */
static bool read_place(const char *folder, const char *below, const char *name, char *line,
		       size_t size)
{
	char path[PATH_MAX];
	FILE *file;
	bool found;

	if (!folder || (size_t)snprintf(path, sizeof(path), "%s%s/%s", folder, below, name) >=
			       sizeof(path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fgets(line, (int)size, file);
	fclose(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

static int find_place(const char *pool, char *line, size_t size, struct weir_error *error)
{
	const char *own = getenv("WEIR_POOLS");

	if (!strncmp(pool, "pool:", 5))
		pool += 5;
	if (!weir_pool_map_is_name(pool))
		return weir_error_set(error, -EINVAL,
				      "%s: expected a pool's name, file:PATH or "
				      "etcd:http://HOST:2379/NAME",
				      pool);
	if (own ? read_place(own, "", pool, line, size) :
		  read_place(getenv("HOME"), "/.config/weir/pools", pool, line, size) ||
			  read_place("/etc", "/weir/pools", pool, line, size))
		return 0;
	return weir_error_set(error, -ENOENT,
			      "this host knows no pool %s: write its place, file:PATH or "
			      "etcd:http://HOST:2379/%s, into %s/%s",
			      pool, pool, own ? own : "/etc/weir/pools", pool);
}

int weir_pool_client_open(const char *pool, struct weir_pool_client **opened,
			  struct weir_error *error)
{
	struct weir_pool_client *client = calloc(1, sizeof(*client));
	bool is_place = !strncmp(pool, "file:", 5) || !strncmp(pool, "etcd:", 5);
	char line[1024];
	int rc = 0;

	if (!client)
		return weir_error_set(error, -ENOMEM, "out of memory");
	weir_reconnect_begin(&client->attempts, UINT64_MAX, 0);
	if (!is_place)
		rc = find_place(pool, line, sizeof(line), error);
	if (!rc)
		rc = weir_pool_store_open(is_place ? pool : line, &client->store, error);
	if (rc)
		free(client);
	else
		*opened = client;
	return rc;
}

void weir_pool_client_close(struct weir_pool_client *client)
{
	if (!client)
		return;
	if (client->lease)
		(void)weir_pool_store_revoke(client->store, client->lease, NULL);
	weir_pool_store_close(client->store);
	free(client);
}

struct weir_pool_store *weir_pool_client_store(struct weir_pool_client *client)
{
	return client->store;
}

int weir_pool_client_read(struct weir_pool_client *client, struct weir_pool_map *map,
			  struct weir_error *error)
{
	struct weir_pool_listing listing;
	int rc = weir_pool_store_list(client->store, "", &listing, error);

	if (rc)
		return rc;
	rc = weir_pool_codec_read(&listing, weir_pool_store_name(client->store), &client->scratch,
				  error);
	weir_pool_listing_free(&listing);
	if (rc)
		return rc;
	*map = client->scratch;
	weir_reconnect_begin(&client->attempts, UINT64_MAX, 0);
	return 0;
}

int weir_pool_client_wait(struct weir_pool_client *client, const struct weir_pool_map *map,
			  unsigned int timeout_ms, struct weir_error *error)
{
	return weir_pool_store_wait(client->store, map->revision, timeout_ms, error);
}

void weir_pool_client_pause(struct weir_pool_client *client)
{
	weir_reconnect_pause(&client->attempts, randombytes_random(), weir_now_ns());
	weir_sleep_until_ns(client->attempts.next_ns);
}

void weir_pool_client_rest(struct weir_pool_client *client, const struct weir_pool_map *map,
			   bool is_silent, uint64_t due_ns)
{
	uint64_t until_ns = weir_now_ns() + map->lease_ms / 3 * WEIR_NS_PER_MS;
	unsigned int ms = (unsigned int)weir_poll_ms(due_ns < until_ns ? due_ns : until_ns);
	int rc = is_silent ? -EHOSTUNREACH :
			     weir_pool_client_wait(client, map, ms ? ms : 1, NULL);

	if (rc && rc != -ETIMEDOUT)
		weir_pool_client_pause(client);
}

/* Reads one key. @value: receives NULL if it is not there; the caller frees it. */
static int read_key(struct weir_pool_store *store, const char *key, char **value,
		    uint64_t *version, struct weir_error *error)
{
	struct weir_pool_listing listing;
	const struct weir_pool_key *found;
	int rc = weir_pool_store_list(store, key, &listing, error);

	if (rc)
		return rc;
	found = weir_pool_listing_find(&listing, key);
	*value = found ? strdup(found->value) : NULL;
	*version = found ? found->version : 0;
	weir_pool_listing_free(&listing);
	return 0;
}

/* A name for this process, for people: "host:pid". */
static void name_self(char *text, size_t size)
{
	char host[40] = "";

	(void)gethostname(host, sizeof(host) - 1);
	snprintf(text, size, "%s:%ld", host, (long)getpid());
}

int weir_pool_client_report_failed(struct weir_pool_client *client, const char *donor,
				   uint64_t incarnation, struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], self[64], *old, *value;
	uint64_t version;
	int rc = -EAGAIN;

	name_self(self, sizeof(self));
	snprintf(key, sizeof(key), "failed/%s", donor);
	value = weir_pool_codec_failed(incarnation, self);
	if (!value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < TRIES_MAX && rc == -EAGAIN; i++) {
		char *incarnation_of_old;

		rc = read_key(client->store, key, &old, &version, error);
		if (rc)
			break;
		/* Both values begin with the incarnation. */
		incarnation_of_old = old ? strstr(old, "\"by\"") : NULL;
		if (incarnation_of_old && !strncmp(old, value, (size_t)(incarnation_of_old - old)))
			rc = 0;
		else
			rc = weir_pool_store_put(client->store,
						 &(struct weir_pool_put){ .key = key,
									  .value = value,
									  .expected = version },
						 NULL, error);
		free(old);
	}
	free(value);
	return rc;
}

int weir_pool_client_report_synced(struct weir_pool_client *client, uint16_t group,
				   const char *donor, uint64_t joined, struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16], *old, *value;
	uint64_t version;
	int rc = -EAGAIN;

	snprintf(key, sizeof(key), "synced/%s", client->volume);
	snprintf(guard, sizeof(guard), "holder/%s", client->volume);
	for (unsigned int i = 0; i < TRIES_MAX && rc == -EAGAIN; i++) {
		rc = read_key(client->store, key, &old, &version, error);
		if (rc)
			return rc;
		value = weir_pool_codec_synced(old, group, donor, joined);
		free(old);
		if (!value)
			return weir_error_set(error, -ENOMEM, "out of memory");
		rc = weir_pool_store_put(client->store,
					 &(struct weir_pool_put){ .key = key,
								  .value = value,
								  .expected = version,
								  .guard = guard,
								  .guard_version =
									  client->claimed },
					 NULL, error);
		free(value);
	}
	return rc;
}

int weir_pool_client_report_progress(struct weir_pool_client *client, unsigned int percent,
				     const char *donor, struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16];
	char *value = percent < 100 ? weir_pool_codec_progress(percent, donor) : NULL;
	struct weir_pool_put put = { .key = key, .value = value, .guard = guard,
				     .expected = WEIR_POOL_ANY_VERSION,
				     .guard_version = client->claimed };
	int rc;

	if (percent < 100 && !value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	if (value)
		put.lease = client->lease;
	snprintf(key, sizeof(key), "progress/%s", client->volume);
	snprintf(guard, sizeof(guard), "holder/%s", client->volume);
	rc = weir_pool_store_put(client->store, &put, NULL, error);
	free(value);
	return rc;
}

int weir_pool_client_report_wrong(struct weir_pool_client *client, const char *donor,
				  uint64_t incarnation, uint64_t reads, struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16], *old;
	int rc = -EAGAIN;

	snprintf(key, sizeof(key), "wrong/%s", donor);
	snprintf(guard, sizeof(guard), "holder/%s", client->volume);
	for (unsigned int i = 0; i < TRIES_MAX && rc == -EAGAIN; i++) {
		struct weir_pool_put put = { .key = key, .guard = guard,
					     .guard_version = client->claimed };
		char *value;

		rc = read_key(client->store, key, &old, &put.expected, error);
		if (rc)
			break;
		put.value = value = weir_pool_codec_wrong(old, incarnation, reads);
		free(old);
		if (!value)
			return weir_error_set(error, -ENOMEM, "out of memory");
		rc = weir_pool_store_put(client->store, &put, NULL, error);
		free(value);
	}
	return rc;
}

/*
 * Puts the claim's key with a new lease. @old: version of a claim that gives way; 0: none may
 * stand. @opened: version of the volume's key, which must not have changed; 0: any. Return: -EAGAIN
 * another has the volume, or had it.
 */
static int put_holder(struct weir_pool_client *client, const char *volume, uint64_t old,
		      uint64_t opened, struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16], self[64], *value;
	struct weir_pool_put put = { .key = key, .lease = client->lease, .expected = old };
	int rc;

	name_self(self, sizeof(self));
	snprintf(key, sizeof(key), "holder/%s", volume);
	snprintf(guard, sizeof(guard), "volume/%s", volume);
	value = weir_pool_codec_holder(self, client->rebuilds);
	if (!value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	put.value = value;
	put.guard = opened ? guard : NULL;
	put.guard_version = opened;
	rc = weir_pool_store_put(client->store, &put, &client->claimed, error);
	free(value);
	return rc;
}

/* Whether a claim that stands gives way. */
static bool gives_way(const struct weir_pool_client *client, const struct weir_pool_map *map,
		      const struct weir_pool_volume *volume)
{
	if (client->rebuilds)
		return false;
	return volume->is_rebuilding ||
	       (client->serves && weir_pool_map_is_abandoned(map, volume));
}

static int refuse_second(const char *volume, uint32_t lease_ms, struct weir_error *error)
{
	return weir_error_set(error, -EBUSY,
			      "volume %s: another client has it open; a client that died loses it "
			      "after %u ms",
			      volume, lease_ms);
}

/*
 * Claims the volume with a lease. The claim of a donor that rebuilds gives way to a client; such
 * claims come and go, so that a refused put is tried again.
 */
static int claim(struct weir_pool_client *client, const char *name, struct weir_pool_map *map,
		 struct weir_error *error)
{
	int rc = weir_pool_store_grant(client->store, map->lease_ms, &client->lease, error);

	client->lease_ms = map->lease_ms;
	for (unsigned int i = 0; !rc && i < TRIES_MAX; i++) {
		const struct weir_pool_volume *volume = weir_pool_map_volume(map, name);

		if (!volume)
			return weir_error_set(error, -ENOENT, "volume %s has just been removed",
					      name);
		if (volume->holder && !gives_way(client, map, volume))
			break;
		rc = put_holder(client, name, volume->holder, 0, error);
		client->epoch = client->claimed;
		if (rc != -EAGAIN)
			return rc;
		rc = weir_pool_client_read(client, map, error);
	}
	return rc ? rc : refuse_second(name, map->lease_ms, error);
}

/*
 * Puts the volume's key: the volume has data from now on, and any earlier client that has lost its
 * claim sees from the key's version that another has opened the volume.
 */
static int mark_opened(struct weir_pool_client *client, struct weir_pool_volume volume,
		       struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16], *value;
	struct weir_pool_put put = { .key = key, .expected = volume.stored, .guard = guard,
				     .guard_version = client->epoch };
	int rc;

	volume.is_blank = false;
	snprintf(key, sizeof(key), "volume/%s", volume.name);
	snprintf(guard, sizeof(guard), "holder/%s", volume.name);
	value = weir_pool_codec_volume(&volume);
	if (!value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	put.value = value;
	rc = weir_pool_store_put(client->store, &put, &client->opened, error);
	free(value);
	return rc;
}

static int open_volume(struct weir_pool_client *client, const char *name,
		       struct weir_pool_map *map, struct weir_error *error)
{
	const struct weir_pool_volume *volume;
	int rc = weir_pool_client_read(client, map, error);

	if (rc)
		return rc;
	volume = weir_pool_map_volume(map, name);
	if (!volume)
		return weir_error_set(error, -ENOENT,
				      "pool %s has no volume %s: see 'weir pool volume list'",
				      map->name, name);
	if (!client->rebuilds && volume->is_files != client->serves)
		return weir_error_set(error, -EOPNOTSUPP,
				      volume->is_files ?
					      "volume %s holds files: use 'weir mount'" :
					      "volume %s holds no files: 'weir pool volume create "
					      "--files' makes one that does",
				      name);
	if (!weir_pool_map_is_ready(map, volume->scheme))
		return weir_error_set(error, -EAGAIN,
				      "volume %s of pool %s: its groups are not made yet: are "
				      "there donors in %u failure domains?",
				      name, map->name, weir_pool_width(volume->scheme));
	rc = claim(client, name, map, error);
	if (rc)
		return rc;
	volume = weir_pool_map_volume(map, name);
	client->was_blank = volume->is_blank;
	rc = mark_opened(client, *volume, error);
	/* The coordinator may have promoted a member while the volume was blank: read again. */
	if (!rc)
		rc = weir_pool_client_read(client, map, error);
	/* Another may have removed the volume before the claim. */
	if (!rc && !weir_pool_map_volume(map, name))
		rc = weir_error_set(error, -ENOENT, "volume %s has just been removed", name);
	return rc;
}

static int begin_open(struct weir_pool_client *client, const char *volume,
		      struct weir_pool_map *map, struct weir_error *error)
{
	int rc;

	if (client->lease || !weir_pool_map_is_name(volume))
		return weir_error_set(error, -EINVAL,
				      "volume %s: a bad name, or this client has a volume open",
				      volume);
	rc = open_volume(client, volume, map, error);
	if (!rc) {
		memcpy(client->volume, volume, strlen(volume) + 1);
		return 0;
	}
	if (client->lease)
		(void)weir_pool_store_revoke(client->store, client->lease, NULL);
	client->lease = 0;
	return rc;
}

int weir_pool_client_open_volume(struct weir_pool_client *client, const char *volume,
				 struct weir_pool_map *map, struct weir_error *error)
{
	client->rebuilds = client->serves = false;
	return begin_open(client, volume, map, error);
}

int weir_pool_client_open_files(struct weir_pool_client *client, const char *volume,
				struct weir_pool_map *map, struct weir_error *error)
{
	client->rebuilds = false;
	client->serves = true;
	return begin_open(client, volume, map, error);
}

int weir_pool_client_open_rebuild(struct weir_pool_client *client, const char *volume,
				  struct weir_pool_map *map, struct weir_error *error)
{
	client->rebuilds = true;
	client->serves = false;
	return begin_open(client, volume, map, error);
}

int weir_pool_client_publish(struct weir_pool_client *client,
			     const struct weir_pool_volume *volume, uint64_t lease,
			     struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16];
	char *value = weir_pool_codec_server(volume);
	struct weir_pool_put put = { .key = key, .value = value, .guard = guard, .lease = lease,
				     .expected = WEIR_POOL_ANY_VERSION,
				     .guard_version = volume->server_claim };
	int rc;

	if (!value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	snprintf(key, sizeof(key), "server/%s", volume->name);
	snprintf(guard, sizeof(guard), "holder/%s", volume->name);
	rc = weir_pool_store_put(client->store, &put, NULL, error);
	free(value);
	return rc;
}

int weir_pool_client_suspect(struct weir_pool_client *client, const char *volume,
			     uint64_t claimed, struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16], self[64], *value;
	struct weir_pool_put put = { .key = key, .guard = guard, .guard_version = claimed,
				     .expected = WEIR_POOL_ANY_VERSION };
	int rc;

	name_self(self, sizeof(self));
	value = weir_pool_codec_suspect(claimed, self);
	if (!value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	put.value = value;
	snprintf(key, sizeof(key), "suspect/%s", volume);
	snprintf(guard, sizeof(guard), "holder/%s", volume);
	rc = weir_pool_store_put(client->store, &put, NULL, error);
	free(value);
	return rc;
}

bool weir_pool_client_was_blank(const struct weir_pool_client *client)
{
	return client->was_blank;
}

uint64_t weir_pool_client_claimed(const struct weir_pool_client *client)
{
	return client->claimed;
}

int weir_pool_client_confirm(struct weir_pool_client *client, const char *volume, uint64_t claimed,
			     struct weir_error *error)
{
	char key[WEIR_POOL_NAME_MAX + 16], *value;
	uint64_t version;
	int rc;

	snprintf(key, sizeof(key), "holder/%s", volume);
	rc = read_key(client->store, key, &value, &version, error);
	if (rc)
		return rc;
	free(value);
	if (version == claimed)
		return 0;
	return weir_error_set(error, version ? -ESTALE : -EAGAIN, "volume %s: %s", volume,
			      version ? "another client has opened it" : "the claim is over");
}

uint64_t weir_pool_client_epoch(const struct weir_pool_client *client)
{
	return client->epoch;
}

uint64_t weir_pool_client_lease(const struct weir_pool_client *client)
{
	return client->lease;
}

void weir_pool_client_read_claim(const struct weir_pool_client *client,
				 struct weir_pool_claim *claim)
{
	*claim = (struct weir_pool_claim){ .lease = client->lease,
					   .epoch = client->epoch,
					   .claimed = client->claimed,
					   .opened = client->opened,
					   .lease_ms = client->lease_ms,
					   .was_blank = client->was_blank };
}

int weir_pool_client_resume(struct weir_pool_client *client, const char *volume,
			    const struct weir_pool_claim *claim, struct weir_error *error)
{
	if (client->lease || !claim->lease || !weir_pool_map_is_name(volume))
		return weir_error_set(error, -EINVAL, "volume %s: no claim to go on with", volume);
	client->rebuilds = client->serves = false;
	client->lease = claim->lease;
	client->epoch = claim->epoch;
	client->claimed = claim->claimed;
	client->opened = claim->opened;
	client->lease_ms = claim->lease_ms;
	client->was_blank = claim->was_blank;
	memcpy(client->volume, volume, strlen(volume) + 1);
	return 0;
}

void weir_pool_client_hand_over(struct weir_pool_client *client)
{
	client->lease = 0;
}

/* The lease is over. Nobody has changed the volume if nobody has opened it since. */
static int renew_claim(struct weir_pool_client *client, struct weir_error *error)
{
	int rc = weir_pool_store_grant(client->store, client->lease_ms, &client->lease, error);

	if (!rc)
		rc = put_holder(client, client->volume, 0, client->opened, error);
	if (rc == -EAGAIN)
		rc = weir_error_set(error, -ESTALE, "volume %s: another client has opened it",
				    client->volume);
	return rc;
}

int weir_pool_client_keep(struct weir_pool_client *client, struct weir_error *error)
{
	int rc;

	if (!client->lease)
		return weir_error_set(error, -EINVAL, "no volume is open");
	rc = weir_pool_store_keep(client->store, client->lease, error);
	return rc == -ESTALE && !client->rebuilds ? renew_claim(client, error) : rc;
}
