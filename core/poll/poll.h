/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to poll a CQ, when to arm it, and when to sleep (RDMAbox, section IV-B).
 *
 * Whoever polls tells what each poll found and does what the answer says. The host owns
 * the CQ, the clock and the thread; one poller may stand for several CQs that are polled,
 * armed and slept on together.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POLL_POLL_H
#define WEIR_CORE_POLL_POLL_H

#include "core/poll/idle_time.h"

enum weir_poll_mode {
	WEIR_POLL_ADAPTIVE, /* polls on for a while, learned or fixed, then sleeps */
	WEIR_POLL_BUSY, /* never sleeps */
	WEIR_POLL_EVENT, /* is armed before each look, so whatever comes raises an event */
	WEIR_POLL_EVENT_BATCH, /* takes up to wcs_max an event, then is armed (Accelio, NAPI) */
	WEIR_POLL_HYBRID, /* polls while there is something, then sleeps (X-RDMA) */
};

enum weir_poll_verdict {
	WEIR_POLL_AGAIN, /* poll again */
	WEIR_POLL_ARM, /* arm, and then poll again: what came before raises no event */
	WEIR_POLL_SLEEP, /* it is armed and empty: sleep, and come back by weir_poll_woken() */
};

/**
 * struct weir_poll_config - the host's settings
 * @mode: when to sleep
 * @wcs_max: completions to ask a CQ for at a time, at least 1; MAX_POLL_WC in the paper
 * @retries_max: ADAPTIVE: consecutive empty polls before sleeping, MAX_RETRY in the paper;
 *	0: learned
 * @busy_percent_max: ADAPTIVE: of the time, how much may go into empty polls, 1 to 100
 */
struct weir_poll_config {
	enum weir_poll_mode mode;
	uint32_t wcs_max;
	uint32_t retries_max;
	uint32_t busy_percent_max;
};

enum weir_poll_state { WEIR_POLL_POLLING, WEIR_POLL_ARMED, WEIR_POLL_ASLEEP };

/**
 * struct weir_poll - one that polls
 * @config: copied
 * @gaps: where it learns
 * @state: an enum weir_poll_state
 * @slept: since the last completion
 * @retries: consecutive empty polls
 * @taken: completions since it was woken
 * @at_ns: of the last report
 * @idle_ns: of the last completion, or of the beginning
 * @budget_ns: how long after @idle_ns it polls
 * @polled_ns: how long after @idle_ns it did, when it slept
 * @credit: time for empty polls, in hundredths of a nanosecond
 * @empty_polls, @arms, @sleeps: so far
 */
struct weir_poll {
	struct weir_poll_config config;
	struct weir_idle_time *gaps;
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
 * weir_poll_init() - the wait begins
 * @p: to be initialised
 * @config: copied
 * @gaps: *kept*; initialised; may be shared with others that wait for the same kind of thing
 * @now_ns: the time
 *
 * The first call is weir_poll_woken().
 */
void weir_poll_init(struct weir_poll *p, const struct weir_poll_config *config,
		    struct weir_idle_time *gaps, uint64_t now_ns);

/**
 * weir_poll_woken() - it is to look: an event came, or something else ended the sleep
 * @p: the poller
 * @now_ns: the time
 *
 * Return: AGAIN, or ARM.
 */
enum weir_poll_verdict weir_poll_woken(struct weir_poll *p, uint64_t now_ns);

/**
 * weir_poll_polled() - what a poll found
 * @p: the poller
 * @wcs: completions; 0 must mean that there was none
 * @now_ns: the time
 *
 * Return: what to do next. SLEEP comes only when the poll that followed an ARM found
 *	nothing, or all polls since then have emptied the CQ: whatever comes now raises an event.
 */
enum weir_poll_verdict weir_poll_polled(struct weir_poll *p, uint32_t wcs, uint64_t now_ns);

/**
 * weir_poll_is_armed() - whether it may sleep after the next poll
 * @p: the poller
 *
 * Return: true from an ARM on, until a SLEEP or until it goes back to polling.
 */
static inline bool weir_poll_is_armed(const struct weir_poll *p)
{
	return p->state == WEIR_POLL_ARMED;
}

#endif
