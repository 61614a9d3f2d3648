/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a session's options say of polling, in the words of the core. */
#ifndef WEIR_LIB_CLIENT_CHANNEL_POLLING_H
#define WEIR_LIB_CLIENT_CHANNEL_POLLING_H

#include <weir/session.h>
#include "core/poll/poll.h"

struct weir_session;

/* Somebody begins to wait. @percent_max: of the time to be spent on empty polls, at most. */
void weir_polling_begin(const struct weir_session *session, struct weir_poll *poll,
			struct weir_idle_time *gaps, unsigned int percent_max, uint64_t now_ns);

/* Adds what @poll has counted to the session's counters. With nic->lock held. */
void weir_polling_count(struct weir_session *session, struct weir_poll *poll);

#endif
