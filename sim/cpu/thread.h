/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cores of a host and the threads on them. Each thread is straight code on a fiber.
 *
 * All cores share one run queue, first come first served. A thread keeps its core until the thread
 * sleeps, or until its quantum is over and another thread waits. A woken thread takes its last core
 * if idle, else any idle core. An interrupt takes its time from the thread that runs on the core.
 *
 * The thread @self makes the call itself, and virtual time passes during the call.
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
 * @host: the machine of this core
 * @running: the thread on the core, or NULL
 * @last: the previous thread; resuming @last costs no switch
 * @tick: fires at the end of the quantum; scheduled when another thread waits
 * @slice_ps: end of the quantum
 * @stolen_ps: end of the interrupts under way
 * @since_ps: start of the current busy time
 * @busy_ps: busy time up to @since_ps
 * @interrupts, @switches: counts so far
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
 * @clock, @profile: *kept*
 * @cores, @nr_cores: the CPUs
 * @kernel_ps: CPU time of interrupts, switches and system calls so far
 * @ready: threads that wait for a core
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
	SIM_THREAD_ASLEEP, /* @event, if scheduled, wakes the thread */
	SIM_THREAD_READY,
	SIM_THREAD_RUNNING,
	SIM_THREAD_OVER,
};

/**
 * struct sim_thread - one thread of a host
 * @fiber: the code
 * @event: asleep: the thread becomes ready; running: the current use of the core ends. A running
 *	thread whose @event is not scheduled spins for ever
 * @link: in the ready list
 * @wait_link: for the list of the lock or CQ that the thread waits for
 * @host: the machine
 * @core: the current core, or the last
 * @left_ps: ready: time left of the use of the core that was preempted; SIM_NEVER: spins for ever
 * @state: an enum sim_thread_state
 * @pinned: the thread runs on @core only
 * @spins: the thread waits and keeps its core
 * @poked: the spin may end
 * @woken: the next sleep returns at once
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
 * @clock, @profile: *kept*; the profile gives the number of cores
 *
 * Return: 0, or -ENOMEM.
 */
int sim_host_init(struct sim_host *host, struct sim_clock *clock,
		  const struct sim_profile *profile);

/* Frees the cores. The caller has finished all threads. */
void sim_host_fini(struct sim_host *host);

/* Busy time, summed over all cores. */
uint64_t sim_host_busy_ps(const struct sim_host *host);

/**
 * sim_thread_init() - a thread that is ready to start now
 * @thread: *kept* until sim_thread_fini()
 * @host: the machine
 * @core: the only core that the thread may use, or -1
 * @run, @arg: the thread's code; the thread is over when @run returns
 *
 * Return: 0, or -ENOMEM.
 */
int sim_thread_init(struct sim_thread *thread, struct sim_host *host, int core,
		    void (*run)(void *arg), void *arg);

/* Frees the stack, whether or not the thread is over. The clock must not run afterwards. */
void sim_thread_fini(struct sim_thread *thread);

/* Computes: uses the core for @ps. */
void sim_thread_run(struct sim_thread *self, uint64_t ps);

/* A system call that keeps the kernel busy for @ps. */
void sim_thread_call(struct sim_thread *self, uint64_t ps);

/**
 * sim_thread_spin() - keep the core until poked
 * @self: the calling thread
 * @max_ps: longest spin; SIM_NEVER: no bound
 *
 * Return: whether the thread was poked.
 */
bool sim_thread_spin(struct sim_thread *self, uint64_t max_ps);

/* Ends a spin, @in_ps from now. No effect on a thread that does not spin or was poked already. */
void sim_thread_poke(struct sim_thread *thread, uint64_t in_ps);

/**
 * sim_thread_sleep() - give up the core until woken
 * @self: the calling thread
 * @until_ps: latest wake-up; SIM_NEVER: only sim_thread_wake() ends the sleep
 *
 * Returns at once if the thread was woken since its last sleep.
 */
void sim_thread_sleep(struct sim_thread *self, uint64_t until_ps);

/* Wakes @thread, or makes its next sleep return at once. The waker pays for its own call. */
void sim_thread_wake(struct sim_thread *thread);

/**
 * sim_core_interrupt() - an interrupt
 * @core: the interrupted core
 * @ps: run time of the handler
 *
 * Return: the time at which the handler is done.
 */
uint64_t sim_core_interrupt(struct sim_core *core, uint64_t ps);

#endif
