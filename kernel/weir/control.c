// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "kernel/weir/conn.h"
#include "kernel/weir/control.h"
#include "kernel/weir/session.h"

static void sent(struct weir_io *io)
{
	complete(&container_of(io, struct weir_mail, io)->sent);
}

int weir_mail_init(struct weir_mail *mail, struct weir_session *session)
{
	struct ib_device *device = session->nic->device;

	mail->session = session;
	mail->patience_ms = session->options.timeout_ms;
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
	/* Who called may have given up; and a session is quiet before the io is told. */
	if (mail->sending)
		wait_for_completion(&mail->sent);
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

/* A donor says anew to each connection what it wants back; not that it wants nothing any more. */
int weir_mail_up(struct weir_mail *mail, const struct wire_welcome *welcome)
{
	if (welcome->message_max < WEIR_MAIL_CALL_MAX)
		return -EPROTO;
	mail->granting = false;
	mail->session->stat.keep_bytes = WIRE_KEEP_ALL;
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

/*
 * An answer for somebody who gave up. Of those that say that it was done one, of its length, lends
 * memory.
 */
static void read_late(struct weir_mail *mail, const struct wire_head *head, const void *body)
{
	struct wire_region region;

	if (head->status || wire_region_decode(body, head->length, &region) ||
	    mail->nr_late == WEIR_MAIL_LATE_MAX)
		return;
	mail->late[mail->nr_late++] = region.hold;
}

static int read_message(struct weir_mail *mail, const void *data, u32 bytes)
{
	struct wire_head head;
	const void *body;

	if (wire_control_decode(data, bytes, &head, &body) ||
	    wire_credit_received(&mail->credit, head.credits))
		return -EPROTO;
	if (head.kind == WIRE_RECALL)
		return read_recall(mail, body, head.length);
	if (head.kind != WIRE_CONTROL_REPLY)
		return 0;
	if (!mail->waiting || head.tag != mail->tag) {
		read_late(mail, &head, body);
		return 0;
	}
	mail->length = min_t(u32, head.length, sizeof(mail->answer));
	memcpy(mail->answer, body, mail->length);
	answered(mail, head.status);
	return 0;
}

static struct weir_link *link_of(struct weir_mail *mail)
{
	return &mail->session->links[0];
}

/* Reads what is in a buffer, and posts that again. Return: 0 or a negative errno. */
static int take(struct weir_mail *mail, struct weir_conn *conn, unsigned int number, u32 bytes)
{
	int rc;

	ib_dma_sync_single_for_cpu(mail->session->nic->device,
				   mail->dma + number * WIRE_MESSAGE_BYTES, bytes, DMA_FROM_DEVICE);
	rc = read_message(mail, mail->buffers->received[number], bytes);
	return rc || conn->link->state != WEIR_LINK_UP ? rc : post(mail, conn, number);
}

/* What a message has in front of its body; one credit is spent for it. */
static void write_head(struct weir_mail *mail, void *to, struct wire_head head)
{
	head.credits = wire_credit_spend(&mail->credit);
	memcpy(to, &head, sizeof(head));
}

/* Gives credits back, if it is time. The link fails where it cannot. */
static void grant(struct weir_mail *mail)
{
	struct weir_link *link = link_of(mail);
	struct ib_sge sge = {
		.addr = mail->dma + offsetof(struct weir_mail_buffers, grant),
		.length = sizeof(mail->buffers->grant),
		.lkey = mail->session->nic->pd->local_dma_lkey,
	};
	const struct ib_send_wr wr = {
		.wr_id = WEIR_MAIL_GRANTED,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (link->state != WEIR_LINK_UP || mail->granting || !wire_credit_is_due(&mail->credit))
		return;
	write_head(mail, mail->buffers->grant, (struct wire_head){ .kind = WIRE_CREDIT });
	ib_dma_sync_single_for_device(mail->session->nic->device, sge.addr, sge.length,
				      DMA_TO_DEVICE);
	mail->granting = true;
	if (ib_post_send(link->conn->id->qp, &wr, NULL))
		weir_link_fail(link);
}

void weir_mail_granted(struct weir_mail *mail, struct weir_conn *conn, const struct ib_wc *wc)
{
	if (conn->link->conn != conn)
		return;
	mail->granting = false;
	if (wc->status == IB_WC_SUCCESS)
		grant(mail);
	else
		weir_link_fail(conn->link);
}

void weir_mail_received(struct weir_mail *mail, struct weir_conn *conn, const struct ib_wc *wc)
{
	unsigned int number = wc->wr_id - WEIR_MAIL_RECEIVED;
	bool is_well = wc->status == IB_WC_SUCCESS;

	if (conn->link->conn != conn) {
		if (is_well && conn->nr_mail < WEIR_MAIL_RECVS)
			conn->mail[conn->nr_mail++] = wc->byte_len;
	} else if (!is_well || take(mail, conn, number, wc->byte_len)) {
		weir_link_fail(conn->link);
	} else {
		grant(mail);
	}
}

void weir_mail_go_on(struct weir_mail *mail)
{
	struct weir_link *link = link_of(mail);
	struct weir_conn *conn = link->conn;
	unsigned int i;

	for (i = 0; i < conn->nr_mail; i++) {
		if (take(mail, conn, i, conn->mail[i])) {
			weir_link_fail(link);
			return;
		}
	}
	grant(mail);
}

/* A call that has not been posted never is: its head is about credits of this connection. */
void weir_mail_broken(struct weir_mail *mail)
{
	if (mail->waiting)
		answered(mail, -ECONNRESET);
	if (mail->calling)
		weir_engine_cancel(&mail->session->engine, &mail->io.part[0].req);
}

/* A call of @length bytes: as any request of the session's; it is done when it is sent. */
static void fill_io(struct weir_mail *mail, u32 length)
{
	struct weir_session *session = mail->session;
	u64 dma = mail->dma + offsetof(struct weir_mail_buffers, call);
	struct weir_part *part = &mail->io.part[0];

	mail->io.session = session;
	mail->io.status = 0;
	mail->io.nents = 0;
	mail->io.nr_parts = 1;
	part->io = &mail->io;
	part->req.op = WEIR_OP_SEND;
	part->req.state = WEIR_REQ_DONE; /* until the engine has it there is nothing to cancel */
	part->req.retries = 0;
	part->req.exclusive = false;
	part->req.length = length;
	part->req.nr_sge = 1;
	part->req.sge[0] = (struct weir_sge){ dma, length, session->nic->pd->local_dma_lkey };
}

/*
 * Its head is written, and it is pushed, with the lock held: what breaks the link later finds it in
 * the engine. Return: 0; -ENOTCONN, -EAGAIN: nobody is asked.
 */
static int push(struct weir_mail *mail, u32 length)
{
	struct weir_session *session = mail->session;
	struct wire_head head = {
		.kind = WIRE_CONTROL_CALL,
		.tag = mail->tag + 1,
		.length = length - sizeof(head),
	};

	if (link_of(mail)->state != WEIR_LINK_UP)
		return -ENOTCONN;
	if (!wire_credit_has_room(&mail->credit))
		return -EAGAIN;
	mail->tag++;
	mail->waiting = mail->calling = true;
	write_head(mail, mail->buffers->call, head);
	ib_dma_sync_single_for_device(session->nic->device, mail->io.part[0].req.sge[0].addr,
				      length, DMA_TO_DEVICE);
	percpu_ref_get(&session->ios); /* the io's, as any other has one */
	weir_io_push(&mail->io);
	return 0;
}

/*
 * A host that is gone without a word takes nothing, and its connection breaks only later. What was
 * sent for somebody who gave up is waited for, too, since it has the buffer. Return: what is left
 * of @left; 0: it is on its way still.
 */
static long wait_sent(struct weir_mail *mail, long left)
{
	if (mail->sending)
		left = wait_for_completion_timeout(&mail->sent, left);
	mail->sending = !left;
	return left;
}

/* Return: 0: it is sent, and there will be an answer, or none; or the answer is here already. */
static int send_message(struct weir_mail *mail, u32 length, long *left)
{
	struct weir_nic *nic = mail->session->nic;
	int rc;

	fill_io(mail, length);
	reinit_completion(&mail->sent);
	reinit_completion(&mail->answered);
	weir_nic_lock(nic);
	rc = push(mail, length);
	weir_nic_unlock(nic);
	if (rc)
		return rc;
	mail->sending = true;
	*left = wait_sent(mail, *left);
	weir_nic_lock(nic);
	mail->calling = mail->sending;
	if (mail->waiting)
		rc = mail->sending ? -ETIMEDOUT : mail->io.status;
	mail->waiting &= !rc;
	weir_nic_unlock(nic);
	return rc == -ECANCELED ? -ECONNRESET : rc;
}

static int wait_answer(struct weir_mail *mail, long left)
{
	struct weir_session *session = mail->session;

	left = wait_for_completion_interruptible_timeout(&mail->answered, left);
	weir_nic_lock(session->nic);
	if (mail->waiting)
		answered(mail, left < 0 ? -EINTR : -ETIMEDOUT);
	weir_nic_unlock(session->nic);
	return mail->status;
}

static int call(struct weir_mail *mail, struct wire_request *request, const char *name)
{
	long left = wait_sent(mail, msecs_to_jiffies(READ_ONCE(mail->patience_ms)));
	int length, rc;

	if (!left)
		return -ETIMEDOUT;
	length = wire_request_encode(request, name, mail->buffers->call + sizeof(struct wire_head));
	if (length < 0)
		return length;
	rc = send_message(mail, sizeof(struct wire_head) + length, &left);
	return rc ? rc : wait_answer(mail, left);
}

static bool take_late(struct weir_mail *mail, u64 *hold)
{
	bool any;

	weir_nic_lock(mail->session->nic);
	any = mail->nr_late;
	if (any)
		*hold = mail->late[--mail->nr_late];
	weir_nic_unlock(mail->session->nic);
	return any;
}

static void put_late(struct weir_mail *mail, u64 hold)
{
	weir_nic_lock(mail->session->nic);
	if (mail->nr_late < WEIR_MAIL_LATE_MAX)
		mail->late[mail->nr_late++] = hold;
	weir_nic_unlock(mail->session->nic);
}

/*
 * The donor answers: what it lent to nobody it gets back. To be told twice does it no harm; what it
 * says it does not know, it has.
 */
static void close_late(struct weir_mail *mail)
{
	struct wire_request request = { .op = WIRE_REGION_CLOSE };

	while (take_late(mail, &request.value)) {
		if (weir_is_no_answer(call(mail, &request, NULL))) {
			put_late(mail, request.value);
			return;
		}
	}
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
	if (!rc)
		close_late(mail);
	mutex_unlock(&mail->mutex);
	weir_session_leave(mail->session);
	return rc;
}
