/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/softnic_list.h"
#include "apps/common/pid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_MAX 1024

static int compare_pids(const void *a, const void *b)
{
	const struct softnic_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int softnic_list_take(struct softnic_list *list)
{
	int rc;

	*list = (struct softnic_list){ .process = calloc(PROCESSES_MAX, sizeof(*list->process)) };
	if (!list->process)
		return -ENOMEM;
	rc = softnic_stat_answers(list->process, PROCESSES_MAX, &list->count, &list->silent);
	if (rc)
		softnic_list_free(list);
	else
		qsort(list->process, list->count, sizeof(*list->process), compare_pids);
	for (size_t i = 0; i < list->count; i++)
		pid_clean_comm(list->process[i].comm);
	return rc;
}

struct peer_name softnic_list_peer(const struct softnic_peer *peer)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, 0xff }, none[16];
	struct peer_name name = { "others" };

	if (!memcmp(peer->gid, ipv4, sizeof(ipv4)))
		inet_ntop(AF_INET, peer->gid + sizeof(ipv4), name.text, sizeof(name.text));
	else if (memcmp(peer->gid, none, sizeof(none)) != 0)
		inet_ntop(AF_INET6, peer->gid, name.text, sizeof(name.text));
	return name;
}

void softnic_list_free(struct softnic_list *list)
{
	free(list->process);
	*list = (struct softnic_list){ 0 };
}
