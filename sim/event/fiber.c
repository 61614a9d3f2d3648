/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A switch saves only the registers that a function must preserve under the calling convention: to
 * the compiler, the switch looks like a call. Rounding modes stay, because no fiber changes them.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/event/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#define STACK_BYTES (256u << 10) /* the sanitizer's red zones need room */
#include <sanitizer/common_interface_defs.h>
#else
#define STACK_BYTES (64u << 10)
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

/* Saves the caller's stack pointer in *@from and continues where @to was saved. */
void sim_fiber_switch(void **from, void *to);
/* Entry of a fiber: calls the function in the first saved register with the second as argument. */
void sim_fiber_begin(void);

#if defined(__x86_64__)
enum { SAVED_WORDS = 7, SAVED_CALL = 3, SAVED_ARG = 2, SAVED_PC = 6 };
__asm__(".text\n"
	".globl sim_fiber_switch\n.hidden sim_fiber_switch\n"
	".type sim_fiber_switch, @function\n"
	"sim_fiber_switch:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n"
	"	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n"
	"	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".size sim_fiber_switch, . - sim_fiber_switch\n"
	".globl sim_fiber_begin\n.hidden sim_fiber_begin\n"
	".type sim_fiber_begin, @function\n"
	"sim_fiber_begin:\n"
	"	mov %r13, %rdi\n"
	"	call *%r12\n"
	"	ud2\n"
	".size sim_fiber_begin, . - sim_fiber_begin\n");
#elif defined(__aarch64__)
enum { SAVED_WORDS = 20, SAVED_CALL = 0, SAVED_ARG = 1, SAVED_PC = 11 };
__asm__(".text\n"
	".globl sim_fiber_switch\n.hidden sim_fiber_switch\n"
	".type sim_fiber_switch, %function\n"
	"sim_fiber_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n	str x9, [x0]\n	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size sim_fiber_switch, . - sim_fiber_switch\n"
	".globl sim_fiber_begin\n.hidden sim_fiber_begin\n"
	".type sim_fiber_begin, %function\n"
	"sim_fiber_begin:\n"
	"	mov x0, x20\n"
	"	blr x19\n"
	"	brk #1\n"
	".size sim_fiber_begin, . - sim_fiber_begin\n");
#else
#error "fibers want a switch for this processor"
#endif

/* Tell the sanitizers that the stack is about to change, and that it has changed. */

static void leave_begins(struct sim_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
	/* NULL for a fiber that is over: the address sanitizer frees its fake stack. */
	__sanitizer_start_switch_fiber(fiber->is_over ? NULL : &fiber->own_fake, fiber->outer_stack,
				       fiber->outer_bytes);
#elif defined(__SANITIZE_THREAD__)
	__tsan_switch_to_fiber(fiber->sanitizer_outer, 0);
#else
	(void)fiber;
#endif
}

static void enter_ends(struct sim_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(fiber->own_fake, &fiber->outer_stack, &fiber->outer_bytes);
#else
	(void)fiber;
#endif
}

static void enter_begins(struct sim_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(&fiber->outer_fake, fiber->stack, fiber->stack_bytes);
#elif defined(__SANITIZE_THREAD__)
	fiber->sanitizer_outer = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(fiber->sanitizer_fiber, 0);
#else
	(void)fiber;
#endif
}

static void leave_ends(struct sim_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(fiber->outer_fake, NULL, NULL);
#else
	(void)fiber;
#endif
}

static void fiber_main(void *arg)
{
	struct sim_fiber *fiber = arg;

	enter_ends(fiber);
	fiber->run(fiber->arg);
	fiber->is_over = true;
	sim_fiber_leave(fiber);
}

int sim_fiber_init(struct sim_fiber *fiber, void (*run)(void *arg), void *arg)
{
	size_t guard = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t *saved;

	*fiber = (struct sim_fiber){ .run = run, .arg = arg, .stack_bytes = STACK_BYTES + guard };
	fiber->stack = mmap(NULL, fiber->stack_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fiber->stack == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(fiber->stack, guard, PROT_NONE)) {
		munmap(fiber->stack, fiber->stack_bytes);
		return -ENOMEM;
	}
	/* The stack pointer after the saved words is a multiple of 16, as a call requires. */
	saved = (uintptr_t *)(fiber->stack + fiber->stack_bytes) - SAVED_WORDS - 2;
	saved[SAVED_CALL] = (uintptr_t)fiber_main;
	saved[SAVED_ARG] = (uintptr_t)fiber;
	saved[SAVED_PC] = (uintptr_t)sim_fiber_begin;
	fiber->own_sp = saved;
#if defined(__SANITIZE_THREAD__)
	fiber->sanitizer_fiber = __tsan_create_fiber(0);
#endif
	return 0;
}

void sim_fiber_fini(struct sim_fiber *fiber)
{
#if defined(__SANITIZE_THREAD__)
	__tsan_destroy_fiber(fiber->sanitizer_fiber);
#endif
	munmap(fiber->stack, fiber->stack_bytes);
}

void sim_fiber_enter(struct sim_fiber *fiber)
{
	assert(!fiber->is_over);
	enter_begins(fiber);
	sim_fiber_switch(&fiber->outer_sp, fiber->own_sp);
	leave_ends(fiber);
}

void sim_fiber_leave(struct sim_fiber *fiber)
{
	leave_begins(fiber);
	sim_fiber_switch(&fiber->own_sp, fiber->outer_sp);
	enter_ends(fiber);
}
