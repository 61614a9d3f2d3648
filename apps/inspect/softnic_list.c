/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/softnic_list.h"
#include "apps/common/pid.h"

#include <errno.h>
#include <stdlib.h>

#define PROCESSES_MAX 1024

int softnic_list_take(struct softnic_list *list)
{
	int rc;

	*list = (struct softnic_list){ .process = calloc(PROCESSES_MAX, sizeof(*list->process)) };
	if (!list->process)
		return -ENOMEM;
	rc = softnic_stat(list->process, PROCESSES_MAX, &list->count);
	if (rc)
		softnic_list_free(list);
	for (size_t i = 0; i < list->count; i++)
		pid_clean_comm(list->process[i].comm);
	return rc;
}

void softnic_list_free(struct softnic_list *list)
{
	free(list->process);
	*list = (struct softnic_list){ 0 };
}
