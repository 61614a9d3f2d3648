/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The files of /sys and /dev that the kernel would show for softnic's devices.
 *
 * No file exists: a table says which paths there are, and which function writes the contents of
 * each. So a killed process leaves nothing behind, and each open shows the present state. The hooks
 * of this directory ask the kernel first, and this tree when the kernel finds nothing.
 */
#ifndef WEIR_SOFTNIC_SYSFS_TREE_H
#define WEIR_SOFTNIC_SYSFS_TREE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SYSFS_PATH_MAX = 192, /* of a path in the tree, with NUL; a memfd's name holds it */
	SYSFS_TEXT_MAX = 4096, /* bytes in a file, as in the kernel's */
};

/* Fields of a pattern: %d, %p, %g, %n, as in "softnic%d", "ports/%p", "gids/%g", "net/%n". */
enum sysfs_field { SYSFS_DEVICE, SYSFS_PORT, SYSFS_GID, SYSFS_NETDEV, SYSFS_FIELDS };

/** struct sysfs_at - the numbers in a path; a netdev's is its interface index */
struct sysfs_at {
	uint32_t value[SYSFS_FIELDS];
	uint32_t seen; /* a bit for each field in the path */
};

enum sysfs_kind {
	SYSFS_DIRECTORY,
	SYSFS_FILE,
	SYSFS_LINK,
	SYSFS_NODE, /* a character device */
	SYSFS_ELSEWHERE, /* a link of the tree leads to a path of the kernel's */
};

struct sysfs_entry {
	const char *pattern;
	enum sysfs_kind kind;
	/* Contents of a file or link; may have fields of the pattern. Unused if @write is set. */
	const char *text;
	/* Writes @size bytes at most with NUL; returns 0 or a negative errno. */
	int (*write)(const struct sysfs_entry *e, const struct sysfs_at *at, char *text,
		     size_t size);
	size_t counter; /* offset in struct softnic_counters, for @write */
};

/** struct sysfs_node - a path that was found */
struct sysfs_node {
	enum sysfs_kind kind;
	const struct sysfs_entry *entry; /* NULL for directories and elsewhere */
	struct sysfs_at at;
	char path[SYSFS_PATH_MAX]; /* absolute, without links unless the node is one */
};

/**
 * sysfs_find() - find an absolute path in the tree
 * @path: the path; links, "." and ".." are resolved
 * @follow: also follow a link that is the last component
 *
 * Return: false if the path leads to nothing of the tree; @node is then undefined.
 */
bool sysfs_find(const char *path, bool follow, struct sysfs_node *node);

/**
 * sysfs_read() - the contents of a file, or the target of a link
 * @text: receives SYSFS_TEXT_MAX bytes at most
 *
 * Return: number of bytes, or a negative errno; -EINVAL for an empty entry of a table, as in the
 * kernel.
 */
int sysfs_read(const struct sysfs_node *node, char *text);

/**
 * sysfs_list() - the entries of a directory, without "." and ".."
 * @entries: set to an array, which the caller frees
 *
 * Return: number of entries, or -ENOMEM.
 */
int sysfs_list(const struct sysfs_node *directory, struct dirent **entries);

/** sysfs_inode() - an inode number for a path of the tree; never 0 */
uint64_t sysfs_inode(const char *path);

/* The table, in attrs.c. */
extern const struct sysfs_entry sysfs_table[];
extern const size_t sysfs_table_length;

#endif
