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
 * Stops a child, whole: kill(2) returns before that has happened, and where processors are few its
 * threads go on for as long as it takes until the one that is to stop them all has run.
 */
static inline void stop_process(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

#endif
