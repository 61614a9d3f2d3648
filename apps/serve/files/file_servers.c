/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/file_servers.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/rng.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/pool/client.h"

#define RANK_MS 300u /* between the tries of two donors */
#define LOOK_MS 200u /* while there is something to do */
#define RETRY_NS (2 * WEIR_NS_PER_S) /* after a try that failed */

/* A volume: @since_ns it has had no server; @not_before_ns this donor tries. */
struct seen_files {
	uint64_t id, since_ns, not_before_ns;
	bool is_open;
};

/**
 * struct file_servers - the thread's state
 * @servers: those that run; @nr_servers of them
 * @seen: by the volume's index in the map
 */
struct file_servers {
	struct file_server_options options;
	struct weir_pool_client *client;
	struct weir_pool_map *map;
	struct file_server *servers[WEIR_POOL_VOLUMES_MAX];
	unsigned int nr_servers;
	struct seen_files seen[WEIR_POOL_VOLUMES_MAX];
	pthread_t thread;
	atomic_bool stops;
	atomic_bool has_end; /* a server has ended */
};

static void on_end(void *arg)
{
	atomic_store(&((struct file_servers *)arg)->has_end, true);
}

/* How many donors are before this one. */
static unsigned int find_rank(const struct file_servers *f, const struct weir_pool_volume *volume)
{
	uint64_t own = weir_rng_mix(volume->id ^ f->options.incarnation);
	unsigned int rank = 0;

	for (uint16_t i = 0; i < f->map->nr_donors; i++) {
		const struct weir_pool_donor *donor = &f->map->donor[i];

		if (donor->incarnation && !donor->is_draining &&
		    donor->failed != donor->incarnation &&
		    donor->incarnation != volume->server_incarnation)
			rank += weir_rng_mix(volume->id ^ donor->incarnation) < own;
	}
	return rank;
}

/* A donor that leaves, or whose memory counts for nothing any more, serves no files. */
static bool may_serve(const struct file_servers *f, const struct weir_pool_volume *volume)
{
	uint16_t self = weir_pool_map_donor(f->map, f->options.donor);
	const struct weir_pool_donor *donor;

	if (self == WEIR_POOL_NO_DONOR)
		return false;
	donor = &f->map->donor[self];
	if (donor->incarnation != f->options.incarnation || donor->failed == donor->incarnation ||
	    donor->is_draining)
		return false;
	return volume->suspect != volume->holder || !volume->holder ||
	       volume->server_incarnation != f->options.incarnation;
}

static bool is_own(const struct file_servers *f, const struct weir_pool_volume *volume)
{
	for (unsigned int i = 0; i < f->nr_servers; i++) {
		if (!strcmp(file_server_volume(f->servers[i]), volume->name))
			return true;
	}
	return false;
}

/* Whether a volume of files lacks a server. */
static bool lacks_server(const struct file_servers *f, const struct weir_pool_volume *volume)
{
	if (!volume->is_files || !weir_pool_map_is_ready(f->map, volume->scheme))
		return false;
	return !volume->holder || volume->is_rebuilding ||
	       weir_pool_map_is_abandoned(f->map, volume);
}

static void start_server(struct file_servers *f, const struct weir_pool_volume *volume)
{
	struct file_server *server;

	if (f->nr_servers == WEIR_POOL_VOLUMES_MAX)
		return;
	server = file_server_start(&f->options, volume->name);
	if (server)
		f->servers[f->nr_servers++] = server;
}

/* Return: whether a volume waits for this donor's turn. */
static bool consider(struct file_servers *f, uint16_t index)
{
	const struct weir_pool_volume *volume = &f->map->volume[index];
	struct seen_files *seen = &f->seen[index];
	uint64_t now_ns = weir_now_ns(), due_ns;

	if (!lacks_server(f, volume) || seen->id != volume->id)
		*seen = (struct seen_files){ .id = volume->id, .since_ns = now_ns };
	if (!lacks_server(f, volume) || is_own(f, volume) || !may_serve(f, volume))
		return false;
	due_ns = seen->since_ns + find_rank(f, volume) * RANK_MS * WEIR_NS_PER_MS;
	if (now_ns < due_ns || now_ns < seen->not_before_ns)
		return true;
	seen->not_before_ns = now_ns + RETRY_NS;
	start_server(f, volume);
	return true;
}

static void reap(struct file_servers *f)
{
	for (unsigned int i = 0; i < f->nr_servers;) {
		if (file_server_has_ended(f->servers[i])) {
			file_server_close(f->servers[i]);
			f->servers[i] = f->servers[--f->nr_servers];
		} else {
			i++;
		}
	}
}

/* A wait for a map that is out of reach ends at once. */
static void rest(struct file_servers *f, bool is_silent, bool is_waiting)
{
	unsigned int ms = is_waiting ? LOOK_MS : f->map->lease_ms / 3;
	int rc = is_silent ? -EHOSTUNREACH : weir_pool_client_wait(f->client, f->map, ms, NULL);

	if (rc && rc != -ETIMEDOUT)
		poll(NULL, 0, (int)LOOK_MS);
}

static void *watch(void *arg)
{
	struct file_servers *f = arg;

	while (!atomic_load(&f->stops)) {
		bool is_waiting = false, is_silent;

		if (atomic_exchange(&f->has_end, false))
			reap(f);
		is_silent = weir_pool_client_read(f->client, f->map, NULL);
		for (uint16_t i = 0; !is_silent && i < f->map->nr_volumes; i++)
			is_waiting |= consider(f, i);
		if (!atomic_load(&f->stops))
			rest(f, is_silent, is_waiting);
	}
	return NULL;
}

static void file_servers_free(struct file_servers *f)
{
	weir_pool_client_close(f->client);
	free(f->map);
	free(f);
}

int file_servers_start(const struct file_server_options *options, struct file_servers **files,
		struct weir_error *error)
{
	struct file_servers *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return weir_error_set(error, -ENOMEM, "out of memory");
	f->options = *options;
	f->options.on_end = on_end;
	f->options.arg = f;
	f->map = calloc(1, sizeof(*f->map));
	rc = f->map ? weir_pool_client_open(options->pool, &f->client, error) :
		      weir_error_set(error, -ENOMEM, "out of memory");
	if (f->map)
		f->map->lease_ms = 3 * LOOK_MS; /* until the map is read */
	if (!rc)
		rc = weir_thread_create(&f->thread, "weir-servers", watch, f, error);
	if (rc)
		file_servers_free(f);
	else
		*files = f;
	return rc;
}

void file_servers_cancel(struct file_servers *f)
{
	if (f)
		atomic_store(&f->stops, true);
}

void file_servers_close(struct file_servers *f)
{
	if (!f)
		return;
	pthread_join(f->thread, NULL);
	for (unsigned int i = 0; i < f->nr_servers; i++)
		file_server_stop(f->servers[i]);
	for (unsigned int i = 0; i < f->nr_servers; i++)
		file_server_close(f->servers[i]);
	file_servers_free(f);
}
