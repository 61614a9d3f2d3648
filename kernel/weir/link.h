/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A link: the verbs of a channel.
 *
 * core/link has the states and the WRs in flight. A failing link is not drained. Its work destroys
 * the QP, after which the device touches no memory, takes the remaining completions, and returns
 * the other WRs to the engine with unknown outcome. Then the work reconnects (reconnect.h).
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_KERNEL_WEIR_LINK_H
#define WEIR_KERNEL_WEIR_LINK_H

#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "core/link/link.h"
#include "core/link/reconnect.h"

struct kweir_conn;
struct kweir_session;

/**
 * struct kweir_link - one channel's verbs
 * @core: its state and WRs in flight
 * @conn: the connection; a broken link may have one without a QP. Changed by @reconnect only
 * @reconnect: the work of this link
 * @attempts: of a broken link
 * @wait: where the connecting thread sleeps
 */
struct kweir_link {
	struct kweir_session *session;
	u16 number;
	struct weir_link core;
	struct kweir_conn *conn;
	struct delayed_work reconnect;
	struct weir_reconnect attempts;
	wait_queue_head_t wait;
};

void kweir_link_init(struct kweir_link *link, struct kweir_session *session, u16 number);

/* Posts a batch; WRs that the QP refuses return to the engine. */
void kweir_link_post(struct kweir_link *link, struct weir_wr *first);

/* A WR of @link has completed. */
void kweir_link_completed(struct kweir_link *link, const struct ib_wc *wc, u64 now_ns);

/*
 * The QP is in error, or the peer is gone: the engine stops posting, the link's work does the rest.
 */
void kweir_link_fail(struct kweir_link *link);

/* The QP is destroyed: returns all WRs in flight to the engine, outcome unknown. */
void kweir_link_forget(struct kweir_link *link, u64 now_ns);

#endif
