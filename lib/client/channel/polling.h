/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Translates a session's polling options for the core. */
#ifndef WEIR_LIB_CLIENT_CHANNEL_POLLING_H
#define WEIR_LIB_CLIENT_CHANNEL_POLLING_H

#include <weir/session.h>
#include "core/poll/poll.h"

struct weir_session;

/* Begins a wait. @percent_max: limit of time spent on empty polls. */
void weir_polling_begin(const struct weir_session *session, struct weir_poll *poll,
			struct weir_idle_time *idle_time, unsigned int percent_max,
			uint64_t now_ns);

/* Adds the counts of @poll to the session's counters. With nic->lock held. */
void weir_polling_count(struct weir_session *session, struct weir_poll *poll);

#endif
