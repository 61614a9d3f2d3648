/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides when to poll a CQ, when to arm it, and when to sleep (RDMAbox, section IV-B).
 *
 * The host owns the CQ, the clock and the thread, reports each poll, and follows the verdict. One
 * poller may stand for several CQs polled, armed and waited for together.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POLL_POLL_H
#define WEIR_CORE_POLL_POLL_H

#include "core/poll/idle_time.h"

enum weir_poll_mode {
	WEIR_POLL_ADAPTIVE, /* polls for a while, learned or fixed, then sleeps */
	WEIR_POLL_BUSY, /* never sleeps */
	WEIR_POLL_EVENT, /* arms at each wake-up, before the first poll; sleeps at an empty poll */
	WEIR_POLL_EVENT_BATCH, /* takes up to wcs_max completions an event, then arms (Accelio,
			        * NAPI) */
	WEIR_POLL_HYBRID, /* polls until the CQ is empty, then sleeps (X-RDMA) */
};

enum weir_poll_verdict {
	WEIR_POLL_AGAIN, /* poll again */
	WEIR_POLL_ARM, /* arm the CQ, then poll again: earlier completions raise no event */
	WEIR_POLL_SLEEP, /* armed and empty: sleep, then call weir_poll_woken() */
};

/**
 * struct weir_poll_config - the host's settings
 * @mode: when to sleep
 * @wcs_max: completions taken in one poll of a CQ, at least 1; MAX_POLL_WC in the paper
 * @retries_max: ADAPTIVE: consecutive empty polls before sleeping, MAX_RETRY in the paper; 0:
 *	learned
 * @busy_percent_max: ADAPTIVE: largest share of time for empty polls, 1 to 100
 */
struct weir_poll_config {
	enum weir_poll_mode mode;
	uint32_t wcs_max;
	uint32_t retries_max;
	uint32_t busy_percent_max;
};

enum weir_poll_state { WEIR_POLL_POLLING, WEIR_POLL_ARMED, WEIR_POLL_ASLEEP };

/**
 * struct weir_poll - a poller
 * @config: copied
 * @idle_time: estimate of idle time
 * @state: an enum weir_poll_state
 * @slept: has slept since the last completion
 * @retries: consecutive empty polls
 * @taken: completions since the last wake-up
 * @at_ns: time of the last report
 * @idle_ns: time of the last completion, or of the start
 * @budget_ns: how long to poll after @idle_ns
 * @polled_ns: polling time after @idle_ns before the first sleep
 * @credit: time left for empty polls, in hundredths of a nanosecond
 * @empty_polls: total so far
 * @arms: total so far
 * @sleeps: total so far
 */
struct weir_poll {
	struct weir_poll_config config;
	struct weir_idle_time *idle_time;
	uint8_t state;
	bool slept;
	uint32_t retries;
	uint32_t taken;
	uint64_t at_ns;
	uint64_t idle_ns;
	uint64_t budget_ns;
	uint64_t polled_ns;
	int64_t credit;
	uint64_t empty_polls;
	uint64_t arms;
	uint64_t sleeps;
};

/**
 * weir_poll_init() - initialise a poller
 * @p: to be initialised
 * @config: copied
 * @idle_time: *kept*; initialised; may be shared by pollers that wait for similar completions
 * @now_ns: the time
 *
 * The first call is weir_poll_woken().
 */
void weir_poll_init(struct weir_poll *p, const struct weir_poll_config *config,
		    struct weir_idle_time *idle_time, uint64_t now_ns);

/**
 * weir_poll_woken() - the sleep has ended, by an event or otherwise
 * @p: the poller
 * @now_ns: the time
 *
 * Return: AGAIN or ARM.
 */
enum weir_poll_verdict weir_poll_woken(struct weir_poll *p, uint64_t now_ns);

/**
 * weir_poll_polled() - report the result of a poll
 * @p: the poller
 * @wcs: completions taken; 0 only if the CQ was empty
 * @now_ns: the time
 *
 * Return: the next step. SLEEP is safe: the CQ was found empty after the last ARM, so the next
 *	completion raises an event.
 */
enum weir_poll_verdict weir_poll_polled(struct weir_poll *p, uint32_t wcs, uint64_t now_ns);

/**
 * weir_poll_is_armed() - whether the poller may sleep after the next poll
 * @p: the poller
 *
 * Return: true from an ARM until a SLEEP or the return to polling.
 */
static inline bool weir_poll_is_armed(const struct weir_poll *p)
{
	return p->state == WEIR_POLL_ARMED;
}

#endif
