// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "kernel/weir/conn.h"
#include "kernel/weir/mail.h"
#include "kernel/weir/session.h"

static void sent(struct weir_io *io)
{
	complete(&container_of(io, struct weir_mail, io)->sent);
}

int weir_mail_init(struct weir_mail *mail, struct weir_session *session)
{
	struct ib_device *device = session->nic->device;

	mail->session = session;
	mutex_init(&mail->mutex);
	init_completion(&mail->sent);
	init_completion(&mail->answered);
	mail->io.done = sent;
	mail->buffers = kmalloc(sizeof(*mail->buffers), GFP_KERNEL);
	if (!mail->buffers)
		return -ENOMEM;
	mail->dma = ib_dma_map_single(device, mail->buffers, sizeof(*mail->buffers),
				      DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(device, mail->dma))
		return 0;
	kfree(mail->buffers);
	mail->buffers = NULL;
	return -ENOMEM;
}

void weir_mail_fini(struct weir_mail *mail)
{
	if (!mail->buffers)
		return;
	ib_dma_unmap_single(mail->session->nic->device, mail->dma, sizeof(*mail->buffers),
			    DMA_BIDIRECTIONAL);
	kfree(mail->buffers);
	mail->buffers = NULL;
}

static int post(struct weir_mail *mail, struct weir_conn *conn, unsigned int number)
{
	struct ib_sge sge = {
		.addr = mail->dma + number * WIRE_MESSAGE_BYTES,
		.length = WIRE_MESSAGE_BYTES,
		.lkey = mail->session->nic->pd->local_dma_lkey,
	};
	const struct ib_recv_wr wr = {
		.wr_id = WEIR_MAIL_RECEIVED + number,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(conn->id->qp, &wr, NULL);
}

int weir_mail_post(struct weir_mail *mail, struct weir_conn *conn)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < WEIR_MAIL_RECVS; i++)
		rc = post(mail, conn, i);
	return rc;
}

int weir_mail_up(struct weir_mail *mail, const struct wire_welcome *welcome)
{
	if (welcome->message_max < WEIR_MAIL_CALL_MAX)
		return -EPROTO;
	return wire_credit_init(&mail->credit, WEIR_MAIL_RECVS, welcome->credits);
}

static void answered(struct weir_mail *mail, int status)
{
	mail->waiting = false;
	mail->status = status;
	complete(&mail->answered);
}

/* Whoever looks at the session's stat will see it. */
static int read_recall(struct weir_mail *mail, const void *body, u32 length)
{
	struct wire_recall recall;

	if (wire_recall_decode(body, length, &recall))
		return -EPROTO;
	mail->session->stat.keep_bytes = recall.keep_bytes;
	return 0;
}

/* Any other answer than the one that is waited for was for somebody who gave up. */
static int read_message(struct weir_mail *mail, const void *data, u32 bytes)
{
	struct wire_head head;
	const void *body;

	if (wire_control_decode(data, bytes, &head, &body) ||
	    wire_credit_received(&mail->credit, head.credits))
		return -EPROTO;
	if (head.kind == WIRE_RECALL)
		return read_recall(mail, body, head.length);
	if (head.kind != WIRE_CONTROL_REPLY || !mail->waiting || head.tag != mail->tag)
		return 0;
	mail->length = min_t(u32, head.length, sizeof(mail->answer));
	memcpy(mail->answer, body, mail->length);
	answered(mail, head.status);
	return 0;
}

void weir_mail_received(struct weir_mail *mail, struct weir_conn *conn, const struct ib_wc *wc)
{
	unsigned int number = wc->wr_id - WEIR_MAIL_RECEIVED;
	struct weir_link *link = conn->link;

	if (link->conn != conn)
		return;
	if (wc->status == IB_WC_SUCCESS) {
		ib_dma_sync_single_for_cpu(mail->session->nic->device,
					   mail->dma + number * WIRE_MESSAGE_BYTES, wc->byte_len,
					   DMA_FROM_DEVICE);
		if (!read_message(mail, mail->buffers->received[number], wc->byte_len) &&
		    (link->state != WEIR_LINK_UP || !post(mail, conn, number)))
			return;
	}
	weir_link_fail(link);
}

void weir_mail_broken(struct weir_mail *mail)
{
	if (mail->waiting)
		answered(mail, -ECONNRESET);
}

/* The message into the call's buffer. Return: its length, or -EINVAL: the name. */
static int write_message(struct weir_mail *mail, struct wire_request *request, const char *name)
{
	struct wire_head head = { .kind = WIRE_CONTROL_CALL };
	int length = wire_request_encode(request, name, mail->buffers->call + sizeof(head));

	if (length < 0)
		return length;
	weir_nic_lock(mail->session->nic);
	head.credits = wire_credit_spend(&mail->credit);
	head.tag = ++mail->tag;
	head.length = length;
	mail->waiting = true;
	reinit_completion(&mail->answered);
	weir_nic_unlock(mail->session->nic);
	memcpy(mail->buffers->call, &head, sizeof(head));
	return sizeof(head) + length;
}

/* As any request of the session's; it is done when it is sent. */
static int send_message(struct weir_mail *mail, u32 length)
{
	struct weir_session *session = mail->session;
	u64 dma = mail->dma + offsetof(struct weir_mail_buffers, call);
	struct weir_part *part = &mail->io.part[0];

	ib_dma_sync_single_for_device(session->nic->device, dma, length, DMA_TO_DEVICE);
	mail->io.session = session;
	mail->io.status = 0;
	mail->io.nents = 0;
	mail->io.nr_parts = 1;
	part->io = &mail->io;
	part->req.op = WEIR_OP_SEND;
	part->req.retries = 0;
	part->req.exclusive = false;
	part->req.length = length;
	part->req.nr_sge = 1;
	part->req.sge[0] = (struct weir_sge){ dma, length, session->nic->pd->local_dma_lkey };
	reinit_completion(&mail->sent);
	percpu_ref_get(&session->ios); /* the io's, as any other has one */
	weir_io_submit(&mail->io);
	wait_for_completion(&mail->sent);
	return mail->io.status;
}

static int wait_answer(struct weir_mail *mail)
{
	struct weir_session *session = mail->session;
	long left;

	left = wait_for_completion_interruptible_timeout(&mail->answered,
		msecs_to_jiffies(session->options.timeout_ms));
	weir_nic_lock(session->nic);
	if (mail->waiting)
		answered(mail, left < 0 ? -EINTR : -ETIMEDOUT);
	weir_nic_unlock(session->nic);
	return mail->status;
}

static int call(struct weir_mail *mail, struct wire_request *request, const char *name)
{
	bool has_room;
	int rc;

	weir_nic_lock(mail->session->nic);
	has_room = wire_credit_has_room(&mail->credit);
	weir_nic_unlock(mail->session->nic);
	if (!has_room)
		return -EAGAIN;
	rc = write_message(mail, request, name);
	if (rc < 0)
		return rc;
	rc = send_message(mail, rc);
	if (!rc)
		return wait_answer(mail);
	weir_nic_lock(mail->session->nic);
	mail->waiting = false;
	weir_nic_unlock(mail->session->nic);
	return rc;
}

/* No answer, or none that makes sense, has no sentence of the donor's. */
static int explain(struct weir_mail *mail, int status, struct weir_error *error)
{
	char text[WEIR_ERROR_TEXT / 2];

	wire_text_decode(mail->answer, mail->length, text, sizeof(text));
	if (text[0])
		return weir_fail(error, status, "%s: %s", mail->session->peer, text);
	return weir_fail(error, status, "%s gave no answer (%d)", mail->session->peer, status);
}

int weir_mail_call(struct weir_mail *mail, struct wire_request *request, const char *name,
		   void *answer, size_t size, struct weir_error *error)
{
	int rc;

	if (!weir_session_enter(mail->session))
		return weir_fail(error, -ENOTCONN, "the session has ended");
	mutex_lock(&mail->mutex);
	mail->length = 0;
	rc = call(mail, request, name);
	if (rc)
		rc = explain(mail, rc, error);
	else if (mail->length != size)
		rc = weir_fail(error, -EPROTO, "%s answers nonsense", mail->session->peer);
	else
		memcpy(answer, mail->answer, size);
	mutex_unlock(&mail->mutex);
	weir_session_leave(mail->session);
	return rc;
}
