/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/client/channel/polling.h"
#include "lib/client/session.h"

static const enum weir_poll_mode modes[] = {
	[WEIR_POLLING_ADAPTIVE] = WEIR_POLL_ADAPTIVE,
	[WEIR_POLLING_BUSY] = WEIR_POLL_BUSY,
	[WEIR_POLLING_EVENT] = WEIR_POLL_EVENT,
	[WEIR_POLLING_EVENT_BATCH] = WEIR_POLL_EVENT_BATCH,
	[WEIR_POLLING_HYBRID] = WEIR_POLL_HYBRID,
	[WEIR_POLLING_SCQ] = WEIR_POLL_BUSY,
};

void weir_polling_begin(const struct weir_session *session, struct weir_poll *poll,
			struct weir_idle_time *idle_time, unsigned int percent_max, uint64_t now_ns)
{
	const struct weir_poll_config config = {
		.mode = modes[session->options.polling],
		.wcs_max = session->tuning.poll_wcs_max,
		.retries_max = session->tuning.poll_retries_max,
		.busy_percent_max = percent_max,
	};

	weir_poll_init(poll, &config, idle_time, now_ns);
}

void weir_polling_count(struct weir_session *session, struct weir_poll *poll)
{
	session->counters->empty_polls += poll->empty_polls;
	session->counters->arms += poll->arms;
	session->counters->sleeps += poll->sleeps;
	poll->empty_polls = poll->arms = poll->sleeps = 0;
}
