/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names that this client knows while it is alone (sharing.h), so that lookups need not ask.
 *
 * Names are learned from lookups, listings and this client's own changes. If this client made
 * a directory or listed it in full, it knows all names, and so the absence of others.
 *
 * A change by another thread may overtake a reply. So each change has a beginning and an end. In
 * between nothing is known of the directory, and replies to questions from before say nothing.
 *
 * Locks: names.lock guards everything here, also struct known_dir of each inode. The functions take
 * it, hold no other lock, and never block.
 */
#ifndef WEIR_APPS_MOUNT_INODE_NAMES_H
#define WEIR_APPS_MOUNT_INODE_NAMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fsd/hashtable.h"

struct inode;
struct mount;

LIST_HEAD(known_name_list, known_name);

/* What is known of a directory; all zero: nothing. */
struct known_dir {
	struct known_name_list names;
	unsigned int phase; /* of the knowledge; see sharing.h */
	bool complete; /* there are no other names */
	unsigned int changing; /* changes under way */
	unsigned int changes; /* changes begun and ended, and times that all was forgotten */
	uint32_t misses; /* names asked for that were not there */
};

struct names {
	pthread_mutex_t lock;
	struct fsd_hashtable table;
	uint8_t key[16]; /* of the hash */
};

int names_init(struct names *names); /* 0; -ENOMEM */
/* The directories have been dropped. */
void names_fini(struct names *names);

enum names_answer { NAMES_UNKNOWN, NAMES_ABSENT, NAMES_PRESENT };

/* @ino: receives the name's inode, if it is present. */
enum names_answer names_find(struct inode *dir, const char *name, uint64_t *ino);

/* The state of a directory before the donor is asked about its names. */
struct names_ticket {
	bool valid;
	unsigned int changes;
};

/* Forgets what is known from an earlier phase. */
struct names_ticket names_note_question(struct inode *dir);
/*
 * Learns from the reply, in @phase: a name, or that all were told since the question. Return:
 * whether the name is known now; if not, the listing does not tell all names.
 */
bool names_learn(struct inode *dir, struct names_ticket ticket, unsigned int phase,
		 const char *name, uint64_t ino);
void names_learn_all(struct inode *dir, struct names_ticket ticket, unsigned int phase);
/*
 * Counts a name that is absent. Return: whether a listing of the directory, which has @size names,
 * is worth its cost.
 */
bool names_count_miss(struct inode *dir, uint64_t size);

/* A change of names of @dir by this client; the caller owes a names_end_change(). */
void names_begin_change(struct inode *dir);
void names_end_change(struct inode *dir);
/* In between, by the donor's reply in @phase. */
void names_add(struct inode *dir, unsigned int phase, const char *name, uint64_t ino);
void names_remove(struct inode *dir, const char *name);

/* A change of a name: the name's inode before and afterwards, 0 for none. */
struct names_edit {
	struct inode *dir;
	const char *name;
	uint64_t before, after;
};

/**
 * names_edit() - change known names without the donor
 * @empty: a directory required to be known as empty, or NULL
 * @change: completes the change, and may set @after; returns false to leave all as it is. Runs with
 *	the lock, so changes with a reply of the donor come before or afterwards
 * @phase: receives that of the knowledge
 *
 * Return: false, and nothing has changed, if the names are not known to be as @edit says, or if
 * another change of the directories is under way.
 */
bool names_edit(struct names_edit *edit, unsigned int nr, struct inode *empty,
		bool (*change)(void *arg), void *arg, unsigned int *phase);

/* Waits until each names_edit() that has begun is done. */
void names_wait(struct names *names);

/* This client has just made the directory. */
void names_begin_empty(struct inode *dir, unsigned int phase);

/* Forgets all of a directory. */
void names_drop(struct inode *dir);

#endif
