/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weir lend' says to 'weir serve': a signal, whose value is how many bytes to lend from now
 * on.
 */
#ifndef WEIR_APPS_LEND_H
#define WEIR_APPS_LEND_H

#include <assert.h>
#include <signal.h>
#include <stdint.h>

#define LEND_SIGNAL SIGRTMIN /* such signals are queued: none of several is missed */
#define LEND_COMM "weir-serve" /* what the process is called, for whom else it would be the end */

static_assert(sizeof(void *) == sizeof(uint64_t), "a size fits into a signal");

#endif
