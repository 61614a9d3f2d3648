/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fibers: straight code that can be left in the middle and entered again. A simulated thread is
 * one. Switching is a dozen instructions and no system call; x86-64 and aarch64.
 *
 * One operating system thread enters all fibers of a simulation, and only from outside of any.
 */
#ifndef WEIR_SIM_EVENT_FIBER_H
#define WEIR_SIM_EVENT_FIBER_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct sim_fiber - for its owner's eyes only
 * @run: what it runs
 * @arg: for @run
 * @stack: mapped, the lowest page of it a guard
 * @stack_bytes: with the guard
 * @own_sp: where it goes on
 * @outer_sp: where who entered goes on
 * @is_over: @run has returned
 * @sanitizer_fiber, @sanitizer_outer: what the thread sanitizer calls the two
 * @outer_stack, @outer_bytes: the stack of who entered, for the address sanitizer
 * @own_fake, @outer_fake: the address sanitizer's own stacks
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
 * sim_fiber_init() - a fiber that has not begun
 * @fiber: *kept* where it is until sim_fiber_fini()
 * @run: called when it is entered first; may return
 * @arg: for @run
 *
 * Return: 0, or -ENOMEM: no stack.
 */
int sim_fiber_init(struct sim_fiber *fiber, void (*run)(void *arg), void *arg);

/* Gives its stack back, wherever it stands. What lived there is gone. Not from inside of it. */
void sim_fiber_fini(struct sim_fiber *fiber);

/* Goes on where it stands. Return: when it leaves or is over. Not when it is over already. */
void sim_fiber_enter(struct sim_fiber *fiber);

/* From inside: back to who entered. Return: when it is entered again. */
void sim_fiber_leave(struct sim_fiber *fiber);

#endif
