/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads of weir's own, and the session's: it does what nobody else is there to do. */
#ifndef WEIR_LIB_THREAD_H
#define WEIR_LIB_THREAD_H

#include <pthread.h>
#include <weir/error.h>

struct weir_session;

/* One that takes none of the program's signals. @name: at most 15 bytes. Return: 0; -ENOMEM. */
int weir_thread_create(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg,
		       struct weir_error *error);

/* Begins it, unless the user wants none. All channels are up. Return: 0; -ENOMEM. */
int weir_thread_start(struct weir_session *session, struct weir_error *error);

/* Ends it. From here on nothing can be submitted, and options.on_down is not told. */
void weir_thread_stop(struct weir_session *session);

/* Tells options.on_down, if that is due. Without nic->lock. */
void weir_thread_tell_down(struct weir_session *session);

#endif
