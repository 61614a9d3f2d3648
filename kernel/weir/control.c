// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "core/link/call_table.h"
#include "kernel/weir/conn.h"
#include "kernel/weir/control.h"
#include "kernel/weir/session.h"

static void sent(struct kweir_io *io)
{
	complete(&container_of(io, struct kweir_control, io)->sent);
}

int kweir_control_init(struct kweir_control *control, struct kweir_session *session)
{
	struct ib_device *device = session->nic->device;

	control->session = session;
	control->timeout_ms = session->options.timeout_ms;
	mutex_init(&control->mutex);
	init_completion(&control->sent);
	init_completion(&control->answered);
	control->io.done = sent;
	weir_call_table_init(&control->calls, control->entries, KWEIR_CONTROL_CALLS);
	control->buffers = kmalloc(sizeof(*control->buffers), GFP_KERNEL);
	if (!control->buffers)
		return -ENOMEM;
	control->dma = ib_dma_map_single(device, control->buffers, sizeof(*control->buffers),
					 DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(device, control->dma))
		return 0;
	kfree(control->buffers);
	control->buffers = NULL;
	return -ENOMEM;
}

void kweir_control_fini(struct kweir_control *control)
{
	if (!control->buffers)
		return;
	/* The caller may have timed out, and a session goes quiet before the completion of the io
	 * runs. */
	if (control->sending)
		wait_for_completion(&control->sent);
	ib_dma_unmap_single(control->session->nic->device, control->dma, sizeof(*control->buffers),
			    DMA_BIDIRECTIONAL);
	kfree(control->buffers);
	control->buffers = NULL;
}

static int post(struct kweir_control *control, struct kweir_conn *conn, unsigned int number)
{
	struct ib_sge sge = {
		.addr = control->dma + number * WIRE_CONTROL_MESSAGE_BYTES,
		.length = WIRE_CONTROL_MESSAGE_BYTES,
		.lkey = control->session->nic->pd->local_dma_lkey,
	};
	const struct ib_recv_wr wr = {
		.wr_id = KWEIR_CONTROL_RECEIVED + number,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(conn->id->qp, &wr, NULL);
}

int kweir_control_post(struct kweir_control *control, struct kweir_conn *conn)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < KWEIR_CONTROL_RECVS; i++)
		rc = post(control, conn, i);
	return rc;
}

/* On each new connection the donor repeats its demand for memory, but never repeats "no demand". */
int kweir_control_link_up(struct kweir_control *control,
			  const struct wire_handshake_welcome *welcome)
{
	if (welcome->message_max < KWEIR_CONTROL_CALL_MAX)
		return -EPROTO;
	control->granting = false;
	control->session->stat.keep_bytes = WIRE_CONTROL_KEEP_ALL;
	return weir_credit_init(&control->credit, KWEIR_CONTROL_RECVS, welcome->credits);
}

static void answered(struct kweir_control *control, int status)
{
	control->status = status;
	complete(&control->answered);
}

/* kweir_session_stat() reports the demand. */
static int read_recall(struct kweir_control *control, const void *body, u32 length)
{
	struct wire_control_reclaim recall;

	if (wire_control_reclaim_decode(body, length, &recall))
		return -EPROTO;
	control->session->stat.keep_bytes = recall.keep_bytes;
	return 0;
}

static int read_message(struct kweir_control *control, const void *data, u32 bytes)
{
	struct wire_control_head head;
	unsigned int call;
	const void *body;
	int rc;

	if (wire_control_decode(data, bytes, &head, &body) ||
	    weir_credit_received(&control->credit, head.credits))
		return -EPROTO;
	if (head.kind == WIRE_CONTROL_RECLAIM)
		return read_recall(control, body, head.length);
	if (head.kind != WIRE_CONTROL_REPLY)
		return 0;
	rc = weir_call_table_reply(&control->calls, &head, body, &call);
	if (rc)
		return rc == -ESTALE ? 0 : rc;
	control->length = min_t(u32, head.length, sizeof(control->answer));
	memcpy(control->answer, body, control->length);
	answered(control, head.status);
	return 0;
}

static struct kweir_link *link_of(struct kweir_control *control)
{
	return &control->session->links[0];
}

/* Reads the message in a buffer, and posts the buffer again. Return: 0 or a negative errno. */
static int read_buffer(struct kweir_control *control, struct kweir_conn *conn, unsigned int number,
		       u32 bytes)
{
	int rc;

	ib_dma_sync_single_for_cpu(control->session->nic->device,
				   control->dma + number * WIRE_CONTROL_MESSAGE_BYTES, bytes,
				   DMA_FROM_DEVICE);
	rc = read_message(control, control->buffers->received[number], bytes);
	return rc || conn->link->core.state != WEIR_LINK_UP ? rc : post(control, conn, number);
}

/* Writes the header of a message, and spends one credit. */
static void write_head(struct kweir_control *control, void *to, struct wire_control_head head)
{
	head.credits = weir_credit_spend(&control->credit);
	memcpy(to, &head, sizeof(head));
}

/* Sends a message without a body, which returns credits. A failure breaks the link. */
static void post_credit(struct kweir_control *control, u32 flags)
{
	struct kweir_link *link = link_of(control);
	struct ib_sge sge = {
		.addr = control->dma + offsetof(struct kweir_control_buffers, grant),
		.length = sizeof(control->buffers->grant),
		.lkey = control->session->nic->pd->local_dma_lkey,
	};
	const struct ib_send_wr wr = {
		.wr_id = KWEIR_CONTROL_GRANTED,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	write_head(control, control->buffers->grant,
		   (struct wire_control_head){ .kind = WIRE_CONTROL_CREDIT, .flags = flags });
	ib_dma_sync_single_for_device(control->session->nic->device, sge.addr, sge.length,
				      DMA_TO_DEVICE);
	control->granting = true;
	if (ib_post_send(link->conn->id->qp, &wr, NULL))
		kweir_link_fail(link);
}

static bool may_post_credit(struct kweir_control *control)
{
	return link_of(control)->core.state == WEIR_LINK_UP && !control->granting;
}

/* Returns credits to the donor when enough are owed. */
static void grant(struct kweir_control *control)
{
	if (may_post_credit(control) && weir_credit_is_due(&control->credit))
		post_credit(control, 0);
}

void kweir_control_close(struct kweir_control *control)
{
	if (may_post_credit(control) && weir_credit_may_send_bare(&control->credit))
		post_credit(control, WIRE_CONTROL_CLOSING);
}

void kweir_control_granted(struct kweir_control *control, struct kweir_conn *conn,
			   const struct ib_wc *wc)
{
	if (conn->link->conn != conn)
		return;
	control->granting = false;
	if (wc->status == IB_WC_SUCCESS)
		grant(control);
	else
		kweir_link_fail(conn->link);
}

void kweir_control_received(struct kweir_control *control, struct kweir_conn *conn,
			    const struct ib_wc *wc)
{
	unsigned int number = wc->wr_id - KWEIR_CONTROL_RECEIVED;
	bool is_well = wc->status == IB_WC_SUCCESS;

	if (conn->link->conn != conn) {
		if (is_well && conn->nr_control < KWEIR_CONTROL_RECVS)
			conn->control[conn->nr_control++] = wc->byte_len;
	} else if (!is_well || read_buffer(control, conn, number, wc->byte_len)) {
		kweir_link_fail(conn->link);
	} else {
		grant(control);
	}
}

void kweir_control_read_early(struct kweir_control *control)
{
	struct kweir_link *link = link_of(control);
	struct kweir_conn *conn = link->conn;
	unsigned int i;

	for (i = 0; i < conn->nr_control; i++) {
		if (read_buffer(control, conn, i, conn->control[i])) {
			kweir_link_fail(link);
			return;
		}
	}
	grant(control);
}

/* A call not yet posted never will be: the header counts credits of the broken connection. */
void kweir_control_link_down(struct kweir_control *control)
{
	unsigned int i;

	for (i = 0; i < KWEIR_CONTROL_CALLS; i++)
		if (weir_call_table_broken(&control->calls, i))
			answered(control, -ECONNRESET);
	if (control->calling)
		weir_engine_cancel(&control->session->engine, &control->io.part[0].req);
}

/* Prepares a call of @length bytes as a request of the session; the request completes when sent. */
static void fill_io(struct kweir_control *control, u32 length)
{
	struct kweir_session *session = control->session;
	u64 dma = control->dma + offsetof(struct kweir_control_buffers, call);
	struct kweir_part *part = &control->io.part[0];

	control->io.session = session;
	control->io.status = 0;
	control->io.nents = 0;
	control->io.nr_parts = 1;
	part->io = &control->io;
	part->req.op = WEIR_OP_SEND;
	part->req.state = WEIR_REQ_DONE; /* nothing to cancel before the engine has the request */
	part->req.retries = 0;
	part->req.exclusive = false;
	part->req.length = length;
	part->req.nr_sge = 1;
	part->req.sge[0] = (struct weir_sge){ dma, length, session->nic->pd->local_dma_lkey };
}

/*
 * Writes the header and pushes the call with the lock held, so that a later break of the link finds
 * the call in the engine. @hold: that it returns, or 0. Return: 0; -ENOTCONN, -EAGAIN: not sent.
 */
static int push_call(struct kweir_control *control, u32 length, u64 hold)
{
	struct kweir_session *session = control->session;
	struct wire_control_head head = {
		.kind = WIRE_CONTROL_CALL,
		.length = length - sizeof(head),
	};
	int index;

	if (link_of(control)->core.state != WEIR_LINK_UP)
		return -ENOTCONN;
	if (!weir_credit_has_room(&control->credit))
		return -EAGAIN;
	index = weir_call_table_begin(&control->calls, WEIR_NEVER, hold);
	if (index < 0)
		return index;
	control->call = index;
	control->calling = true;
	head.tag = control->entries[index].tag;
	write_head(control, control->buffers->call, head);
	ib_dma_sync_single_for_device(session->nic->device, control->io.part[0].req.sge[0].addr,
				      length, DMA_TO_DEVICE);
	percpu_ref_get(&session->ios); /* the io's reference, as any other io holds */
	kweir_io_push(&control->io);
	return 0;
}

/*
 * Waits until the call is sent. A vanished host takes no message, and its connection breaks only
 * later. The call of a caller that timed out is waited for as well, since the call still uses the
 * buffer. Return: what remains of @left; 0: still being sent.
 */
static long wait_sent(struct kweir_control *control, long left)
{
	if (control->sending)
		left = wait_for_completion_timeout(&control->sent, left);
	control->sending = !left;
	return left;
}

/* Return: 0: the call is sent; a reply will arrive or the link will break, or has already. */
static int send_message(struct kweir_control *control, u32 length, u64 hold, long *left)
{
	struct kweir_nic *nic = control->session->nic;
	int rc;

	fill_io(control, length);
	reinit_completion(&control->sent);
	reinit_completion(&control->answered);
	kweir_nic_lock(nic);
	rc = push_call(control, length, hold);
	kweir_nic_unlock(nic);
	if (rc)
		return rc;
	control->sending = true;
	*left = wait_sent(control, *left);
	kweir_nic_lock(nic);
	control->calling = control->sending;
	if (control->entries[control->call].state == WEIR_CALL_WAITING)
		rc = control->sending ? -ETIMEDOUT : control->io.status;
	if (rc)
		weir_call_table_abandon(&control->calls, control->call);
	kweir_nic_unlock(nic);
	return rc == -ECANCELED ? -ECONNRESET : rc;
}

static int wait_answer(struct kweir_control *control, long left)
{
	struct kweir_session *session = control->session;

	left = wait_for_completion_interruptible_timeout(&control->answered, left);
	kweir_nic_lock(session->nic);
	if (weir_call_table_abandon(&control->calls, control->call))
		answered(control, left < 0 ? -EINTR : -ETIMEDOUT);
	kweir_nic_unlock(session->nic);
	return control->status;
}

static int call(struct kweir_control *control, struct wire_control_request *request,
		const char *name)
{
	long left = wait_sent(control, msecs_to_jiffies(READ_ONCE(control->timeout_ms)));
	int length, rc;

	if (!left)
		return -ETIMEDOUT;
	length = wire_control_request_encode(
		request, name, control->buffers->call + sizeof(struct wire_control_head));
	if (length < 0)
		return length;
	rc = send_message(control, sizeof(struct wire_control_head) + length,
			  request->op == WIRE_REGION_CLOSE ? request->value : 0, &left);
	return rc ? rc : wait_answer(control, left);
}

static u64 granted_hold(struct kweir_control *control)
{
	u64 hold;

	kweir_nic_lock(control->session->nic);
	hold = weir_call_table_granted(&control->calls);
	kweir_nic_unlock(control->session->nic);
	return hold;
}

/* Closes holds that the donor granted to callers that had timed out. */
static void close_granted(struct kweir_control *control)
{
	struct wire_control_request request = { .op = WIRE_REGION_CLOSE };
	int rc = 0;

	while (!weir_call_is_unanswered(rc) && (request.value = granted_hold(control)))
		rc = call(control, &request, NULL);
}

/* A missing or malformed reply carries no sentence of the donor's. */
static int explain_answer(struct kweir_control *control, int status, struct kweir_error *error)
{
	char text[KWEIR_ERROR_TEXT / 2];

	wire_control_text_decode(control->answer, control->length, text, sizeof(text));
	if (text[0])
		return kweir_fail(error, status, "%s: %s", control->session->peer, text);
	return kweir_fail(error, status, "%s gave no answer (%d)", control->session->peer, status);
}

int kweir_control_call(struct kweir_control *control, struct wire_control_request *request,
		       const char *name, void *answer, size_t size, struct kweir_error *error)
{
	int rc;

	if (!kweir_session_enter(control->session))
		return kweir_fail(error, -ENOTCONN, "the session has ended");
	mutex_lock(&control->mutex);
	control->length = 0;
	rc = call(control, request, name);
	if (rc)
		rc = explain_answer(control, rc, error);
	else if (control->length != size)
		rc = kweir_fail(error, -EPROTO, "%s sent a malformed reply",
				control->session->peer);
	else
		memcpy(answer, control->answer, size);
	/* -EAGAIN: holds to return may fill the table. */
	if (!rc || rc == -EAGAIN)
		close_granted(control);
	mutex_unlock(&control->mutex);
	kweir_session_leave(control->session);
	return rc;
}
