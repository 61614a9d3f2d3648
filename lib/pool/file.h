/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contents of a pool's file and of its leases, in memory. For file.c and file_image.c.
 *
 * PATH holds the keys. PATH.leases holds the ends of the leases, apart from the keys, so that a
 * renewed lease wakes nobody that waits for a change. PATH.lock is locked by each change.
 */
#ifndef WEIR_LIB_POOL_FILE_H
#define WEIR_LIB_POOL_FILE_H

#include <limits.h>
#include <stdint.h>

#include "lib/pool/backend.h"

struct json_object;

/**
 * struct weir_pool_file - a store in a file
 * @store: base for the calls of store.h
 * @path: the file's path
 * @directory: the folder of the file
 * @boot: identifies this boot of the host: leases of another are over
 * @watch: inotify descriptor, or -1
 */
struct weir_pool_file {
	struct weir_pool_store store;
	char path[PATH_MAX];
	char directory[PATH_MAX];
	char boot[40];
	int watch;
};

/**
 * struct weir_pool_image - what the files hold
 * @keys: by name, objects {"value", "version", "lease"}
 * @leases: by number, objects {"ttl_ms", "ends_ms"}
 * @revision: number of the store's last change
 */
struct weir_pool_image {
	struct json_object *keys, *leases;
	uint64_t revision;
};

/* Reads both files; missing ones are empty. The caller owes a weir_pool_image_free(). */
int weir_pool_image_load(const struct weir_pool_file *file, struct weir_pool_image *image,
			 struct weir_error *error);
void weir_pool_image_free(struct weir_pool_image *image);

/* Replaces one file as a whole, and returns once the disk has the new contents. */
int weir_pool_image_store_keys(const struct weir_pool_file *file, struct weir_pool_image *image,
			       struct weir_error *error);
/* The same without the disk: no lease outlives a crash of the host. */
int weir_pool_image_store_leases(const struct weir_pool_file *file, struct weir_pool_image *image,
				 struct weir_error *error);

/* Removes keys whose lease is over. Return: the number of keys removed. */
unsigned int weir_pool_image_expire(struct weir_pool_image *image, uint64_t now_ms);

/* The next end of a lease that has keys; UINT64_MAX: none. */
uint64_t weir_pool_image_deadline_ms(const struct weir_pool_image *image, uint64_t now_ms);

/* The object of a lease, or NULL if it is over. */
struct json_object *weir_pool_image_lease(const struct weir_pool_image *image, uint64_t lease,
					  uint64_t now_ms);

#endif
