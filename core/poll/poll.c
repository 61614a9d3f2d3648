/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Algorithm 3 of RDMAbox, with two corrections. Only consecutive retries count. After arming, the
 * poller polls again before sleeping, because completions from before the arming raise no event.
 *
 * A wake-up lengthens the measured idle time. Left in, sleeping would make idle times look long,
 * and long idle times would make sleeping look right. The delay of a wake-up is therefore
 * subtracted.
 */
#include "core/poll/poll.h"

#define CREDIT_NS_MAX 1000000ll /* most credit that can be saved */
#define EARN_NS_MAX 1000000000ull /* longer sleeps earn no more; prevents overflow */

void weir_poll_init(struct weir_poll *p, const struct weir_poll_config *config,
		    struct weir_idle_time *idle_time, uint64_t now_ns)
{
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->idle_time = idle_time;
	p->at_ns = p->idle_ns = now_ns;
	p->credit = CREDIT_NS_MAX * 100;
}

/* Accounts for the time since the last report, spent in an empty poll or not. */
static void update_credit(struct weir_poll *p, bool was_empty, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - p->at_ns < EARN_NS_MAX ? now_ns - p->at_ns : EARN_NS_MAX;

	p->at_ns = now_ns;
	p->credit += (int64_t)(passed_ns * p->config.busy_percent_max);
	if (was_empty)
		p->credit -= (int64_t)(passed_ns * 100);
	if (p->credit > CREDIT_NS_MAX * 100)
		p->credit = CREDIT_NS_MAX * 100;
	else if (p->credit < 0)
		p->credit = 0;
}

static enum weir_poll_verdict arm_cq(struct weir_poll *p)
{
	p->state = WEIR_POLL_ARMED;
	p->arms++;
	return WEIR_POLL_ARM;
}

static enum weir_poll_verdict sleep_now(struct weir_poll *p)
{
	if (!p->slept)
		p->polled_ns = p->at_ns - p->idle_ns;
	p->state = WEIR_POLL_ASLEEP;
	p->slept = true;
	p->sleeps++;
	return WEIR_POLL_SLEEP;
}

enum weir_poll_verdict weir_poll_woken(struct weir_poll *p, uint64_t now_ns)
{
	update_credit(p, false, now_ns);
	p->state = WEIR_POLL_POLLING;
	p->taken = 0;
	return p->config.mode == WEIR_POLL_EVENT ? arm_cq(p) : WEIR_POLL_AGAIN;
}

/* The idle time before a completion: at least the time spent polling. */
static uint64_t gap_ns(const struct weir_poll *p)
{
	uint64_t ns = p->at_ns - p->idle_ns, least_ns = p->polled_ns;

	if (!p->slept)
		return ns;
	ns -= ns < p->idle_time->wake_ns ? ns : p->idle_time->wake_ns;
	return ns > least_ns ? ns : least_ns;
}

static enum weir_poll_verdict found_completions(struct weir_poll *p, uint32_t wcs)
{
	if (p->retries || p->slept)
		weir_idle_time_add(p->idle_time, gap_ns(p));
	p->retries = 0;
	p->slept = false;
	p->idle_ns = p->at_ns;
	p->taken += wcs;
	switch (p->config.mode) {
	case WEIR_POLL_EVENT:
		return WEIR_POLL_AGAIN;
	case WEIR_POLL_EVENT_BATCH:
		return p->state != WEIR_POLL_ARMED && p->taken >= p->config.wcs_max ?
			       arm_cq(p) :
			       WEIR_POLL_AGAIN;
	default:
		p->state = WEIR_POLL_POLLING;
		return WEIR_POLL_AGAIN;
	}
}

static bool budget_is_spent(const struct weir_poll *p)
{
	if (p->config.retries_max)
		return p->retries >= p->config.retries_max;
	return p->at_ns - p->idle_ns >= p->budget_ns ||
	       weir_idle_time_is_resting(p->idle_time, p->at_ns);
}

static enum weir_poll_verdict found_nothing(struct weir_poll *p)
{
	p->empty_polls++;
	if (p->retries++ == 0)
		p->budget_ns = weir_idle_time_budget_ns(p->idle_time);
	if (p->state == WEIR_POLL_ARMED)
		return sleep_now(p);
	if (p->config.mode == WEIR_POLL_BUSY)
		return WEIR_POLL_AGAIN;
	if (p->config.mode == WEIR_POLL_ADAPTIVE && p->credit > 0 && !budget_is_spent(p))
		return WEIR_POLL_AGAIN;
	return arm_cq(p);
}

enum weir_poll_verdict weir_poll_polled(struct weir_poll *p, uint32_t wcs, uint64_t now_ns)
{
	update_credit(p, !wcs, now_ns);
	return wcs ? found_completions(p, wcs) : found_nothing(p);
}
