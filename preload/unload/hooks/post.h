/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hooks of ibv_post_send() and ibv_bind_mw(). */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_POST_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_POST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct unload_device;
struct tracked_qp;

/* Installs the hooks in the table of the program's device. */
void post_hook(struct unload_device *device);

/* Posts a list, as ibv_post_send() does. */
int post_list(struct tracked_qp *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/*
 * Checks unloaded writes without a completion; never waits for a live peer.
 * Context: the service thread, with tracked_qp_life. Return: whether to call again.
 */
bool post_poll(struct tracked_qp *w, uint64_t now_ns);

/* The QP or its connection is about to end: waits for unloaded writes, and ends unloading. */
void post_end(struct tracked_qp *w);

#endif
