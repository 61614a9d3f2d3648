/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A link: the verbs of a channel.
 *
 * Only the last WR of a chain is signalled. The send queue completes in order, so the completion
 * also covers all earlier WRs of the chain. Only the end of the QP tells the fate of later WRs. A
 * link that fails is therefore closed at once. Its work destroys the QP, after which the device
 * touches no memory, takes the remaining completions, and returns the other WRs to the engine with
 * unknown outcome. Then the work reconnects (reconnect.h).
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
	KWEIR_LINK_CLOSED, /* never connected */
	KWEIR_LINK_UP,
	KWEIR_LINK_FAILING, /* its QP must be destroyed */
	KWEIR_LINK_BROKEN, /* may come up again */
	KWEIR_LINK_DOWN, /* for good */
};

/**
 * struct kweir_link - one channel's verbs
 * @conn: the connection; a broken link may have one without a QP. Changed by @reconnect only
 * @in_flight: WRs posted and not known to be complete, from @oldest to @newest, chained by next
 * @unsignalled: WRs in flight after the last signalled WR
 * @asked: a keep-alive probe is unacknowledged
 * @reconnect: the work of this link
 * @wait: where the connecting thread sleeps
 * @give_up_ns: when a broken link is given up
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
