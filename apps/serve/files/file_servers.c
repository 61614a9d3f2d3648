/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A try that fails is repeated after a pause, which doubles with each try in a row: a key or a
 * donor that is missing comes back late, and each try connects to all donors and writes a line.
 *
 * After a server is killed:
 *
 *	0			mounts lose their connections, connect again, and are refused
 *	+ 0.3 s			a mount says in the map that it suspects the server; without a
 *				mount, the end of the claim's lease says so
 *	+ rank * 0.3 s		the first donor whose turn it is claims the volume: see
 *				core/pool/server.h
 *	+ the time to open	a donor that is gone is reported, and its copies leave; another
 *				donor replaces a coordinator that is gone
 *	+ up to 0.2 s		a mount sees the new server in the map: apps/mount/pool/link.c
 */
#include "apps/serve/files/file_servers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/number.h"
#include "core/pool/server.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/pool/client.h"

#define LEASE_MS 600u /* until the map is read */
#define PAUSE_NS_MIN (2 * WEIR_NS_PER_S)
#define PAUSE_NS_MAX (16 * WEIR_NS_PER_S)
#define QUIET_NS (30 * WEIR_NS_PER_S) /* after the pause: the next try begins a new row */

/**
 * struct seen_files - a volume of files
 * @id: of the volume at this index of the map
 * @since_ns: since when the volume has had no server
 * @pause_ns: between the last try and the next
 * @not_before_ns: end of that pause; 0: no try yet
 */
struct seen_files {
	uint64_t id, since_ns, pause_ns, not_before_ns;
};

/**
 * struct file_servers - the thread's state
 * @seen: by the volume's index in the map
 * @has_end: a server has ended
 * @lock: guards the @nr_servers servers that run, @keys for the next, and @stops: the thread shall
 *	end
 */
struct file_servers {
	struct file_server_options options;
	struct weir_pool_client *client;
	struct weir_pool_map *map;
	struct seen_files seen[WEIR_POOL_VOLUMES_MAX];
	pthread_t thread;
	atomic_bool has_end;
	pthread_mutex_t lock;
	struct file_server *servers[WEIR_POOL_VOLUMES_MAX];
	unsigned int nr_servers;
	struct key_set *keys;
	bool stops;
};

static void on_end(void *arg)
{
	atomic_store(&((struct file_servers *)arg)->has_end, true);
}

static bool is_own(struct file_servers *f, const struct weir_pool_volume *volume)
{
	bool is_own = false;

	pthread_mutex_lock(&f->lock);
	for (unsigned int i = 0; i < f->nr_servers; i++)
		is_own |= !strcmp(file_server_volume(f->servers[i]), volume->name);
	pthread_mutex_unlock(&f->lock);
	return is_own;
}

static void start_server(struct file_servers *f, const struct weir_pool_volume *volume)
{
	struct file_server *server = NULL;

	pthread_mutex_lock(&f->lock);
	if (!f->stops && f->nr_servers < WEIR_POOL_VOLUMES_MAX)
		server = file_server_start(&f->options, f->keys, volume->name);
	if (server)
		f->servers[f->nr_servers++] = server;
	pthread_mutex_unlock(&f->lock);
}

/* A try begins: chooses when the next may, if this one fails. */
static void begin_pause(struct seen_files *seen, uint64_t now_ns)
{
	bool in_row = seen->not_before_ns && now_ns < seen->not_before_ns + QUIET_NS;

	seen->pause_ns = in_row ? lesser(2 * seen->pause_ns, PAUSE_NS_MAX) : PAUSE_NS_MIN;
	seen->not_before_ns = now_ns + seen->pause_ns;
}

/* Starts a server for the volume if it is this donor's turn. Return: when to look again. */
static uint64_t consider(struct file_servers *f, uint16_t index)
{
	const struct weir_pool_volume *volume = &f->map->volume[index];
	struct seen_files *seen = &f->seen[index];
	bool is_missing = weir_pool_server_is_missing(f->map, volume);
	uint64_t now_ns = weir_now_ns(), due_ns;

	if (seen->id != volume->id)
		*seen = (struct seen_files){ .id = volume->id, .since_ns = now_ns };
	if (!is_missing)
		seen->since_ns = now_ns;
	if (!is_missing || is_own(f, volume))
		return UINT64_MAX;
	due_ns = weir_pool_server_from_ns(f->map, volume, f->options.donor, f->options.incarnation,
					  seen->since_ns);
	due_ns = greater(due_ns, seen->not_before_ns);
	if (now_ns < due_ns)
		return due_ns;
	begin_pause(seen, now_ns);
	start_server(f, volume);
	return seen->not_before_ns;
}

static void reap(struct file_servers *f)
{
	pthread_mutex_lock(&f->lock);
	for (unsigned int i = 0; i < f->nr_servers;) {
		if (file_server_has_ended(f->servers[i])) {
			file_server_close(f->servers[i]);
			f->servers[i] = f->servers[--f->nr_servers];
		} else {
			i++;
		}
	}
	pthread_mutex_unlock(&f->lock);
}

static bool is_stopped(struct file_servers *f)
{
	bool stops;

	pthread_mutex_lock(&f->lock);
	stops = f->stops;
	pthread_mutex_unlock(&f->lock);
	return stops;
}

static void *watch(void *arg)
{
	struct file_servers *f = arg;

	while (!is_stopped(f)) {
		uint64_t due_ns = UINT64_MAX;
		bool is_silent;

		if (atomic_exchange(&f->has_end, false))
			reap(f);
		is_silent = weir_pool_client_read(f->client, f->map, NULL);
		for (uint16_t i = 0; !is_silent && i < f->map->nr_volumes; i++)
			due_ns = lesser(due_ns, consider(f, i));
		if (!is_stopped(f))
			weir_pool_client_rest(f->client, f->map, is_silent, due_ns);
	}
	return NULL;
}

static void file_servers_free(struct file_servers *f)
{
	weir_pool_client_close(f->client);
	key_set_put(f->keys);
	pthread_mutex_destroy(&f->lock);
	free(f->map);
	free(f);
}

int file_servers_start(const struct file_server_options *options, struct key_set *keys,
		       struct file_servers **servers, struct weir_error *error)
{
	struct file_servers *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return weir_error_set(error, -ENOMEM, "out of memory");
	pthread_mutex_init(&f->lock, NULL);
	f->options = *options;
	f->options.on_end = on_end;
	f->options.arg = f;
	f->keys = keys ? key_set_get(keys) : NULL;
	f->map = calloc(1, sizeof(*f->map));
	rc = f->map ? weir_pool_client_open(options->pool, &f->client, error) :
		      weir_error_set(error, -ENOMEM, "out of memory");
	if (f->map)
		f->map->lease_ms = LEASE_MS;
	if (!rc)
		rc = weir_thread_create(&f->thread, "weir-servers", watch, f, error);
	if (rc)
		file_servers_free(f);
	else
		*servers = f;
	return rc;
}

int file_servers_set_keys(struct file_servers *f, struct key_set *keys, struct weir_error *error)
{
	int rc = 0;

	if (!f)
		return 0;
	pthread_mutex_lock(&f->lock);
	key_set_put(f->keys);
	f->keys = key_set_get(keys);
	for (unsigned int i = 0; i < f->nr_servers; i++)
		if (file_server_set_keys(f->servers[i], keys, error))
			rc = -ENOMEM;
	pthread_mutex_unlock(&f->lock);
	return rc;
}

void file_servers_cancel(struct file_servers *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stops = true;
	for (unsigned int i = 0; i < f->nr_servers; i++)
		file_server_stop(f->servers[i]);
	pthread_mutex_unlock(&f->lock);
}

static struct file_server *take_server(struct file_servers *f)
{
	struct file_server *server = NULL;

	pthread_mutex_lock(&f->lock);
	if (f->nr_servers)
		server = f->servers[--f->nr_servers];
	pthread_mutex_unlock(&f->lock);
	return server;
}

void file_servers_finish(struct file_servers *f)
{
	struct file_server *server;

	while (f && (server = take_server(f)))
		file_server_close(server);
}

void file_servers_close(struct file_servers *f)
{
	if (!f)
		return;
	file_servers_finish(f);
	pthread_join(f->thread, NULL);
	file_servers_free(f);
}
