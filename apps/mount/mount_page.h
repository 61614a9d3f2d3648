/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mount's state in a memory file, for weir metrics. Operations are counted as they end. A thread
 * that waits for no donor writes the rest once a second.
 */
#ifndef WEIR_APPS_MOUNT_MOUNT_PAGE_H
#define WEIR_APPS_MOUNT_MOUNT_PAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/histogram.h"

#define MOUNT_PAGE_NAME "weir-mount"
#define MOUNT_PAGE_MAGIC 0x31746e756f6d6577ull /* "wemount1" */

enum operation_kind { OPERATION_READ, OPERATION_WRITE, OPERATION_METADATA, OPERATION_KINDS };

extern const char *const operation_names[OPERATION_KINDS]; /* "read", "write", "metadata" */

/* State of a mount; each is a gauge, with the name weir_mount_ or weir_host_mount_. */
struct mount_values {
	uint64_t is_up, in_flight, inodes, threads, waiting, shared;
};

/**
 * struct mount_page - the whole file
 * @magic: MOUNT_PAGE_MAGIC, which changes with the layout
 * @mountpoint, @donor: cut if they are longer
 * @values: of at most a second ago
 * @operations: number of ended operations
 * @duration_ns: of the timed operations: see struct operation_time
 */
struct mount_page {
	uint64_t magic;
	char mountpoint[384];
	char donor[192];
	struct mount_values values;
	uint64_t operations[OPERATION_KINDS];
	struct weir_histogram duration_ns[OPERATION_KINDS];
};

struct mount;

/**
 * struct mount_page_writer - the mount's side; all zero: closed
 * @page: mapped
 * @fd: the file, for readers in /proc/PID/fd
 * @ends: an eventfd that ends @thread; valid if @is_started
 */
struct mount_page_writer {
	struct mount_page *page;
	int fd, ends;
	pthread_t thread;
	bool is_started;
};

/* Reads the present state. Context: any thread, between mount_open() and mount_close(). */
void mount_page_values(struct mount *m, struct mount_values *values);

/* Creates the page of @m. Return: 0; -EMFILE, -ENFILE, -ENOMEM. */
int mount_page_open(struct mount *m);

/* Lets a thread keep the page up to date. Return: 0; -EMFILE, -ENFILE; -EAGAIN: no thread. */
int mount_page_start(struct mount *m);

/* Undoes mount_page_start(), if successful. The page still counts operations. */
void mount_page_stop(struct mount *m);

/* No operation ends any more. */
void mount_page_close(struct mount *m);

/* A mount, with printable texts. */
struct mount_found {
	pid_t pid;
	struct mount_page page;
};

/**
 * struct mount_list - mounts of this host; all zero: empty
 * @found: @count of them; mount_list_free() frees them
 */
struct mount_list {
	struct mount_found **found;
	size_t count;
};

/*
 * Adds the mounts of all processes of this user, or of all users if root asks. Any program may
 * have written such a page: its counts add up to anything. Return: as memfd_scan_all().
 */
int mount_list_add(struct mount_list *list);
void mount_list_free(struct mount_list *list);

#endif
