/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_BASE_THREAD_H
#define WEIR_LIB_BASE_THREAD_H

#include <pthread.h>
#include <weir/error.h>

/* Creates a thread with all signals blocked. @name: at most 15 bytes. Return: 0; -ENOMEM. */
int weir_thread_create(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg,
		       struct weir_error *error);

#endif
