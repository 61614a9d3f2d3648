/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/log/log.h"
#include "apps/metrics/host_metrics.h"

#include "apps/pool/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DONOR_STATES 4
#define STATES_MAX 5

_Static_assert(POOL_GROUP_STATES <= STATES_MAX && DONOR_STATES <= STATES_MAX, "a row a state");

struct pool_values {
	uint64_t is_up, memory_bytes, volumes, volume_bytes, syncing, wrong_reads;
};

#define POOL(name, help, field)                                                            \
	{                                                                                  \
		"weir_pool_" name, METRIC_GAUGE, help, offsetof(struct pool_values, field) \
	}

static const struct metric of_pool[] = {
	POOL("up", "1 if the map of the pool could be read, else 0", is_up),
	POOL("memory_bytes", "bytes of the donors that are there", memory_bytes),
	POOL("volumes", "volumes of the pool", volumes),
	POOL("volume_bytes", "bytes of all volumes, without copies", volume_bytes),
	POOL("syncing_members", "members of groups whose data are being rebuilt or will be",
	     syncing),
	POOL("wrong_reads",
	     "reads of donors that rebuild in which the memory of a donor had wrong bytes; of the "
	     "donors that are there",
	     wrong_reads),
	{ NULL },
};

const struct metric_group pool_metrics = {
	.title = "Pools",
	.labels = "`pool`, as given to --pool",
	.metrics = of_pool,
};

static const struct metric of_groups[] = {
	{ "weir_pool_groups", METRIC_GAUGE, "groups of the pool in this state", 0 },
	{ NULL },
};

const struct metric_group pool_group_metrics = {
	.title = "Groups of a pool",
	.labels = "`pool`; `state`: `whole`, `lean` (lacks a member), `away` (cannot be read or "
		  "written until a donor is back), `lost` (its data), or `missing` (too few donors "
		  "to make it)",
	.metrics = of_groups,
};

static const struct metric of_donors[] = {
	{ "weir_pool_donors", METRIC_GAUGE, "donors of the pool in this state", 0 },
	{ NULL },
};

const struct metric_group pool_donor_metrics = {
	.title = "Donors of a pool",
	.labels = "`pool`; `state`: `up`, `draining`, `failed` or `gone`",
	.metrics = of_donors,
};

/* One row for each state. */
static void write_states(struct exposition *x, const struct metric_group *group, const char *pool,
			 const char *const *states, const uint64_t *counts, size_t nr_states)
{
	struct metric_row rows[STATES_MAX] = { 0 };

	for (size_t i = 0; i < nr_states; i++) {
		rows[i].values = &counts[i];
		metric_label_add(&rows[i], "pool", "%s", pool);
		metric_label_add(&rows[i], "state", "%s", states[i]);
	}
	exposition_group(x, group, rows, nr_states);
}

static void write_groups(struct exposition *x, const char *pool, const struct weir_pool_map *map)
{
	const struct pool_group_counts counts = pool_count_groups(map);

	write_states(x, &pool_group_metrics, pool, pool_group_states, counts.of, POOL_GROUP_STATES);
}

static void write_donors(struct exposition *x, const char *pool, const struct weir_pool_map *map)
{
	static const char *const states[DONOR_STATES] = { "up", "draining", "failed", "gone" };
	uint64_t counts[DONOR_STATES] = { 0 };

	for (uint16_t i = 0; i < map->nr_donors; i++)
		for (int state = 0; state < DONOR_STATES; state++)
			counts[state] += !strcmp(pool_donor_state(map, i), states[state]);
	write_states(x, &pool_donor_metrics, pool, states, counts, DONOR_STATES);
}

static void write_pool(struct exposition *x, const char *pool, const struct weir_pool_map *map)
{
	struct pool_values values = { .is_up = !!map };
	struct metric_row row = { .values = &values };

	if (map) {
		values.memory_bytes = pool_sum_bytes(map);
		values.volumes = map->nr_volumes;
		values.wrong_reads = pool_sum_wrong_reads(map);
	}
	for (uint16_t i = 0; map && i < map->nr_volumes; i++)
		values.volume_bytes += map->volume[i].bytes;
	for (uint16_t i = 0; map && i < weir_pool_map_groups(map); i++)
		if (map->group[i].version)
			values.syncing += weir_pool_group_count(&map->group[i], WEIR_POOL_SYNCING);
	metric_label_add(&row, "pool", "%s", pool);
	exposition_group(x, &pool_metrics, &row, 1);
}

int pool_metrics_collect(struct exposition *x, const char *pool, struct weir_pool_client *client)
{
	struct weir_pool_map *map;
	struct weir_error why;

	if (!client)
		return 0;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	if (weir_pool_client_read(client, map, &why)) {
		log_event(WEIR_LOG_WARNING, "pool unreachable pool=%s id=W404: %s", pool, why.text);
		write_pool(x, pool, NULL);
	} else {
		write_pool(x, pool, map);
		write_groups(x, pool, map);
		write_donors(x, pool, map);
	}
	free(map);
	return 0;
}
