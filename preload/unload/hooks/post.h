/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the program posts. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_POST_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_POST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct unload_device;
struct tracked_qp;

/* Puts ours in the place of the program's device's functions. */
void post_hook(struct unload_device *device);

/* Posts a list, as ibv_post_send() does. */
int post_list(struct tracked_qp *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/*
 * Looks how what was unloaded without a completion ends, and never waits for a peer that lives.
 * Context: the service thread, with tracked_qp_life. Return: whether to come again.
 */
bool post_poll(struct tracked_qp *w, uint64_t now_ns);

/*
 * The QP goes, or what is at its other end: what is under way is waited for, and nothing is
 * unloaded from now on.
 */
void post_end(struct tracked_qp *w);

#endif
