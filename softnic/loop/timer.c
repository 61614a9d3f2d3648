// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The engine's timers, ordered by deadline, and its work items, which take turns. Both lists are
 * short.
 */
#include "engine.h"

static struct {
	struct softnic_timer *timers; /* by deadline */
	struct softnic_work *first, **last;
} scheduled = { .last = &scheduled.first };

/* While work is queued, descriptors wait for this many steps at most. */
enum { STEPS_BETWEEN_POLLS = 16 };

static void run_timers(void)
{
	uint64_t now_ns = softnic_loop_now_ns();

	engine_let_fork();
	while (scheduled.timers && scheduled.timers->deadline_ns <= now_ns) {
		struct softnic_timer *t = scheduled.timers;
		void (*fn)(struct softnic_timer * t) = t->fn;

		scheduled.timers = t->next;
		t->armed = false;
		engine_run_begin(t);
		fn(t);
		engine_run_end();
		engine_let_fork();
	}
}

static void work_append(struct softnic_work *w)
{
	w->queued = true;
	w->next = NULL;
	*scheduled.last = w;
	scheduled.last = &w->next;
}

static void run_one_work(void)
{
	struct softnic_work *w = scheduled.first;
	bool more;

	scheduled.first = w->next;
	if (!scheduled.first)
		scheduled.last = &scheduled.first;
	w->queued = false;
	engine_run_begin(w);
	more = w->fn(w);
	engine_run_end();
	if ((more || w->again) && !w->queued)
		work_append(w);
	w->again = false;
	if (!engine_leads())
		engine_wake();
}

void timer_run(void)
{
	int i;

	run_timers();
	for (i = 0; i < STEPS_BETWEEN_POLLS && scheduled.first; i++) {
		run_one_work();
		if (!engine_leads())
			return;
		engine_let_fork();
	}
}

int64_t timer_idle_ns(void)
{
	uint64_t now_ns;

	if (scheduled.first)
		return 0;
	if (!scheduled.timers)
		return -1;
	now_ns = softnic_loop_now_ns();
	return scheduled.timers->deadline_ns > now_ns ? scheduled.timers->deadline_ns - now_ns : 0;
}

void timer_reset(void)
{
	struct softnic_timer *t;
	struct softnic_work *w;

	for (t = scheduled.timers; t; t = t->next)
		t->armed = false;
	for (w = scheduled.first; w; w = w->next)
		w->queued = false;
	scheduled.timers = NULL;
	scheduled.first = NULL;
	scheduled.last = &scheduled.first;
}

/* Under engine.lock. */
static void timer_remove(struct softnic_timer *t)
{
	struct softnic_timer **at = &scheduled.timers;

	if (!t->armed)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->armed = false;
}

void softnic_timer_arm(struct softnic_timer *t, uint64_t delay_ns,
		       void (*fn)(struct softnic_timer *t))
{
	uint64_t deadline_ns = softnic_loop_now_ns() + delay_ns;
	struct softnic_timer **at;

	pthread_mutex_lock(&engine.lock);
	timer_remove(t);
	for (at = &scheduled.timers; *at && (*at)->deadline_ns <= deadline_ns; at = &(*at)->next)
		;
	t->fn = fn;
	t->deadline_ns = deadline_ns;
	t->next = *at;
	t->armed = true;
	*at = t;
	if (scheduled.timers == t)
		engine_wake();
	pthread_mutex_unlock(&engine.lock);
}

void softnic_timer_disarm(struct softnic_timer *t)
{
	pthread_mutex_lock(&engine.lock);
	timer_remove(t);
	while (engine_runs(t)) {
		engine_wait_for(t);
		timer_remove(t);
	}
	pthread_mutex_unlock(&engine.lock);
}

static bool is_running(const struct softnic_work *w)
{
	const struct engine_thread *t;

	for (t = engine.threads; t; t = t->next)
		if (t->running == w)
			return true;
	return false;
}

void softnic_loop_kick_work(struct softnic_work *w)
{
	pthread_mutex_lock(&engine.lock);
	if (is_running(w)) {
		w->again = true;
	} else if (!w->queued) {
		work_append(w);
		engine_wake();
	}
	pthread_mutex_unlock(&engine.lock);
}

static void work_remove(struct softnic_work *w)
{
	struct softnic_work **at = &scheduled.first;

	if (!w->queued)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (!*at)
		scheduled.last = at;
	w->queued = false;
}

void softnic_loop_cancel_work(struct softnic_work *w)
{
	pthread_mutex_lock(&engine.lock);
	w->again = false;
	work_remove(w);
	while (engine_runs(w)) {
		engine_wait_for(w);
		work_remove(w);
	}
	pthread_mutex_unlock(&engine.lock);
}
