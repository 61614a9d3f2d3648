/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An event marks the time at which a running thread finishes its use of the core. To preempt the
 * thread, the core cancels the event and records the remaining time; an interrupt moves the event.
 * The thread's code notices neither, except that the current call takes longer.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/nic/profile.h"
#include "sim/cpu/thread.h"

static bool may_run(const struct sim_thread *t, const struct sim_core *core)
{
	return !t->pinned || t->core == core;
}

static struct sim_thread *next_for(struct sim_core *core)
{
	struct weir_list *link = core->host->ready.next;

	for (; link != &core->host->ready; link = link->next) {
		struct sim_thread *t = weir_list_entry(link, struct sim_thread, link);

		if (may_run(t, core))
			return t;
	}
	return NULL;
}

/* Arms the end of the quantum, because another thread waits for the core. */
static void arm_tick(struct sim_core *core)
{
	struct sim_clock *clock = core->host->clock;

	if (sim_event_is_scheduled(&core->tick))
		return;
	sim_clock_at(clock, &core->tick,
		     core->slice_ps > clock->now_ps ? core->slice_ps : clock->now_ps);
}

static void start_thread(struct sim_core *core, struct sim_thread *t)
{
	struct sim_clock *clock = core->host->clock;
	uint64_t begin_ps = clock->now_ps;

	if (core->stolen_ps > begin_ps)
		begin_ps = core->stolen_ps;
	if (core->last != t) {
		begin_ps += core->host->profile->switch_ps;
		core->host->kernel_ps += core->host->profile->switch_ps;
		core->switches++;
	}
	weir_list_del(&t->link);
	core->running = core->last = t;
	core->since_ps = clock->now_ps;
	core->slice_ps = begin_ps + core->host->profile->quantum_ps;
	t->core = core;
	t->state = SIM_THREAD_RUNNING;
	if (t->left_ps != SIM_NEVER)
		sim_clock_at(clock, &t->event, begin_ps + t->left_ps);
	if (next_for(core))
		arm_tick(core);
}

static void release_core(struct sim_core *core)
{
	struct sim_thread *next;

	core->busy_ps += core->host->clock->now_ps - core->since_ps;
	core->running = NULL;
	next = next_for(core);
	if (next)
		start_thread(core, next);
}

static struct sim_core *idle_core_for(const struct sim_thread *t)
{
	struct sim_host *host = t->host;
	uint32_t i;

	if (t->core && !t->core->running)
		return t->core;
	if (t->pinned)
		return NULL;
	for (i = 0; i < host->nr_cores; i++) {
		if (!host->cores[i].running)
			return &host->cores[i];
	}
	return NULL;
}

static void become_ready(struct sim_thread *t)
{
	struct sim_core *core = idle_core_for(t);
	uint32_t i;

	t->state = SIM_THREAD_READY;
	t->left_ps = 0;
	weir_list_add_tail(&t->host->ready, &t->link);
	if (core) {
		start_thread(core, t);
		return;
	}
	for (i = 0; i < t->host->nr_cores; i++) {
		if (may_run(t, &t->host->cores[i]))
			arm_tick(&t->host->cores[i]);
	}
}

static void tick_happens(struct sim_event *event)
{
	struct sim_core *core = container_of(event, struct sim_core, tick);
	struct sim_clock *clock = core->host->clock;
	struct sim_thread *t = core->running;
	uint64_t due_ps;

	if (!t || !next_for(core))
		return;
	if (clock->now_ps < core->slice_ps) { /* the quantum's thread has left the core */
		arm_tick(core);
		return;
	}
	due_ps = sim_clock_due_ps(clock, &t->event);
	sim_clock_cancel(clock, &t->event);
	t->left_ps = due_ps == SIM_NEVER ? SIM_NEVER : due_ps - clock->now_ps;
	t->state = SIM_THREAD_READY;
	weir_list_add_tail(&t->host->ready, &t->link);
	release_core(core);
}

static void thread_happens(struct sim_event *event)
{
	struct sim_thread *t = container_of(event, struct sim_thread, event);

	if (t->state == SIM_THREAD_ASLEEP) {
		become_ready(t);
		return;
	}
	sim_fiber_enter(&t->fiber);
	if (t->fiber.is_over) {
		t->state = SIM_THREAD_OVER;
		release_core(t->core);
	}
}

int sim_host_init(struct sim_host *host, struct sim_clock *clock, const struct sim_profile *profile)
{
	uint32_t i;

	*host = (struct sim_host){ clock, profile, NULL, (uint32_t)profile->cores, 0, { 0 } };
	weir_list_init(&host->ready);
	host->cores = calloc(host->nr_cores, sizeof(*host->cores));
	if (!host->cores)
		return -ENOMEM;
	for (i = 0; i < host->nr_cores; i++)
		host->cores[i] = (struct sim_core){ .host = host, .tick.happen = tick_happens };
	return 0;
}

void sim_host_fini(struct sim_host *host)
{
	free(host->cores);
}

uint64_t sim_host_busy_ps(const struct sim_host *host)
{
	uint64_t busy_ps = 0;
	uint32_t i;

	for (i = 0; i < host->nr_cores; i++) {
		busy_ps += host->cores[i].busy_ps;
		if (host->cores[i].running)
			busy_ps += host->clock->now_ps - host->cores[i].since_ps;
	}
	return busy_ps;
}

int sim_thread_init(struct sim_thread *thread, struct sim_host *host, int core,
		    void (*run)(void *arg), void *arg)
{
	*thread = (struct sim_thread){
		.event.happen = thread_happens,
		.host = host,
		.core = core < 0 ? NULL : &host->cores[core],
		.state = SIM_THREAD_ASLEEP,
		.pinned = core >= 0,
	};
	weir_list_init(&thread->link);
	weir_list_init(&thread->wait_link);
	if (sim_fiber_init(&thread->fiber, run, arg)) {
		*thread = (struct sim_thread){ 0 };
		return -ENOMEM;
	}
	sim_clock_in(host->clock, &thread->event, 0);
	return 0;
}

void sim_thread_fini(struct sim_thread *thread)
{
	sim_fiber_fini(&thread->fiber);
}

void sim_thread_run(struct sim_thread *self, uint64_t ps)
{
	struct sim_clock *clock = self->host->clock;

	if (sim_clock_skip(clock, clock->now_ps + ps))
		return;
	sim_clock_in(clock, &self->event, ps);
	sim_fiber_leave(&self->fiber);
}

void sim_thread_call(struct sim_thread *self, uint64_t ps)
{
	ps += self->host->profile->syscall_ps;
	self->host->kernel_ps += ps;
	sim_thread_run(self, ps);
}

bool sim_thread_spin(struct sim_thread *self, uint64_t max_ps)
{
	self->spins = true;
	self->poked = false;
	if (max_ps != SIM_NEVER)
		sim_clock_in(self->host->clock, &self->event, max_ps);
	sim_fiber_leave(&self->fiber);
	self->spins = false;
	return self->poked;
}

void sim_thread_poke(struct sim_thread *thread, uint64_t in_ps)
{
	struct sim_clock *clock = thread->host->clock;
	uint64_t at_ps = clock->now_ps + in_ps;

	if (!thread->spins || thread->poked)
		return;
	thread->poked = true;
	if (thread->state == SIM_THREAD_READY) {
		thread->left_ps = in_ps;
		return;
	}
	if (at_ps < thread->core->stolen_ps)
		at_ps = thread->core->stolen_ps;
	sim_clock_at(clock, &thread->event, at_ps);
}

void sim_thread_sleep(struct sim_thread *self, uint64_t until_ps)
{
	struct sim_clock *clock = self->host->clock;

	if (!self->woken) {
		self->state = SIM_THREAD_ASLEEP;
		if (until_ps != SIM_NEVER)
			sim_clock_at(clock, &self->event,
				     until_ps > clock->now_ps ? until_ps : clock->now_ps);
		release_core(self->core);
		sim_fiber_leave(&self->fiber);
	}
	self->woken = false;
}

void sim_thread_wake(struct sim_thread *thread)
{
	if (thread->woken || thread->state == SIM_THREAD_OVER)
		return;
	thread->woken = true;
	if (thread->state == SIM_THREAD_ASLEEP)
		sim_clock_in(thread->host->clock, &thread->event, thread->host->profile->wake_ps);
}

uint64_t sim_core_interrupt(struct sim_core *core, uint64_t ps)
{
	struct sim_clock *clock = core->host->clock;
	struct sim_thread *t = core->running;

	core->interrupts++;
	core->host->kernel_ps += ps;
	if (core->stolen_ps < clock->now_ps)
		core->stolen_ps = clock->now_ps;
	core->stolen_ps += ps;
	if (!t)
		core->busy_ps += ps;
	else if (sim_event_is_scheduled(&t->event))
		sim_clock_at(clock, &t->event, sim_clock_due_ps(clock, &t->event) + ps);
	return core->stolen_ps;
}
