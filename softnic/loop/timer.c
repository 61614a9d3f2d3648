// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What the engine is to do: timers, by deadline, and work, which takes turns. Both lists are short.
 */
#include "engine.h"

static struct {
	struct softnic_timer *timers;		/* by deadline */
	struct softnic_work *first, **last;
} agenda = { .last = &agenda.first };

/* Descriptors wait while there is work, but no longer than this many steps. */
enum { STEPS_BETWEEN_POLLS = 16 };

static void run_timers(void)
{
	uint64_t now_ns = softnic_now_ns();

	while (agenda.timers && agenda.timers->deadline_ns <= now_ns) {
		struct softnic_timer *t = agenda.timers;
		void (*fn)(struct softnic_timer *t) = t->fn;

		agenda.timers = t->next;
		t->armed = false;
		engine_run_begin(t);
		fn(t);
		engine_run_end();
	}
}

static void work_append(struct softnic_work *w)
{
	w->queued = true;
	w->next = NULL;
	*agenda.last = w;
	agenda.last = &w->next;
}

static void run_one_work(void)
{
	struct softnic_work *w = agenda.first;
	bool more;

	agenda.first = w->next;
	if (!agenda.first)
		agenda.last = &agenda.first;
	w->queued = false;
	engine_run_begin(w);
	more = w->fn(w);
	engine_run_end();
	if ((more || w->again) && !w->queued)
		work_append(w);
	w->again = false;
}

void agenda_run(void)
{
	int i;

	run_timers();
	for (i = 0; i < STEPS_BETWEEN_POLLS && agenda.first; i++)
		run_one_work();
}

int64_t agenda_idle_ns(void)
{
	uint64_t now_ns;

	if (agenda.first)
		return 0;
	if (!agenda.timers)
		return -1;
	now_ns = softnic_now_ns();
	return agenda.timers->deadline_ns > now_ns ? agenda.timers->deadline_ns - now_ns : 0;
}

void agenda_forget(void)
{
	struct softnic_timer *t;
	struct softnic_work *w;

	for (t = agenda.timers; t; t = t->next)
		t->armed = false;
	for (w = agenda.first; w; w = w->next)
		w->queued = false;
	agenda.timers = NULL;
	agenda.first = NULL;
	agenda.last = &agenda.first;
}

/* Under engine.lock. */
static void timer_remove(struct softnic_timer *t)
{
	struct softnic_timer **at = &agenda.timers;

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
	uint64_t deadline_ns = softnic_now_ns() + delay_ns;
	struct softnic_timer **at;

	pthread_mutex_lock(&engine.lock);
	timer_remove(t);
	for (at = &agenda.timers; *at && (*at)->deadline_ns <= deadline_ns; at = &(*at)->next)
		;
	t->fn = fn;
	t->deadline_ns = deadline_ns;
	t->next = *at;
	t->armed = true;
	*at = t;
	if (agenda.timers == t)
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

void softnic_work_kick(struct softnic_work *w)
{
	pthread_mutex_lock(&engine.lock);
	if (engine.running == w) {
		w->again = true;
	} else if (!w->queued) {
		work_append(w);
		engine_wake();
	}
	pthread_mutex_unlock(&engine.lock);
}

static void work_remove(struct softnic_work *w)
{
	struct softnic_work **at = &agenda.first;

	if (!w->queued)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (!*at)
		agenda.last = at;
	w->queued = false;
}

void softnic_work_cancel(struct softnic_work *w)
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
