/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/inode/names.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mount/mount.h"

#define NAMES_MAX (1u << 19) /* some 60 MB; a directory that has one more is forgotten */
/* A listing's message tells a hundred names. */
#define MISSES_MIN 2
#define NAMES_PER_MISS 50
/* Of the longest names, a message tells 40, and dir_list_names() asks for a thousand messages. */
#define NAMES_LISTED_MAX 40000

struct known_name {
	struct fsd_hash_node link; /* names.table */
	LIST_ENTRY(known_name) of_dir;
	const struct inode *dir;
	uint64_t ino;
	char text[];
};

int names_init(struct names *names)
{
	pthread_mutex_init(&names->lock, NULL);
	randombytes_buf(names->key, sizeof(names->key));
	return fsd_hashtable_init(&names->table);
}

void names_fini(struct names *names)
{
	fsd_hashtable_fini(&names->table);
	pthread_mutex_destroy(&names->lock);
}

static struct names *lock(const struct inode *dir)
{
	struct names *names = &dir->mount->names;

	pthread_mutex_lock(&names->lock);
	return names;
}

static uint64_t hash(const struct names *names, const struct inode *dir, const char *text)
{
	uint8_t key[sizeof(dir->ino) + FS_NAME_MAX];
	size_t length = strnlen(text, FS_NAME_MAX);
	uint64_t hash;

	memcpy(key, &dir->ino, sizeof(dir->ino));
	memcpy(key + sizeof(dir->ino), text, length);
	crypto_shorthash((uint8_t *)&hash, key, sizeof(dir->ino) + length, names->key);
	return hash;
}

static struct known_name *find_name(const struct names *names, const struct inode *dir,
			       const char *text)
{
	struct fsd_hash_node *link = fsd_hashtable_first(&names->table, hash(names, dir, text));

	for (; link; link = fsd_hashtable_next(link)) {
		struct known_name *name = (struct known_name *)link;

		if (name->dir == dir && !strcmp(name->text, text))
			return name;
	}
	return NULL;
}

static void remove_name(struct names *names, struct known_name *name)
{
	fsd_hashtable_remove(&names->table, &name->link);
	LIST_REMOVE(name, of_dir);
	free(name);
}

static void drop_names(struct names *names, struct inode *dir)
{
	while (!LIST_EMPTY(&dir->names.names))
		remove_name(names, LIST_FIRST(&dir->names.names));
	dir->names.complete = false;
	dir->names.misses = 0;
	dir->names.changes++; /* a listing under way does not know all names any more */
}

/* Knowledge of an earlier phase is worth nothing. */
static void begin_phase(struct names *names, struct inode *dir, unsigned int phase)
{
	if (dir->names.phase == phase)
		return;
	drop_names(names, dir);
	dir->names.phase = phase;
}

/* Without memory nothing is known of the directory. Return: whether the name is. */
static bool add_name(struct names *names, struct inode *dir, const char *text, uint64_t ino)
{
	struct known_name *name = find_name(names, dir, text);

	if (name) {
		name->ino = ino;
		return true;
	}
	if (names->table.nr < NAMES_MAX)
		name = malloc(sizeof(*name) + strlen(text) + 1);
	if (!name) {
		drop_names(names, dir);
		return false;
	}
	name->dir = dir;
	name->ino = ino;
	strcpy(name->text, text);
	LIST_INSERT_HEAD(&dir->names.names, name, of_dir);
	fsd_hashtable_add(&names->table, &name->link, hash(names, dir, text));
	return true;
}

/* Lock held. The donor refuses a name that is too long. */
static enum names_answer look_up(const struct names *names, const struct inode *dir,
				 const char *text, uint64_t *ino)
{
	const struct known_name *name;

	if (dir->names.changing || strnlen(text, FS_NAME_MAX + 1) > FS_NAME_MAX ||
	    !sharing_knows(&dir->mount->share, dir->names.phase))
		return NAMES_UNKNOWN;
	name = find_name(names, dir, text);
	if (!name)
		return dir->names.complete ? NAMES_ABSENT : NAMES_UNKNOWN;
	*ino = name->ino;
	return NAMES_PRESENT;
}

enum names_answer names_find(struct inode *dir, const char *text, uint64_t *ino)
{
	struct names *names = lock(dir);
	const enum names_answer answer = look_up(names, dir, text, ino);

	pthread_mutex_unlock(&names->lock);
	return answer;
}

static bool is_as_said(const struct names *names, const struct names_edit *edit)
{
	uint64_t ino = 0;

	switch (look_up(names, edit->dir, edit->name, &ino)) {
	case NAMES_PRESENT:
		return ino == edit->before;
	case NAMES_ABSENT:
		return !edit->before;
	default:
		return false;
	}
}

static bool is_empty(const struct inode *dir)
{
	return !dir->names.changing && dir->names.complete && LIST_EMPTY(&dir->names.names) &&
	       sharing_knows(&dir->mount->share, dir->names.phase);
}

static void apply_edit(struct names *names, const struct names_edit *edit)
{
	struct known_name *name;

	edit->dir->names.changes++;
	if (edit->after) {
		add_name(names, edit->dir, edit->name, edit->after);
		return;
	}
	name = find_name(names, edit->dir, edit->name);
	if (name)
		remove_name(names, name);
}

bool names_edit(struct names_edit *edit, unsigned int nr, struct inode *empty,
		bool (*change)(void *arg), void *arg, unsigned int *phase)
{
	struct names *names = lock(edit->dir);
	bool done = !empty || is_empty(empty);

	*phase = edit->dir->names.phase;
	for (unsigned int i = 0; i < nr && done; i++)
		done = is_as_said(names, &edit[i]);
	done = done && change(arg);
	for (unsigned int i = 0; i < nr && done; i++)
		apply_edit(names, &edit[i]);
	if (done && empty)
		drop_names(names, empty);
	pthread_mutex_unlock(&names->lock);
	return done;
}

void names_wait(struct names *names)
{
	pthread_mutex_lock(&names->lock);
	pthread_mutex_unlock(&names->lock);
}

struct names_ticket names_note_question(struct inode *dir)
{
	const unsigned int phase = atomic_load(&dir->mount->share.phase);
	struct names *names = lock(dir);
	struct names_ticket ticket;

	begin_phase(names, dir, phase);
	ticket = (struct names_ticket){ !dir->names.changing, dir->names.changes };
	pthread_mutex_unlock(&names->lock);
	return ticket;
}

/* Whether the reply is as new as what is known, and of the phase in which the question began. */
static bool is_news(const struct inode *dir, struct names_ticket ticket, unsigned int phase)
{
	return ticket.valid && ticket.changes == dir->names.changes && phase == dir->names.phase &&
	       sharing_knows(&dir->mount->share, phase);
}

bool names_learn(struct inode *dir, struct names_ticket ticket, unsigned int phase,
		 const char *name, uint64_t ino)
{
	struct names *names = lock(dir);
	const bool learned = is_news(dir, ticket, phase) && add_name(names, dir, name, ino);

	pthread_mutex_unlock(&names->lock);
	return learned;
}

void names_learn_all(struct inode *dir, struct names_ticket ticket, unsigned int phase)
{
	struct names *names = lock(dir);

	if (is_news(dir, ticket, phase))
		dir->names.complete = true;
	pthread_mutex_unlock(&names->lock);
}

bool names_count_miss(struct inode *dir, uint64_t size)
{
	struct names *names = lock(dir);
	const uint32_t misses = ++dir->names.misses;
	const bool is_worth = size <= NAMES_LISTED_MAX && misses >= MISSES_MIN &&
			      misses >= size / NAMES_PER_MISS;

	if (is_worth)
		dir->names.misses = 0;
	pthread_mutex_unlock(&names->lock);
	return is_worth;
}

void names_begin_change(struct inode *dir)
{
	struct names *names = lock(dir);

	dir->names.changing++;
	dir->names.changes++;
	pthread_mutex_unlock(&names->lock);
}

void names_end_change(struct inode *dir)
{
	struct names *names = lock(dir);

	dir->names.changing--;
	dir->names.changes++;
	pthread_mutex_unlock(&names->lock);
}

void names_add(struct inode *dir, unsigned int phase, const char *name, uint64_t ino)
{
	struct names *names = lock(dir);

	if (sharing_knows(&dir->mount->share, phase)) {
		begin_phase(names, dir, phase);
		add_name(names, dir, name, ino);
	} else {
		drop_names(names, dir);
	}
	pthread_mutex_unlock(&names->lock);
}

void names_remove(struct inode *dir, const char *text)
{
	struct names *names = lock(dir);
	struct known_name *name = find_name(names, dir, text);

	if (name)
		remove_name(names, name);
	pthread_mutex_unlock(&names->lock);
}

void names_begin_empty(struct inode *dir, unsigned int phase)
{
	struct names *names = lock(dir);

	if (sharing_knows(&dir->mount->share, phase)) {
		drop_names(names, dir);
		dir->names.phase = phase;
		dir->names.complete = true;
	}
	pthread_mutex_unlock(&names->lock);
}

void names_drop(struct inode *dir)
{
	struct names *names = lock(dir);

	drop_names(names, dir);
	pthread_mutex_unlock(&names->lock);
}
