// SPDX-License-Identifier: GPL-2.0-only
/* The verbs and the end of a connection. connect.c makes a connection. */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/weir/connect.h"
#include "kernel/weir/conn.h"
#include "kernel/weir/session.h"

#define WCS_MAX 32
#define WAKE_NS 50000 /* cost of a wake-up: first guess, as in the user library */
#define TURN_NS (2 * NSEC_PER_MSEC) /* then the poller lets other work of this CPU run */

/* A handshake message has arrived. Messages arrive in the order of the receive buffers. */
static void handshake_received(struct kweir_conn *conn, const struct ib_wc *wc)
{
	unsigned int number = conn->nr_received;

	if (wc->status != IB_WC_SUCCESS) {
		WRITE_ONCE(conn->failed, true);
	} else if (number < WIRE_HANDSHAKE_RECVS) {
		conn->received[number] = wc->byte_len;
		smp_store_release(&conn->nr_received, number + 1); /* pairs with the acquire in
								    * has_received() */
	}
	wake_up(&conn->link->wait);
}

static void completed(struct kweir_conn *conn, const struct ib_wc *wc, u64 now_ns)
{
	struct kweir_link *link = conn->link;

	if (wc->wr_id == KWEIR_CONN_KEEPALIVE) {
		kweir_keepalive_completed(link, wc->status == IB_WC_SUCCESS, now_ns);
		return;
	}
	link->session->stat.completions++;
	if (wc->wr_id > KWEIR_WR_ID_MAX)
		kweir_link_completed(link, wc, now_ns);
	else if (wc->wr_id >= KWEIR_CONTROL_RECEIVED)
		kweir_control_received(&link->session->control, conn, wc);
	else if (wc->wr_id == KWEIR_CONTROL_GRANTED)
		kweir_control_granted(&link->session->control, conn, wc);
	else if (wc->wr_id >= KWEIR_CONN_RECEIVED)
		handshake_received(conn, wc);
}

u32 kweir_conn_poll(struct kweir_conn *conn, u64 now_ns)
{
	struct ib_wc wcs[4];
	int got, i;
	u32 total = 0;

	do {
		got = ib_poll_cq(conn->cq, ARRAY_SIZE(wcs), wcs);
		for (i = 0; i < got; i++)
			completed(conn, &wcs[i], now_ns);
		total += max(got, 0);
	} while (got == ARRAY_SIZE(wcs) && total < WCS_MAX);
	if (total)
		kweir_session_schedule(conn->link->session);
	return total;
}

/* Polls the CQ once; arms the CQ first if @verdict says so. */
static enum weir_poll_verdict poll_once(struct kweir_conn *conn, enum weir_poll_verdict verdict)
{
	struct kweir_session *session = conn->link->session;
	u64 now_ns = ktime_get_ns(), empty = conn->poll.empty_polls;
	u32 total = 0;

	kweir_nic_lock(session->nic);
	if (conn->dead) {
		verdict = WEIR_POLL_SLEEP;
	} else {
		if (verdict == WEIR_POLL_ARM)
			ib_req_notify_cq(conn->cq, IB_CQ_NEXT_COMP);
		total = kweir_conn_poll(conn, now_ns);
		verdict = weir_poll_polled(&conn->poll, total, now_ns);
		session->stat.events += conn->events;
		conn->events = 0;
		session->stat.empty_polls += conn->poll.empty_polls - empty;
	}
	kweir_nic_unlock_and_complete(session->nic);
	return verdict;
}

static void poll_work(struct work_struct *work)
{
	struct kweir_conn *conn = container_of(work, struct kweir_conn, work);
	u64 begin_ns = ktime_get_ns();
	enum weir_poll_verdict verdict = weir_poll_woken(&conn->poll, begin_ns);

	conn->events++;
	while (verdict != WEIR_POLL_SLEEP) {
		verdict = poll_once(conn, verdict);
		if (verdict == WEIR_POLL_AGAIN && ktime_get_ns() - begin_ns > TURN_NS) {
			conn->events--; /* polling goes on without an event */
			queue_work(kweir_wq, work);
			return;
		}
		cond_resched();
	}
}

/* A link that is up has a connection, and keeps the connection while the caller holds nic->lock. */
u32 kweir_conns_poll(struct kweir_session *session, u64 now_ns)
{
	unsigned int i;
	u32 total = 0;

	for (i = 0; i < session->options.channels; i++) {
		if (session->links[i].core.state == WEIR_LINK_UP)
			total += kweir_conn_poll(session->links[i].conn, now_ns);
	}
	return total;
}

int kweir_session_poll(struct kweir_session *session)
{
	u32 total;

	kweir_nic_lock(session->nic);
	total = kweir_conns_poll(session, ktime_get_ns());
	session->stat.polled += total;
	kweir_nic_unlock_and_complete(session->nic);
	return total;
}
EXPORT_SYMBOL_GPL(kweir_session_poll);

/* Called by the device in any context. */
static void cq_event(struct ib_cq *cq, void *context)
{
	struct kweir_conn *conn = context;

	queue_work(kweir_wq, &conn->work);
}

static void cq_failed(struct ib_event *event, void *context)
{
	pr_err("weir: %s: a completion queue has failed\n", event->device->name);
}

static int make_cq(struct kweir_conn *conn)
{
	struct kweir_session *session = conn->link->session;
	struct ib_device *device = conn->id->device;
	const struct weir_poll_config config = {
		.mode = session->options.polling,
		.wcs_max = WCS_MAX,
		.busy_percent_max = 50,
	};
	struct ib_cq_init_attr attr = {
		.cqe = session->options.depth + WEIR_KEEPALIVE_SENDS + KWEIR_CONTROL_SENDS +
		       KWEIR_CONN_BUFFERS + KWEIR_CONTROL_RECVS,
		.comp_vector = conn->link->number % device->num_comp_vectors,
	};
	struct ib_cq *cq;

	weir_idle_time_init(&conn->idle_time, WAKE_NS, WAKE_NS);
	weir_poll_init(&conn->poll, &config, &conn->idle_time, ktime_get_ns());
	INIT_WORK(&conn->work, poll_work);
	cq = ib_create_cq(device, cq_event, cq_failed, conn, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->cq = cq;
	queue_work(kweir_wq, &conn->work); /* arms the CQ */
	return 0;
}

/*
 * Unlike lib/conn/qp.h, rdma_create_qp() admits RDMA before the proof. Only empty writes succeed:
 * the PD has no memory registered for remote access. The donor's probe needs the empty writes.
 */
int kweir_conn_make_qp(struct kweir_conn *conn)
{
	struct kweir_session *session = conn->link->session;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = session->options.depth + WEIR_KEEPALIVE_SENDS +
				       KWEIR_CONTROL_SENDS + KWEIR_HANDSHAKE_SENDS,
			.max_recv_wr = WIRE_HANDSHAKE_RECVS + KWEIR_CONTROL_RECVS,
			.max_send_sge = session->nic->sge_max,
			.max_recv_sge = 1,
		},
	};
	int rc = make_cq(conn);

	if (rc)
		return rc;
	attr.send_cq = attr.recv_cq = conn->cq;
	return rdma_create_qp(conn->id, session->nic->pd, &attr);
}

int kweir_conn_make_buffers(struct kweir_conn *conn)
{
	struct ib_device *device = conn->id->device;
	size_t bytes = KWEIR_CONN_BUFFERS * sizeof(*conn->buffers);

	conn->buffers = kzalloc(bytes, GFP_KERNEL);
	if (!conn->buffers)
		return -ENOMEM;
	conn->dma = ib_dma_map_single(device, conn->buffers, bytes, DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(device, conn->dma))
		return 0;
	kfree(conn->buffers);
	conn->buffers = NULL;
	return -ENOMEM;
}

static void free_buffers(struct kweir_conn *conn)
{
	if (!conn->buffers)
		return;
	ib_dma_unmap_single(conn->id->device, conn->dma,
			    KWEIR_CONN_BUFFERS * sizeof(*conn->buffers), DMA_BIDIRECTIONAL);
	kfree(conn->buffers);
	conn->buffers = NULL;
}

/* Takes the last completions before the QP is destroyed; afterwards nobody uses @cq. */
static void drain_cq(struct kweir_conn *conn)
{
	struct kweir_nic *nic = conn->link->session->nic;
	u64 now_ns = ktime_get_ns();

	kweir_nic_lock(nic);
	while (kweir_conn_poll(conn, now_ns))
		;
	conn->dead = true;
	kweir_nic_unlock_and_complete(nic);
}

void kweir_conn_destroy_qp(struct kweir_conn *conn)
{
	if (conn->id && conn->id->qp)
		rdma_destroy_qp(conn->id);
	if (conn->cq) {
		drain_cq(conn);
		ib_destroy_cq(conn->cq);
		cancel_work_sync(&conn->work);
		conn->cq = NULL;
	}
	free_buffers(conn);
}

void kweir_conn_free(struct kweir_conn *conn)
{
	if (!conn)
		return;
	if (conn->id && conn->id->qp)
		rdma_disconnect(conn->id);
	kweir_conn_destroy_qp(conn);
	if (conn->id)
		rdma_destroy_id(conn->id);
	kfree(conn);
}
