/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The processes of this user that have softnic open, and their counters. */
#ifndef WEIR_APPS_INSPECT_SOFTNIC_LIST_H
#define WEIR_APPS_INSPECT_SOFTNIC_LIST_H

#include "softnic/control/stat.h"

/**
 * struct softnic_list - processes found; all zero: empty
 * @process: the processes; softnic_list_free() frees them. Their names are printable
 * @count: number of processes
 * @silent: number of processes that do not answer, such as stopped ones
 */
struct softnic_list {
	struct softnic_process *process;
	size_t count, silent;
};

/* Return: 0; -ENOMEM; errors of socket(2). A failure leaves an empty list. */
int softnic_list_take(struct softnic_list *list);
/** struct peer_name - a peer's address; "others" for those beyond the table */
struct peer_name {
	char text[64];
};

struct peer_name softnic_list_peer(const struct softnic_peer *peer);

void softnic_list_free(struct softnic_list *list);

#endif
