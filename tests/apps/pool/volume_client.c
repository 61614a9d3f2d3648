/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client of a volume that moves no data, for pool_test.py: opens the volume and prints "open".
 * Each line on standard input is a command, answered by "done": "failed NAME" reports the donor as
 * it is registered; "synced" reports all SYNCING members. The end of the input closes the volume.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/pool/client.h"

static struct weir_pool_map map;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void check(int rc, const struct weir_error *error)
{
	if (!rc)
		return;
	fprintf(stderr, "volume_client: %s\n", error->text);
	exit(1);
}

static void *keep(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		(void)weir_pool_client_keep(arg, NULL);
		pthread_mutex_unlock(&lock);
		usleep(300000);
	}
	return NULL;
}

static void report_failed(struct weir_pool_client *client, const char *name)
{
	struct weir_error error;
	uint16_t donor = weir_pool_map_donor(&map, name);

	if (donor == WEIR_POOL_NO_DONOR)
		exit(2);
	check(weir_pool_client_report_failed(client, name, map.donor[donor].incarnation, &error),
	      &error);
}

static void report_synced(struct weir_pool_client *client)
{
	struct weir_error error;

	for (uint16_t i = 0; i < weir_pool_map_groups(&map); i++) {
		const struct weir_pool_group *group = &map.group[i];

		for (uint8_t j = 0; j < group->nr_members; j++) {
			const struct weir_pool_member *m = &group->member[j];

			if (m->state == WEIR_POOL_SYNCING)
				check(weir_pool_client_report_synced(client, i,
								     map.donor[m->donor].id,
								     m->joined, &error),
				      &error);
		}
	}
}

int main(int argc, char **argv)
{
	struct weir_pool_client *client;
	struct weir_error error;
	char line[128];
	pthread_t thread;

	if (argc != 3)
		return 2;
	check(weir_pool_client_open(argv[1], &client, &error), &error);
	check(weir_pool_client_open_volume(client, argv[2], &map, &error), &error);
	pthread_create(&thread, NULL, keep, client);
	puts("open");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		pthread_mutex_lock(&lock);
		check(weir_pool_client_read(client, &map, &error), &error);
		if (!strncmp(line, "failed ", 7))
			report_failed(client, line + 7);
		else if (!strcmp(line, "synced"))
			report_synced(client);
		pthread_mutex_unlock(&lock);
		puts("done");
		fflush(stdout);
	}
	pthread_mutex_lock(&lock);
	weir_pool_client_close(client);
	_exit(0);
}
