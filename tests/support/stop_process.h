/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_TESTS_SUPPORT_STOP_PROCESS_H
#define WEIR_TESTS_SUPPORT_STOP_PROCESS_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <cmocka.h>

/*
 * Stop all threads of a child. kill(2) returns earlier: with few CPUs, other threads run on
 * until the thread that handles the signal gets a CPU.
 */
static inline void stop_process(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

#endif
