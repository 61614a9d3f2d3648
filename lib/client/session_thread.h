/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The session's thread: it does what no caller is there to do. */
#ifndef WEIR_LIB_CLIENT_SESSION_THREAD_H
#define WEIR_LIB_CLIENT_SESSION_THREAD_H

#include <weir/error.h>

struct weir_session;

/* Begins it, unless the user wants none. All channels are up. Return: 0; -ENOMEM. */
int weir_session_thread_start(struct weir_session *session, struct weir_error *error);

/* Ends it. From here on nothing can be submitted, and options.on_down is not told. */
void weir_session_thread_stop(struct weir_session *session);

/* Tells options.on_down, if that is due. Without nic->lock. */
void weir_session_thread_notify_down(struct weir_session *session);

#endif
