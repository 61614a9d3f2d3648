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

struct key_list {
	struct key_entry entry[KEY_LIST_MAX];
	unsigned int nr;
};

/* Return: 0; -ENOENT no file; -EACCES others may read it; -EINVAL malformed; another errno. */
int key_list_read(const char *path, struct key_list *list, struct weir_error *error);
/* Replaces the file, mode 0600. Return: 0, or a negative errno. */
int key_list_write(const char *path, const struct key_list *list, struct weir_error *error);

/* Keeps other commands from changing the list. Return: a descriptor to close; a negative errno. */
int key_list_lock(const char *path, struct weir_error *error);

/* Return: the entry, or NULL. */
struct key_entry *key_list_find(struct key_list *list, const char *name, bool is_old);
void key_list_remove(struct key_list *list, struct key_entry *entry);
void key_list_wipe(struct key_list *list);

/* Letters, digits, '.', '_' and '-'. */
bool key_list_is_name(const char *name);
/* "all", or names separated by commas. Return: false, and @rights unchanged, if malformed. */
bool key_list_rights_parse(const char *text, unsigned int *rights);
void key_list_rights_format(unsigned int rights, char text[static KEY_LIST_RIGHTS]);

/* The key itself. */
void key_list_key(const struct key_entry *entry, struct weir_key *key);

#endif
