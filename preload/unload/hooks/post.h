/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the program posts. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_POST_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_POST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct device;
struct watched;

/* Puts ours in the place of the program's device's functions. */
void post_take_over(struct device *device);

/* Posts a list, as ibv_post_send() does. */
int post_list(struct watched *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/*
 * Looks how what was unloaded without a completion ends, and never waits for a peer that lives.
 * Context: the service thread, with watch_life. Return: whether to come again.
 */
bool post_tend(struct watched *w, uint64_t now_ns);

/*
 * The QP goes, or what is at its other end: what is under way is waited for, and nothing is
 * unloaded from now on.
 */
void post_end(struct watched *w);

#endif
