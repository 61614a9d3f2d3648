/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's state for other commands of this host: weir top shows it, and weir lend compares with
 * it. weir serve writes it once a second to a memory file that others find by its name.
 */
#ifndef WEIR_APPS_SERVE_DONOR_PAGE_H
#define WEIR_APPS_SERVE_DONOR_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/key/key_list.h"

#define DONOR_PAGE_NAME "weir-donor"
#define DONOR_PAGE_MAGIC 0x33726f6e6f646577ull /* "wedonor3" */

struct weir_donor;

/**
 * struct donor_page_keys - the donor's answer to the last change of its list of keys
 * @list: the file that the donor has read; all zero: none
 * @status: 0: the donor admits the list's keys and no others; else a negative errno
 * @reason: of an error
 */
struct donor_page_keys {
	struct key_list_id list;
	int64_t status;
	char reason[512];
};

/**
 * struct donor_page - the whole file
 * @magic: DONOR_PAGE_MAGIC, which changes with the layout
 * @keys: see there
 * @available_bytes: available_memory() of the donor's process
 * @start_bytes: what the donor was started with, and may lend at most
 *
 * The rest is as in struct weir_donor_info.
 */
struct donor_page {
	uint64_t magic;
	uint64_t available_bytes, start_bytes, limit_bytes, lent_bytes;
	uint64_t clients, regions, joins, rejects, messages, unloaded;
	char address[64];
	char device[64];
	struct donor_page_keys keys;
};

/* Return: a descriptor; -EMFILE, -ENFILE, -ENOMEM. */
int donor_page_create(void);

/* Writes the state of now. */
void donor_page_update(int fd, struct weir_donor *donor, const struct donor_page_keys *keys);

/* A donor found, as it is now; its texts are printable. */
struct donor_found {
	pid_t pid;
	struct donor_page page;
};

/**
 * struct donor_list - donors of this host; all zero: empty
 * @found: @count of them; donor_list_free() frees them
 */
struct donor_list {
	struct donor_found *found;
	size_t count;
};

/*
 * Adds the donors of a process, or with @pid 0 of all processes of this user, or of all users if
 * root asks. Return: as memfd_scan_process().
 */
int donor_list_add(struct donor_list *list, pid_t pid);
void donor_list_free(struct donor_list *list);

#endif
