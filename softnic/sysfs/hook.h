/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts that the C library's path functions share when they know softnic's tree.
 *
 * Each function asks the next library first, because only the kernel can detect an invalid
 * pointer. When the kernel finds nothing, the function looks into the tree. Functions of 64-bit
 * offsets and plain ones are the same, since long has 64 bits.
 */
#ifndef WEIR_SOFTNIC_SYSFS_HOOK_H
#define WEIR_SOFTNIC_SYSFS_HOOK_H

#include <dlfcn.h>
#include <sys/types.h>

#include "tree.h"

_Static_assert(sizeof(long) == 8, "struct stat is struct stat64");

/* Marks a memfd or deleted directory that stands for a path of the tree, which follows. */
#define HOOK_TAG "weir-sysfs."
#define HOOK_TEMPLATE HOOK_TAG "XXXXXX" /* of mkdtemp() */

/* A function named @symbol; its header maps some names to others. */
#define HOOK(symbol) __asm__(#symbol) __attribute__((visibility("default")))
/* A second name for the function of this file named @symbol. */
#define HOOK_ALIAS(symbol, name) \
	__asm__(#name) __attribute__((visibility("default"), alias(#symbol)))

/* The function of this name in the next library. Threads that race find the same one. */
#define HOOK_NEXT(name) HOOK_NEXT_AS(__typeof__(&name), #name)
#define HOOK_NEXT_AS(type, name)                                          \
	({                                                                \
		static type next;                                         \
		type found = __atomic_load_n(&next, __ATOMIC_RELAXED);    \
                                                                          \
		if (!found) {                                             \
			found = (type)dlsym(RTLD_NEXT, name);             \
			__atomic_store_n(&next, found, __ATOMIC_RELAXED); \
		}                                                         \
		found;                                                    \
	})

/**
 * hook_missed() - after a failure: does the tree have what the kernel has not?
 * @dirfd: of a relative @path, or AT_FDCWD
 * @path: a valid string, because the kernel has read it
 * @follow: also follow a link that is the last component
 *
 * Return: true with @node filled, or false. In any case errno is what the kernel would set.
 */
bool hook_missed(int dirfd, const char *path, bool follow, struct sysfs_node *node);

/** hook_may_be_inside() - a quick test, because programs try many paths that do not exist */
bool hook_may_be_inside(const char *path);

/** hook_shadows() - is a directory that the kernel has found also one of the tree? */
bool hook_shadows(const char *path, struct sysfs_node *node);

/** hook_descriptor() - fill @node if @fd stands for a path of the tree; errno is unchanged */
bool hook_descriptor(int fd, struct sysfs_node *node);

/** hook_path() - the path of a descriptor or, for AT_FDCWD, of the process; false if unknown */
bool hook_path(int fd, char *path, size_t size);

/**
 * hook_open() - open a node
 * @flags: of open()
 *
 * The descriptor is a sealed memfd with the present contents; of a directory, an empty one. Its
 * name is the path, so that the descriptor is recognised after dup() and fork().
 *
 * Return: a descriptor, or -1 with errno.
 */
int hook_open(const struct sysfs_node *node, int flags);

#endif
