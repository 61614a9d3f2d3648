/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The watching thread: keeps the claim, and tells the module of new maps. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/blk/agent/internal.h"
#include "apps/common/cmd.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

bool blk_agent_has_volume(const struct blk_agent *a, const struct weir_pool_map *map)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(map, a->volume);

	return map->id == a->kept.pool && volume && volume->id == a->kept.volume &&
	       weir_pool_map_is_ready(map, volume->scheme);
}

bool blk_agent_is_taken(const struct blk_agent *a, const struct weir_pool_map *map)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(map, a->volume);

	return !blk_agent_has_volume(a, map) || volume->stored != a->kept.claim.opened;
}

bool blk_agent_note_claim(struct blk_agent *a)
{
	struct weir_pool_claim claim;
	bool is_news;

	weir_pool_client_read_claim(a->client, &claim);
	is_news = memcmp(&claim, &a->kept.claim, sizeof(claim));
	a->kept.claim = claim;
	return is_news;
}

/* Takes @scratch as the newest map. Return: whether to tell the module. With the lock held. */
static bool note_map(struct blk_agent *a)
{
	struct weir_error error = { "" };
	bool is_news = a->scratch->revision != a->map->revision;
	struct weir_pool_map *old = a->map;

	if (!is_news)
		return false;
	a->map = a->scratch;
	a->scratch = old;
	if (blk_pool_map_write(a->map, weir_pool_map_volume(a->map, a->volume),
			       a->kept.claim.was_blank, a->out, &error)) {
		fprintf(stderr, "%s: weir%u: %s\n", a->cmd, a->number, error.text);
		return false;
	}
	return true;
}

static void report_member(struct blk_agent *a, uint16_t number, uint8_t index,
			  const struct weir_pool_member *m, const struct blk_look *look)
{
	uint16_t group = (uint16_t)(number - a->out->first);
	bool is_ready = false;

	for (size_t i = 0; i < look->nr_ready; i++)
		is_ready |= look->ready[i].group == group && look->ready[i].joined == m->joined;
	if (!is_ready || m->state != WEIR_POOL_SYNCING || a->told[number][index] == m->joined)
		return;
	if (!weir_pool_client_report_synced(a->client, number, a->map->donor[m->donor].id,
					    m->joined, NULL))
		a->told[number][index] = m->joined;
}

/* Only this thread changes @map, so that it reads it without the lock. */
static void report_ready(struct blk_agent *a, const struct blk_look *look)
{
	unsigned int shown;

	for (uint16_t i = 0; i < a->out->count; i++) {
		const struct weir_pool_group *group = &a->map->group[a->out->first + i];

		for (uint8_t j = 0; j < group->nr_members; j++)
			report_member(a, (uint16_t)(a->out->first + i), j, &group->member[j],
				      look);
	}
	shown = look->percent - look->percent % 10;
	if (shown != a->shown && !weir_pool_client_report_progress(a->client, shown, NULL, NULL))
		a->shown = shown;
}

/* Return: 0; -ESTALE another client has the volume; another errno: try again. */
static int read_map(struct blk_agent *a)
{
	int rc = weir_pool_client_read(a->client, a->scratch, NULL);

	return !rc && blk_agent_is_taken(a, a->scratch) ? -ESTALE : rc;
}

/* Keeps the claim; changes of the map in a row do not wait for that. Return: as read_map(). */
static int keep_claim(struct blk_agent *a, bool has_changed)
{
	uint64_t now_ns = weir_now_ns();
	int rc;

	if (has_changed && now_ns < a->kept_ns + a->map->lease_ms / 6 * WEIR_NS_PER_MS)
		return 0;
	rc = weir_pool_client_keep(a->client, NULL);
	if (!rc)
		a->kept_ns = now_ns;
	if (rc != -ESTALE)
		return rc;
	rc = read_map(a);
	/* The claim of an agent that died in between still stands for a moment. */
	return rc ? rc : -EAGAIN;
}

static void send_news(struct blk_agent *a)
{
	if (a->is_unsent)
		a->is_unsent = blk_agent_send_map(a, &a->watch_talk, 0, 0);
}

/*
 * Takes a new map to the module first: writes may wait for the map. The device may have been
 * detached, and its claim ended: it must not be made again. Return: 0; -ENODEV; or as read_map().
 */
static int update(struct blk_agent *a, bool has_changed, struct blk_look *look)
{
	int rc = blk_agent_look(a, &a->watch_talk, look), kept;

	if (rc == -ENODEV)
		return rc;
	if (rc)
		look->percent = a->shown; /* nothing to report */
	rc = read_map(a);
	if (rc == -ESTALE || rc == -EHOSTUNREACH)
		return rc;
	if (!rc) {
		pthread_mutex_lock(&a->lock);
		a->is_unsent |= note_map(a);
		pthread_mutex_unlock(&a->lock);
		send_news(a);
	}
	kept = keep_claim(a, has_changed);
	pthread_mutex_lock(&a->lock);
	a->is_unsent |= blk_agent_note_claim(a);
	pthread_mutex_unlock(&a->lock);
	send_news(a);
	return kept ? kept : rc;
}

static int work(struct blk_agent *a, bool has_changed)
{
	struct blk_look look;
	int rc = update(a, has_changed, &look);

	if (rc == -ENODEV || rc == -ESTALE) {
		pthread_mutex_lock(&a->lock);
		a->is_gone |= rc == -ENODEV;
		a->is_over |= rc == -ESTALE;
		pthread_mutex_unlock(&a->lock);
		if (rc == -ESTALE)
			(void)blk_agent_send_map(a, &a->watch_talk, 0, 0);
		blk_agent_end(a);
		return 0;
	}
	if (!rc)
		report_ready(a, &look);
	return rc;
}

static bool has_syncing(const struct blk_agent *a)
{
	for (uint16_t i = 0; i < a->out->count; i++) {
		if (weir_pool_group_count(&a->map->group[a->out->first + i], WEIR_POOL_SYNCING))
			return true;
	}
	return false;
}

static void *watch(void *arg)
{
	struct blk_agent *a = arg;

	while (!blk_agent_ends(a)) {
		unsigned int ms = a->map->lease_ms / 3;
		int rc;

		if (has_syncing(a) && ms > BLK_AGENT_LOOK_MS)
			ms = BLK_AGENT_LOOK_MS;
		rc = weir_pool_client_wait(a->client, a->map, ms, NULL);
		if (blk_agent_ends(a))
			break;
		if (!rc || rc == -ETIMEDOUT)
			rc = work(a, !rc);
		if (rc)
			weir_pool_client_pause(a->client);
	}
	return NULL;
}

int blk_agent_watch(struct blk_agent *a)
{
	struct weir_error error;

	if (weir_thread_create(&a->watcher, "weir-blk-watch", watch, a, &error))
		return failure(a->cmd, "%s", error.text);
	a->has_watcher = true;
	return EXIT_OK;
}
