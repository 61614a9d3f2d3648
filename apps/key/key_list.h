/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's list of keys: a file that 'weir key' changes and 'weir serve --keys' reads.
 *
 * The first line says how many keys follow, so a file that ends early is noticed. The file is
 * replaced as a whole: a reader sees the old list or the new one. The list holds the keys
 * themselves, so only its owner or root may read it.
 */
#ifndef WEIR_APPS_KEY_KEY_LIST_H
#define WEIR_APPS_KEY_KEY_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/error.h>

#include "lib/conn/key.h"

#define KEY_LIST_MAX 64
#define KEY_LIST_NAME 64 /* bytes of a name, its NUL included */
#define KEY_LIST_DIGITS 64 /* of a key, as 'weir key new' writes it */
#define KEY_LIST_RIGHTS 64 /* bytes of rights as text */

/**
 * struct key_entry - one key
 * @tenant: keys of one tenant share its files and regions
 * @rights: of enum weir_right
 * @quota: bytes of regions of its clients; 0: no limit
 * @is_old: a newer key has the same name, and both are valid
 */
struct key_entry {
	char name[KEY_LIST_NAME], tenant[KEY_LIST_NAME];
	unsigned int rights;
	uint64_t quota;
	bool is_old;
	char digits[KEY_LIST_DIGITS + 1];
};

/* Which version of the file: each change replaces it. All zero: none. */
struct key_list_id {
	uint64_t inode, bytes, seconds, nanoseconds;
};

/**
 * struct key_list - a list in memory
 * @id: of the file, also if it was refused
 * @owner, @group: of the file; root's and root's if there is none
 */
struct key_list {
	struct key_entry entry[KEY_LIST_MAX];
	unsigned int nr;
	struct key_list_id id;
	uid_t owner;
	gid_t group;
};

/* An empty list in memory for keys. Return: NULL: out of memory. */
struct key_list *key_list_new(void);
/* Wipes and frees. @list may be NULL. */
void key_list_free(struct key_list *list);

/*
 * For a donor: only a list of its own user or of root counts.
 * Return: 0; -ENOENT no file; -EACCES others may read it; -EINVAL malformed; another errno.
 */
int key_list_read(const char *path, struct key_list *list, struct weir_error *error);
/* For a command: root also keeps the lists of donors of other users. */
int key_list_read_as_keeper(const char *path, struct key_list *list, struct weir_error *error);
/* Replaces the file, mode 0600; by root, it stays its owner's. Return: 0, or a negative errno. */
int key_list_write(const char *path, const struct key_list *list, struct weir_error *error);

/* Which version of the file is there now. Return: false if there is none. */
bool key_list_identify(const char *path, struct key_list_id *id);

/*
 * Keeps other commands from changing the list, until key_list_unlock(). Waits at most 10 s.
 * Return: a descriptor; a negative errno, as of weir_lock_file_take().
 */
int key_list_lock(const char *path, struct weir_error *error);
void key_list_unlock(const char *path, int lock);

/* Return: the entry, or NULL. */
struct key_entry *key_list_find(struct key_list *list, const char *name, bool is_old);
void key_list_remove(struct key_list *list, struct key_entry *entry);

/* Letters, digits, '.', '_' and '-'. */
bool key_list_is_name(const char *name);
/*
 * "all", without pool, or names separated by commas. Return: false, and @rights unchanged, if
 * malformed.
 */
bool key_list_rights_parse(const char *text, unsigned int *rights);
void key_list_rights_format(unsigned int rights, char text[static KEY_LIST_RIGHTS]);

/* The key itself. */
void key_list_key(const struct key_entry *entry, struct weir_key *key);

#endif
