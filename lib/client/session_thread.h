/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The session's thread: polls and delivers when no caller does. */
#ifndef WEIR_LIB_CLIENT_SESSION_THREAD_H
#define WEIR_LIB_CLIENT_SESSION_THREAD_H

#include <weir/error.h>

struct weir_session;

/* Starts the thread, unless the user wants none. All channels are up. Return: 0; -ENOMEM. */
int weir_session_thread_start(struct weir_session *session, struct weir_error *error);

/* Ends the thread. From here on submits fail, and options.on_down is not called. */
void weir_session_thread_stop(struct weir_session *session);

#endif
