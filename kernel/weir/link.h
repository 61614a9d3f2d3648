/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A link is a channel as the verbs see it.
 *
 * Only the last WR of a chain asks for a completion; the send queue works in order, so that one
 * tells of all posted before it that they succeeded. Nothing tells of those behind it but the end
 * of the QP. So a link that fails is given up at once: its work destroys the QP, after which
 * the device can touch no memory any more, takes what it has completed, and gives the
 * rest back to the engine, outcome unknown. Then it connects anew (reconnect.c).
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_KERNEL_LINK_H
#define WEIR_KERNEL_LINK_H

#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "core/engine/engine.h"

struct kweir_conn;
struct kweir_session;

enum kweir_link_state {
	KWEIR_LINK_CLOSED, /* has never been connected */
	KWEIR_LINK_UP,
	KWEIR_LINK_FAILING, /* its QP is to be destroyed */
	KWEIR_LINK_BROKEN, /* it may come up again */
	KWEIR_LINK_DOWN, /* for good */
};

/**
 * struct kweir_link - one channel's verbs
 * @conn: the connection; of a broken one without a QP. Changed by its work only
 * @in_flight: WRs posted and not known to be completed: @oldest to @newest, chained by their next
 * @unsignalled: of them, those behind the last that is signalled
 * @asked: by keep-alive, and not answered
 * @reconnect: its work
 * @wait: where who connects it waits
 * @give_up_ns: when a broken one is given up
 * @pause_ms: until the next attempt
 */
struct kweir_link {
	struct kweir_session *session;
	u16 number;
	enum kweir_link_state state;
	struct kweir_conn *conn;
	u32 in_flight;
	struct weir_wr *oldest, *newest;
	u32 unsignalled;
	bool asked;
	struct delayed_work reconnect;
	wait_queue_head_t wait;
	u64 give_up_ns;
	unsigned int pause_ms;
};

void kweir_link_init(struct kweir_link *link, struct kweir_session *session, u16 number);

/* Posts a batch; what cannot be posted is given back to the engine. */
void kweir_link_post(struct kweir_link *link, struct weir_wr *first);

/* One of its WRs has completed. */
void kweir_link_completed(struct kweir_link *link, const struct ib_wc *wc, u64 now_ns);

/*
 * It shows an error, or its peer is gone: the engine posts there no more, its work does the rest.
 */
void kweir_link_fail(struct kweir_link *link);

/* The QP is destroyed: gives all in flight back to the engine, outcome unknown. */
void kweir_link_forget(struct kweir_link *link, u64 now_ns);

#endif
