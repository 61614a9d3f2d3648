/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/pool/pool.h"
#include "apps/common/cmd.h"
#include "apps/common/stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: weir pool COMMAND [OPTION...]\n"
	"A pool is the memory of many donors under one name. Its map is in etcd, or in a file if\n"
	"all donors are on one host. 'weir serve --pool POOL' is a donor of a pool.\n\n"
	"  create POOL                   make a pool\n"
	"  status POOL                   show what is whole and what is missing\n"
	"  donors POOL                   list the donors\n"
	"  drain POOL DONOR              give a donor's places to others\n"
	"  rebalance POOL                move places to donors that have few\n"
	"  volume create POOL NAME SIZE  make a volume\n"
	"  volume list POOL              list the volumes\n"
	"  volume import POOL NAME FILE  write a file to a volume\n"
	"  volume export POOL NAME FILE  write a volume to a file\n"
	"  volume rm POOL NAME           remove a volume and its data\n\n"
	"POOL is one of\n"
	"  etcd:http://H1:2379,H2:2379/NAME  user and certificates as for etcdctl: ETCDCTL_USER,\n"
	"                                    ETCDCTL_PASSWORD, ETCDCTL_CACERT, ETCDCTL_CERT,\n"
	"                                    ETCDCTL_KEY\n"
	"  file:PATH                         for the donors of one host\n"
	"  NAME                              the line in $WEIR_POOLS/NAME, or\n"
	"                                    ~/.config/weir/pools/NAME or /etc/weir/pools/NAME\n\n"
	"  -h, --help         this help; see also 'weir pool COMMAND --help'\n";

static const struct subcommand commands[] = {
	{ "create", NULL, pool_create },
	{ "status", NULL, pool_status },
	{ "donors", NULL, pool_donors },
	{ "drain", NULL, pool_drain },
	{ "rebalance", NULL, pool_rebalance },
	{ "volume", "create", pool_volume_create },
	{ "volume", "list", pool_volume_list },
	{ "volume", "import", pool_volume_import },
	{ "volume", "export", pool_volume_export },
	{ "volume", "rm", pool_volume_rm },
	{ NULL },
};

int pool_session_open(struct pool_session *session, const char *cmd, const char *pool)
{
	struct weir_error error;

	session->map = calloc(1, sizeof(*session->map));
	if (!session->map)
		return failure(cmd, "out of memory");
	if (weir_pool_client_open(pool, &session->client, &error) ||
	    weir_pool_client_read(session->client, session->map, &error)) {
		pool_session_close(session);
		return failure(cmd, "%s", error.text);
	}
	return EXIT_OK;
}

void pool_session_close(struct pool_session *session)
{
	weir_pool_client_close(session->client);
	free(session->map);
	*session = (struct pool_session){ 0 };
}

int pool_session_look_again(struct pool_session *session, const char *cmd, unsigned int timeout_ms)
{
	struct weir_error error;
	int rc = weir_pool_client_wait(session->client, session->map, timeout_ms, &error);

	if (!rc || rc == -ETIMEDOUT)
		rc = weir_pool_client_read(session->client, session->map, &error);
	return rc && !stop_requested() ? failure(cmd, "%s", error.text) : EXIT_OK;
}

struct pool_places pool_count_places(const struct weir_pool_map *map, uint16_t donor)
{
	struct pool_places places = { { 0 } };

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		const struct weir_pool_group *group = &map->group[i];

		for (uint8_t j = 0; group->version && j < group->nr_members; j++) {
			if (group->member[j].donor == donor)
				places.of[group->member[j].state]++;
		}
	}
	return places;
}

unsigned int pool_count_serving(const struct weir_pool_map *map,
				const struct weir_pool_group *group)
{
	unsigned int count = 0;

	for (uint8_t i = 0; i < group->nr_members; i++)
		count += group->member[i].state == WEIR_POOL_SERVING &&
			 weir_pool_map_is_present(map, &group->member[i]);
	return count;
}

const char *const pool_group_states[POOL_GROUP_STATES] = {
	"whole", "lean", "away", "lost", "missing",
};

enum pool_group_state pool_group_state(const struct weir_pool_map *map,
				       const struct weir_pool_group *group)
{
	unsigned int serving = pool_count_serving(map, group);

	if (!group->version)
		return POOL_GROUP_MISSING;
	if (weir_pool_group_is_lost(group))
		return POOL_GROUP_LOST;
	if (serving < group->scheme.data)
		return POOL_GROUP_AWAY;
	return serving < weir_pool_width(group->scheme) ? POOL_GROUP_LEAN : POOL_GROUP_WHOLE;
}

struct pool_group_counts pool_count_groups(const struct weir_pool_map *map)
{
	struct pool_group_counts counts = { 0 };

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++)
		counts.of[pool_group_state(map, &map->group[i])]++;
	return counts;
}

uint64_t pool_sum_bytes(const struct weir_pool_map *map)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < map->nr_donors; i++)
		sum += map->donor[i].incarnation ? map->donor[i].bytes : 0;
	return sum;
}

uint64_t pool_sum_wrong_reads(const struct weir_pool_map *map)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < map->nr_donors; i++)
		sum += map->donor[i].wrong_reads;
	return sum;
}

const char *pool_donor_state(const struct weir_pool_map *map, uint16_t donor)
{
	const struct weir_pool_donor *d = &map->donor[donor];

	if (!d->incarnation)
		return "gone";
	if (d->failed == d->incarnation)
		return "failed";
	return d->is_draining ? "draining" : "up";
}

int cmd_pool(int argc, char **argv)
{
	return run_subcommand(commands, help, argc, argv);
}
