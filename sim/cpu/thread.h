/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host's cores and the threads on them, each straight code on a fiber.
 *
 * One run queue for all cores, first come first served; a thread keeps its core until it sleeps,
 * or until its quantum is over and another wants the core. A woken one takes the core that it had
 * last if that is idle, else any that is. An interrupt takes its time from whoever runs there.
 *
 * Calls that take a thread first, "@self", are made by that thread, and time passes in them.
 */
#ifndef WEIR_SIM_CPU_THREAD_H
#define WEIR_SIM_CPU_THREAD_H

#include "core/base/list.h"
#include "sim/event/event.h"
#include "sim/event/fiber.h"

struct sim_host;
struct sim_profile;
struct sim_thread;

/**
 * struct sim_core - one logical CPU
 * @host: whose it is
 * @running: who has it, or NULL
 * @last: who had it last: going on costs no switch
 * @tick: when its quantum is over; scheduled when somebody waits
 * @slice_ps: when its quantum is over
 * @stolen_ps: interrupts have it until then
 * @since_ps: since when it is not idle
 * @busy_ps: not idle, up to @since_ps
 * @interrupts, @switches: so far
 */
struct sim_core {
	struct sim_host *host;
	struct sim_thread *running;
	struct sim_thread *last;
	struct sim_event tick;
	uint64_t slice_ps;
	uint64_t stolen_ps;
	uint64_t since_ps;
	uint64_t busy_ps;
	uint64_t interrupts;
	uint64_t switches;
};

/**
 * struct sim_host - one machine
 * @clock, @profile: kept
 * @cores, @nr_cores: its CPUs
 * @kernel_ps: CPU of interrupts, switches and system calls so far
 * @ready: threads that could run
 */
struct sim_host {
	struct sim_clock *clock;
	const struct sim_profile *profile;
	struct sim_core *cores;
	uint32_t nr_cores;
	uint64_t kernel_ps;
	struct weir_list ready;
};

enum sim_thread_state {
	SIM_THREAD_ASLEEP, /* a scheduled @event wakes it */
	SIM_THREAD_READY,
	SIM_THREAD_RUNNING,
	SIM_THREAD_OVER,
};

/**
 * struct sim_thread - one thread of a host
 * @fiber: its code
 * @event: asleep: it is ready then; running: what it does with the core is done then, and when
 *	it is not scheduled it spins for ever
 * @link: among the ready
 * @wait_link: for whatever it waits for to know it by
 * @host: its machine
 * @core: the one that it has, or had last
 * @left_ps: ready: of what it was doing with its core when it lost it; SIM_NEVER: spins for ever
 * @state: an enum sim_thread_state
 * @pinned: it runs on @core only
 * @spins: it waits without giving its core up
 * @poked: it need not any more
 * @woken: it need not sleep the next time
 */
struct sim_thread {
	struct sim_fiber fiber;
	struct sim_event event;
	struct weir_list link;
	struct weir_list wait_link;
	struct sim_host *host;
	struct sim_core *core;
	uint64_t left_ps;
	uint8_t state;
	bool pinned;
	bool spins;
	bool poked;
	bool woken;
};

/**
 * sim_host_init() - a machine with idle cores
 * @host: *kept*
 * @clock, @profile: *kept*; the profile says how many cores
 *
 * Return: 0, or -ENOMEM.
 */
int sim_host_init(struct sim_host *host, struct sim_clock *clock,
		  const struct sim_profile *profile);

/* Frees what it holds; its threads were finished before. */
void sim_host_fini(struct sim_host *host);

/* The time that all cores together were not idle. */
uint64_t sim_host_busy_ps(const struct sim_host *host);

/**
 * sim_thread_init() - a thread that is ready to begin now
 * @thread: *kept* until sim_thread_fini()
 * @host: where
 * @core: the only core that it runs on, or -1
 * @run, @arg: what it runs; when that returns it is over
 *
 * Return: 0, or -ENOMEM.
 */
int sim_thread_init(struct sim_thread *thread, struct sim_host *host, int core,
		    void (*run)(void *arg), void *arg);

/* Gives its stack back, wherever it stands; the clock must not run any more. */
void sim_thread_fini(struct sim_thread *thread);

/* Computes: keeps the core for @ps. */
void sim_thread_run(struct sim_thread *self, uint64_t ps);

/* A system call, in which the kernel is busy for @ps. */
void sim_thread_call(struct sim_thread *self, uint64_t ps);

/**
 * sim_thread_spin() - keep the core until somebody pokes
 * @self: the thread
 * @max_ps: at most so long; SIM_NEVER: no bound
 *
 * Return: whether it was poked.
 */
bool sim_thread_spin(struct sim_thread *self, uint64_t max_ps);

/* Ends a spin, @in_ps from now; does nothing to a thread that does not spin, or was poked. */
void sim_thread_poke(struct sim_thread *thread, uint64_t in_ps);

/**
 * sim_thread_sleep() - give the core up until woken
 * @self: the thread
 * @until_ps: at the latest; SIM_NEVER: only when woken
 *
 * Returns at once when it was woken since it last slept.
 */
void sim_thread_sleep(struct sim_thread *self, uint64_t until_ps);

/* Wakes it, or keeps it from sleeping once. What the waker pays is the caller's affair. */
void sim_thread_wake(struct sim_thread *thread);

/**
 * sim_core_interrupt() - an interrupt
 * @core: where
 * @ps: how long its handler takes
 *
 * Return: when the handler is done.
 */
uint64_t sim_core_interrupt(struct sim_core *core, uint64_t ps);

#endif
