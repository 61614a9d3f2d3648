/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fibers: straight code that can be left in the middle and entered again. A simulated thread is a
 * fiber. A switch takes a dozen instructions and no system call. x86-64 and aarch64.
 *
 * A single operating system thread enters all fibers of a simulation, never from inside a fiber.
 */
#ifndef WEIR_SIM_EVENT_FIBER_H
#define WEIR_SIM_EVENT_FIBER_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct sim_fiber - private to fiber.c
 * @run: the code
 * @arg: for @run
 * @stack: mapped; the lowest page is a guard
 * @stack_bytes: size, guard included
 * @own_sp: stack pointer to resume the fiber
 * @outer_sp: stack pointer to resume the thread that entered
 * @is_over: @run has returned
 * @sanitizer_fiber, @sanitizer_outer: handles of the thread sanitizer for both
 * @outer_stack, @outer_bytes: stack of the entering thread, for the address sanitizer
 * @own_fake, @outer_fake: fake stacks of the address sanitizer
 */
struct sim_fiber {
	void (*run)(void *arg);
	void *arg;
	char *stack;
	size_t stack_bytes;
	void *own_sp;
	void *outer_sp;
	bool is_over;
	void *sanitizer_fiber, *sanitizer_outer;
	const void *outer_stack;
	size_t outer_bytes;
	void *own_fake, *outer_fake;
};

/**
 * sim_fiber_init() - a fiber that has not started
 * @fiber: *kept* until sim_fiber_fini()
 * @run: called at the first entry; may return
 * @arg: for @run
 *
 * Return: 0, or -ENOMEM: no stack.
 */
int sim_fiber_init(struct sim_fiber *fiber, void (*run)(void *arg), void *arg);

/* Frees the stack and everything on it, over or not. Not callable from inside the fiber. */
void sim_fiber_fini(struct sim_fiber *fiber);

/* Runs the fiber until it leaves or is over. The fiber must not be over already. */
void sim_fiber_enter(struct sim_fiber *fiber);

/* From inside the fiber: continues the thread that entered. Returns at the next entry. */
void sim_fiber_leave(struct sim_fiber *fiber);

#endif
