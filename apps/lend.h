/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interface between 'weir lend' and 'weir serve': a signal that carries the number of bytes to
 * lend.
 */
#ifndef WEIR_APPS_LEND_H
#define WEIR_APPS_LEND_H

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define LEND_SIGNAL SIGRTMIN /* a real-time signal: queued, so no value is lost */
/* the process name, checked because the signal would kill any other process */
#define LEND_COMM "weir-serve"

/* Whether a process is a donor of weir serve. */
bool lend_is_donor(pid_t pid);

static_assert(sizeof(void *) == sizeof(uint64_t), "a size fits into a signal");

#endif
