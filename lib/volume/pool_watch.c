/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The watching thread of a mapped volume. */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "lib/pool/client.h"
#include "lib/volume/pool.h"
#include "lib/volume/rebuild.h"

#define FILL_MS 100 /* period of looks at members that are being filled */
#define SHOW_NS WEIR_NS_PER_S /* a member that is filled sooner is not shown */
#define SHOW_PERCENT 10u

void weir_volume_pool_end(struct weir_volume *v, int status)
{
	weir_volume_lock(v);
	if (!v->status)
		v->status = status;
	weir_volume_unlock(v);
	weir_volume_kick(v);
	weir_volume_wake(&v->pool->changed);
}

static void publish(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	weir_volume_lock(v);
	*p->fresh = *p->scratch;
	p->has_fresh = true;
	weir_volume_unlock(v);
	weir_volume_kick(v);
}

static void report_member(struct weir_volume *v, uint16_t number, const struct weir_pool_member *m)
{
	struct weir_volume_pool *p = v->pool;
	uint64_t *reported = &p->reported[number][m->shard], ready;

	weir_volume_lock(v);
	ready = p->ready[number][m->shard];
	weir_volume_unlock(v);
	if (m->state != WEIR_POOL_SYNCING || ready != m->joined || *reported == ready)
		return;
	if (!weir_pool_client_report_synced(p->client, number, p->scratch->donor[m->donor].id,
					    m->joined, NULL))
		*reported = ready;
}

/* Tells the pool which members have all data of the volume. */
static void report_synced(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	const struct weir_pool_table *table =
		weir_pool_map_table(p->scratch,
				    weir_pool_map_volume(p->scratch, p->name)->scheme);

	for (uint16_t i = 0; i < table->count; i++) {
		const struct weir_pool_group *group = &p->scratch->group[table->first + i];

		for (uint8_t j = 0; j < group->nr_members; j++)
			report_member(v, (uint16_t)(table->first + i), &group->member[j]);
	}
}

/* Whether the map still has the volume, and so may be used. */
static bool has_volume(const struct weir_volume_pool *p)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(p->scratch, p->name);

	return p->scratch->id == p->pool_id && volume && volume->id == p->volume_id &&
	       weir_pool_map_is_ready(p->scratch, volume->scheme);
}

/* A donor's claim gives way to a client without notice. */
static bool has_claim(const struct weir_volume *v)
{
	const struct weir_volume_pool *p = v->pool;
	uint64_t holder = weir_pool_map_volume(p->scratch, p->name)->holder;

	return holder == weir_pool_client_claimed(p->client) || (!holder && !v->rebuild);
}

/* Shows how far the syncing members are, in steps, so that the map changes a few times only. */
static void show_progress(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	unsigned int percent = weir_volume_pool_progress(v);
	uint64_t now_ns = weir_now_ns();

	if (percent == 100 && p->shown == 100) {
		p->shown_ns = now_ns;
		return;
	}
	if (percent < 100 && (now_ns < p->shown_ns + SHOW_NS ||
			      (p->shown < 100 && percent < p->shown + SHOW_PERCENT)))
		return;
	if (!weir_pool_client_report_progress(p->client, percent,
					      v->rebuild ? v->rebuild->donor : NULL, NULL))
		p->shown = percent;
	p->shown_ns = now_ns;
}

/*
 * A donor that rebuilds computes the right bytes from other shards, and may not repair the wrong
 * shard. So the operator must know its donor. A client repairs wrong shards.
 */
static void show_wrong(struct weir_volume *v)
{
	for (uint8_t i = 0; v->rebuild && i < v->nr_targets; i++) {
		struct weir_volume_target *target = &v->targets[i];
		char id[WEIR_POOL_NAME_MAX];
		uint64_t incarnation, more;

		weir_volume_lock(v);
		memcpy(id, target->id, sizeof(id));
		incarnation = target->incarnation;
		more = target->wrong_reads - target->wrong_shown;
		weir_volume_unlock(v);
		if (more && !weir_pool_client_report_wrong(v->pool->client, id, incarnation, more,
							   NULL))
			target->wrong_shown += more;
	}
}

/* Whether the pool knows that the donor's members have all data. */
static bool is_rebuilt(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	const struct weir_pool_table *table =
		weir_pool_map_table(p->scratch,
				    weir_pool_map_volume(p->scratch, p->name)->scheme);

	for (uint16_t i = table->first; i < table->first + table->count; i++) {
		struct weir_member_group group;

		weir_volume_pool_read_group(v, p->scratch, i, &group);
		for (uint8_t j = 0; weir_members_are_wanted(&p->members, &group) && j < group.nr;
		     j++) {
			const struct weir_member *m = &group.member[j];

			if (m->is_own && !m->serves && p->reported[i][m->shard] != m->joined)
				return false;
		}
	}
	return true;
}

static void check_rebuilt(struct weir_volume *v)
{
	if (!v->rebuild || !is_rebuilt(v))
		return;
	weir_volume_lock(v);
	v->pool->is_rebuilt = true;
	weir_volume_unlock(v);
	weir_volume_wake(&v->pool->changed);
}

/* Keeps the claim; changes of the map in a row do not wait for that. Return: as read_map(). */
static int keep_claim(struct weir_volume *v, bool has_changed)
{
	struct weir_volume_pool *p = v->pool;
	uint64_t now_ns = weir_now_ns();
	int rc;

	if (has_changed && now_ns < p->kept_ns + p->scratch->lease_ms / 6 * WEIR_NS_PER_MS)
		return 0;
	rc = weir_pool_client_keep(p->client, NULL);
	if (!rc)
		p->kept_ns = now_ns;
	weir_volume_lock(v);
	p->lease = weir_pool_client_lease(p->client);
	p->claimed = weir_pool_client_claimed(p->client);
	weir_volume_unlock(v);
	return rc;
}

/* Return: 0; -ESTALE the claim is over; another errno: try again. */
static int read_map(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	uint64_t revision = p->scratch->revision;
	int rc = weir_pool_client_read(p->client, p->scratch, NULL);

	if (!rc && (!has_volume(p) || !has_claim(v)))
		rc = -ESTALE;
	if (!rc && p->scratch->revision != revision)
		publish(v);
	return rc;
}

/* A new map comes first: writes may wait for it. Return: as read_map(). */
static int update(struct weir_volume *v, bool has_changed)
{
	int rc = read_map(v), kept;

	if (rc == -ESTALE || rc == -EHOSTUNREACH)
		return rc;
	kept = keep_claim(v, has_changed);
	if (rc || kept)
		return kept ? kept : rc;
	show_wrong(v); /* before the volume is closed, which the last report may cause */
	report_synced(v);
	show_progress(v);
	check_rebuilt(v);
	return 0;
}

static bool has_syncing(const struct weir_pool_map *map)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (weir_pool_group_count(&map->group[i], WEIR_POOL_SYNCING))
			return true;
	}
	return false;
}

/* A change ends the wait. A member may get filled without one. */
static int wait_for_change(struct weir_volume_pool *p)
{
	unsigned int ms = p->scratch->lease_ms / 3;

	if (has_syncing(p->scratch) && ms > FILL_MS)
		ms = FILL_MS;
	return weir_pool_client_wait(p->client, p->scratch, ms, NULL);
}

static void *watch(void *arg)
{
	struct weir_volume *v = arg;
	int rc;

	while (!weir_volume_is_closing(v)) {
		rc = wait_for_change(v->pool);
		if (weir_volume_is_closing(v))
			break;
		if (!rc || rc == -ETIMEDOUT)
			rc = update(v, !rc);
		if (rc == -ESTALE) {
			weir_volume_pool_end(v, rc);
			break;
		}
		if (rc)
			weir_pool_client_pause(v->pool->client);
	}
	return NULL;
}

int weir_volume_pool_watch(struct weir_volume *v, struct weir_error *error)
{
	struct weir_volume_pool *p = v->pool;
	int rc = weir_thread_create(&p->watcher, "weir-watch", watch, v, error);

	p->has_watcher = !rc;
	return rc;
}

/* The end of the claim is a change of the map, which wakes the thread. */
void weir_volume_pool_stop(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	uint64_t lease;

	if (!p)
		return;
	weir_volume_lock(v);
	lease = p->lease;
	weir_volume_unlock(v);
	if (lease)
		(void)weir_pool_store_revoke(weir_pool_client_store(p->reporter), lease, NULL);
	if (p->has_watcher)
		pthread_join(p->watcher, NULL);
}
