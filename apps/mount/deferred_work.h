/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chores: what a callback found to do but would have to block for. The main thread does them,
 * one after the other.
 */
#ifndef WEIR_APPS_MOUNT_DEFERRED_WORK_H
#define WEIR_APPS_MOUNT_DEFERRED_WORK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct mount;
struct chore;

/* Does a chore and frees it, with chore_free(). */
typedef void chore_fn(struct chore *chore);

struct chore {
	struct chore *next;
	struct mount *mount;
	chore_fn *fn;
	_Alignas(16) char arg[]; /* a copy */
};

struct chores {
	pthread_mutex_t lock; /* guards the list */
	struct chore *first, **last;
	int fd; /* an eventfd: readable when there is a chore, or for chores_wake() */
};

int chores_init(struct chores *chores);
void chores_fini(struct chores *chores); /* drops what is left */

/* Context: any. @length bytes at @arg are copied. Return: 0 or -ENOMEM. */
int chore_add(struct mount *m, chore_fn *fn, const void *arg, size_t length);
void chore_free(struct chore *chore);

void chores_wake(struct chores *chores);
void chores_do(struct chores *chores);

#endif
