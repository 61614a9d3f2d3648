/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The library's only thread: finds peers, answers offers, and copies the peers' unloaded writes.
 * The thread polls adaptively, like weir's other threads.
 */
#ifndef WEIR_PRELOAD_UNLOAD_SERVICE_H
#define WEIR_PRELOAD_UNLOAD_SERVICE_H

#include <stdbool.h>

/* Starts the thread; once. Context: any. Return: true if the thread runs. */
bool service_start(void);

/* Wakes the thread to look for peers. Context: any. */
void service_wake(void);

/* An unsignalled write was unloaded: see post_poll(). Context: any. */
void service_poll_tx(void);

/* Does the thread run in this process? A child of fork() has no service thread. Context: any. */
bool service_is_here(void);

#endif
