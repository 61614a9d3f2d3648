/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The one thread of this library: it looks for peers, answers those that look for us, and copies
 * what they unload. It polls as weir's threads do, adaptively.
 */
#ifndef WEIR_PRELOAD_UNLOAD_SERVICE_H
#define WEIR_PRELOAD_UNLOAD_SERVICE_H

#include <stdbool.h>

/* Starts it; once. Context: any. Return: whether it runs. */
bool service_start(void);

/* There is something to look for. Context: any. */
void service_wake(void);

/* Something was unloaded that asks for no completion: see post_poll(). Context: any. */
void service_poll_tx(void);

/* Whether this is the process that it runs in: a child of fork() is on its own. Context: any. */
bool service_is_here(void);

#endif
