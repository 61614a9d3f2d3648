/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/conn/address.h"
#include "lib/base/clock.h"
#include "lib/conn/proof.h"
#include "lib/base/error.h"
#include "tests/support/raw_client.h"

#define TIMEOUT_MS 10000
#define BYTES ((RAW_RECVS + 2) * WIRE_CONTROL_MESSAGE_BYTES + RAW_DATA)

enum { WORK_RECV = 1 << 16, WORK_SEND = 2 << 16 };

unsigned int raw_retries = 7;
const char *raw_source;

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) == 1;
}

/* The next event of the connection manager; the refusal of a REJ is kept. */
static int event_wait(struct raw_client *raw, enum rdma_cm_event_type *type, int timeout_ms)
{
	struct wire_handshake_reject reject;
	struct rdma_cm_event *event;

	if (!is_readable(raw->events->fd, timeout_ms))
		return -ETIMEDOUT;
	if (rdma_get_cm_event(raw->events, &event))
		return -errno;
	*type = event->event;
	if (*type == RDMA_CM_EVENT_REJECTED &&
	    !wire_handshake_reject_decode(event->param.conn.private_data,
					  event->param.conn.private_data_len, &reject)) {
		raw->refusal = reject.refusal;
		memcpy(raw->cookie, reject.cookie, sizeof(raw->cookie));
	}
	if (*type == RDMA_CM_EVENT_DISCONNECTED || *type == RDMA_CM_EVENT_REJECTED)
		raw->is_up = false;
	rdma_ack_cm_event(event);
	return 0;
}

static int event_expect(struct raw_client *raw, enum rdma_cm_event_type want)
{
	enum rdma_cm_event_type type;
	int rc = event_wait(raw, &type, TIMEOUT_MS);

	if (rc)
		return rc;
	if (type == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return type == want ? 0 : -EIO;
}

static int recv_post(struct raw_client *raw, unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)raw->recvs + (size_t)i * WIRE_CONTROL_MESSAGE_BYTES,
			       WIRE_CONTROL_MESSAGE_BYTES, raw->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = WORK_RECV | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(raw->id->qp, &wr, &bad);
}

static int verbs_create(struct raw_client *raw)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = RAW_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	unsigned int i;
	int rc = 0;

	raw->recvs = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw->recvs == MAP_FAILED)
		return -ENOMEM;
	raw->send = raw->recvs + (size_t)RAW_RECVS * WIRE_CONTROL_MESSAGE_BYTES;
	raw->data = raw->send + 2 * WIRE_CONTROL_MESSAGE_BYTES;
	raw->pd = ibv_alloc_pd(raw->id->verbs);
	raw->cq = ibv_create_cq(raw->id->verbs, 256, NULL, NULL, 0);
	if (!raw->pd || !raw->cq)
		return -ENOMEM;
	raw->mr = ibv_reg_mr(raw->pd, raw->recvs, BYTES, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = raw->cq;
	if (!raw->mr || rdma_create_qp(raw->id, raw->pd, &init))
		return -errno;
	for (i = 0; !rc && i < RAW_RECVS; i++)
		rc = recv_post(raw, i);
	return rc;
}

static int resolve(struct raw_client *raw, const char *address)
{
	struct addrinfo *to, *from = NULL;
	int rc = weir_address_resolve(address, NULL, &to, NULL);

	if (rc)
		return rc;
	if (raw_source)
		rc = getaddrinfo(raw_source, NULL, NULL, &from) ? -EINVAL : 0;
	if (!rc && rdma_resolve_addr(raw->id, from ? from->ai_addr : NULL, to->ai_addr, TIMEOUT_MS))
		rc = -errno;
	freeaddrinfo(to);
	if (from)
		freeaddrinfo(from);
	return rc;
}

int raw_connect(struct raw_client *raw, const char *address, const void *data, size_t length)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = length,
		.responder_resources = 1,
		.initiator_depth = 4,
		.retry_count = (uint8_t)raw_retries,
		.rnr_retry_count = 7,
	};
	int rc;

	memset(raw, 0, sizeof(*raw));
	raw->events = rdma_create_event_channel();
	if (!raw->events || rdma_create_id(raw->events, &raw->id, raw, RDMA_PS_TCP))
		return -errno;
	rc = resolve(raw, address);
	if (!rc)
		rc = event_expect(raw, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!rc && rdma_resolve_route(raw->id, TIMEOUT_MS))
		rc = -errno;
	if (!rc)
		rc = event_expect(raw, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!rc)
		rc = verbs_create(raw);
	if (!rc && rdma_connect(raw->id, &param))
		rc = -errno;
	if (!rc)
		rc = event_expect(raw, RDMA_CM_EVENT_ESTABLISHED);
	raw->is_up = !rc;
	return rc;
}

int raw_listen(struct raw_client *raw, const char *host, char *address, size_t size)
{
	struct addrinfo *list;
	int rc;

	memset(raw, 0, sizeof(*raw));
	raw->events = rdma_create_event_channel();
	if (!raw->events || rdma_create_id(raw->events, &raw->listener, raw, RDMA_PS_TCP))
		return -errno;
	snprintf(address, size, "%s:0", host);
	rc = weir_address_resolve(address, NULL, &list, NULL);
	if (rc)
		return rc;
	if (rdma_bind_addr(raw->listener, list->ai_addr) || rdma_listen(raw->listener, 1))
		rc = -errno;
	freeaddrinfo(list);
	snprintf(address, size, "%s:%u", host, ntohs(rdma_get_src_port(raw->listener)));
	return rc;
}

/* The id of a REQ. */
static int request_wait(struct raw_client *raw)
{
	struct rdma_cm_event *event;
	int rc = -EIO;

	if (!is_readable(raw->events->fd, TIMEOUT_MS))
		return -ETIMEDOUT;
	if (rdma_get_cm_event(raw->events, &event))
		return -errno;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		raw->id = event->id;
		rc = 0;
	}
	rdma_ack_cm_event(event);
	return rc;
}

int raw_accept(struct raw_client *raw)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 4,
		.rnr_retry_count = 7,
	};
	int rc = request_wait(raw);

	if (!rc)
		rc = verbs_create(raw);
	if (!rc && rdma_accept(raw->id, &param))
		rc = -errno;
	if (!rc)
		rc = event_expect(raw, RDMA_CM_EVENT_ESTABLISHED);
	raw->is_up = !rc;
	return rc;
}

struct wire_handshake_connect raw_request(const struct weir_key *key, uint64_t session_id,
					  uint16_t channel)
{
	return (struct wire_handshake_connect){
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.channel = channel,
		.session_id = session_id,
		.key_id = weir_key_id(key),
	};
}

static void disconnect_notice(struct raw_client *raw)
{
	enum rdma_cm_event_type type;

	while (raw->is_up && is_readable(raw->events->fd, 0))
		event_wait(raw, &type, 0);
}

/* Take a completion. Return: 1 and the send's status for a send; 0; negative. */
static int poll_once(struct raw_client *raw, int *send_status)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(raw->cq, 1, &wc);

	if (n < 0)
		return -EIO;
	if (!n) {
		disconnect_notice(raw);
		poll(NULL, 0, 1);
		return raw->is_up ? 0 : -ECONNRESET;
	}
	if ((wc.wr_id & WORK_SEND) == WORK_SEND) {
		*send_status = weir_error_of_wc(wc.status);
		return 1;
	}
	if (wc.status != IBV_WC_SUCCESS) {
		raw->is_flushed = true;
		return 0;
	}
	raw->arrived[raw->nr_arrived] = wc.wr_id & ~WORK_RECV;
	raw->lengths[raw->nr_arrived++] = wc.byte_len;
	return 0;
}

static int post_wait(struct raw_client *raw, struct ibv_send_wr *wr)
{
	uint64_t deadline_ns = weir_now_ns() + TIMEOUT_MS * WEIR_NS_PER_MS;
	struct ibv_send_wr *bad;
	int rc, status = 0;

	wr->wr_id = WORK_SEND;
	wr->send_flags = IBV_SEND_SIGNALED;
	rc = ibv_post_send(raw->id->qp, wr, &bad);
	if (rc)
		return -rc;
	do {
		rc = poll_once(raw, &status);
	} while (!rc && weir_now_ns() < deadline_ns);
	if (!rc)
		return -ETIMEDOUT;
	return rc < 0 ? rc : status;
}

int raw_send(struct raw_client *raw, const void *data, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)raw->send, length, raw->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	memcpy(raw->send, data, length);
	return post_wait(raw, &wr);
}

int raw_receive(struct raw_client *raw, void *data, size_t *length, int timeout_ms)
{
	uint64_t deadline_ns = weir_now_ns() + timeout_ms * WEIR_NS_PER_MS;
	unsigned int i;
	int rc, status;

	while (!raw->nr_arrived) {
		if (weir_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		rc = poll_once(raw, &status);
		if (!rc && raw->is_flushed)
			rc = -ECONNRESET;
		if (rc < 0 && !raw->nr_arrived)
			return rc;
	}
	i = raw->arrived[0];
	*length = raw->lengths[0];
	memcpy(data, raw->recvs + (size_t)i * WIRE_CONTROL_MESSAGE_BYTES, *length);
	raw->nr_arrived--;
	memmove(raw->arrived, raw->arrived + 1, raw->nr_arrived * sizeof(raw->arrived[0]));
	memmove(raw->lengths, raw->lengths + 1, raw->nr_arrived * sizeof(raw->lengths[0]));
	recv_post(raw, i);
	return 0;
}

int raw_prove(struct raw_client *raw, const struct weir_key *key, uint64_t session_id,
	      uint16_t channel)
{
	struct weir_handshake_setup setup = {
		.key = key,
		.service.magic = WIRE_MAGIC,
		.session_id = session_id,
		.channel = channel,
		.credits = RAW_CREDITS,
	};
	uint8_t in[WIRE_CONTROL_MESSAGE_BYTES], out[WIRE_HANDSHAKE_MAX];
	size_t in_length, out_length;
	int rc;

	rc = weir_proof_setup(raw->id, true, &setup);
	if (rc)
		return rc;
	memcpy(setup.mux, raw->mux, sizeof(setup.mux));
	weir_handshake_client(&raw->handshake, &setup, out, &out_length);
	while (raw->handshake.state != WEIR_HANDSHAKE_DONE) {
		rc = raw_send(raw, out, out_length);
		if (!rc)
			rc = raw_receive(raw, in, &in_length, TIMEOUT_MS);
		if (!rc)
			rc = weir_handshake_input(&raw->handshake, in, in_length, out, &out_length);
		if (rc)
			return rc;
	}
	return weir_credit_init(&raw->credit, RAW_CREDITS, raw->handshake.welcome.credits);
}

int raw_open_channel(struct raw_client *raw, const char *address, const struct weir_key *key,
		     uint64_t session_id, uint16_t channel)
{
	struct wire_handshake_connect connect = raw_request(key, session_id, channel);
	int rc = raw_connect(raw, address, &connect, sizeof(connect));

	return rc ? rc : raw_prove(raw, key, session_id, channel);
}

int raw_open(struct raw_client *raw, const char *address, const struct weir_key *key)
{
	return raw_open_channel(raw, address, key, 0, 0);
}

int raw_message(struct raw_client *raw, enum wire_control_kind kind, uint64_t tag, const void *body,
		size_t length)
{
	struct wire_control_head head = { .kind = kind, .tag = tag, .length = length };
	char message[WIRE_CONTROL_MESSAGE_BYTES];

	if (kind != WIRE_CONTROL_CREDIT && !weir_credit_has_room(&raw->credit))
		return -EAGAIN;
	head.credits = weir_credit_spend(&raw->credit);
	memcpy(message, &head, sizeof(head));
	if (length)
		memcpy(message + sizeof(head), body, length);
	return raw_send(raw, message, sizeof(head) + length);
}

int raw_answer(struct raw_client *raw, struct wire_control_head *head, void *body, int timeout_ms)
{
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	const void *at;
	size_t length;
	int rc;

	do {
		rc = raw_receive(raw, message, &length, timeout_ms);
		if (!rc)
			rc = wire_control_decode(message, length, head, &at);
		if (!rc)
			rc = weir_credit_received(&raw->credit, head->credits);
		if (!rc && weir_credit_is_due(&raw->credit))
			rc = raw_message(raw, WIRE_CONTROL_CREDIT, 0, NULL, 0);
		if (rc)
			return rc;
	} while (head->kind == WIRE_CONTROL_CREDIT);
	memcpy(body, at, head->length);
	return 0;
}

int raw_call(struct raw_client *raw, struct wire_control_request request, const char *name,
	     void *body, size_t *length)
{
	char call[sizeof(request) + WIRE_CONTROL_NAME_MAX];
	int n = wire_control_request_encode(&request, name, call), rc;
	struct wire_control_head head;

	if (n < 0)
		return n;
	rc = raw_message(raw, WIRE_CONTROL_CALL, ++raw->tags, call, n);
	if (!rc)
		rc = raw_answer(raw, &head, body, TIMEOUT_MS);
	if (rc)
		return rc;
	if (head.kind != WIRE_CONTROL_REPLY || head.tag != (uint64_t)raw->tags)
		return -EPROTO;
	*length = head.length;
	return head.status;
}

static int region_call(struct raw_client *raw, struct wire_control_request request,
		       const char *name, struct wire_control_region *region)
{
	char body[WIRE_CONTROL_BODY_MAX];
	size_t length;
	int rc = raw_call(raw, request, name, body, &length);

	if (rc || !region)
		return rc;
	return wire_control_region_decode(body, length, region);
}

int raw_create(struct raw_client *raw, const char *name, uint64_t length, uint32_t flags,
	       struct wire_control_region *region)
{
	const struct wire_control_request request = {
		.op = WIRE_REGION_CREATE,
		.flags = flags,
		.value = length,
	};

	return region_call(raw, request, name, region);
}

int raw_region_open(struct raw_client *raw, const char *name, uint32_t flags,
		    struct wire_control_region *region)
{
	return region_call(raw,
			   (struct wire_control_request){ .op = WIRE_REGION_OPEN, .flags = flags },
			   name, region);
}

int raw_region_open_fenced(struct raw_client *raw, const char *name, uint64_t epoch,
			   struct wire_control_region *region)
{
	return region_call(raw,
			   (struct wire_control_request){ .op = WIRE_REGION_OPEN,
							  .flags = WIRE_REGION_FENCED |
								   WIRE_REGION_EXCLUSIVE,
							  .value = epoch },
			   name, region);
}

int raw_region_close(struct raw_client *raw, uint64_t hold)
{
	return region_call(raw,
			   (struct wire_control_request){ .op = WIRE_REGION_CLOSE, .value = hold },
			   NULL, NULL);
}

int raw_region_delete(struct raw_client *raw, const char *name)
{
	return region_call(raw, (struct wire_control_request){ .op = WIRE_REGION_DELETE }, name,
			   NULL);
}

static int rdma(struct raw_client *raw, enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey,
		uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)raw->data, length, raw->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	};

	return post_wait(raw, &wr);
}

int raw_write(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint32_t length)
{
	return rdma(raw, IBV_WR_RDMA_WRITE, remote, rkey, length);
}

int raw_read(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint32_t length)
{
	return rdma(raw, IBV_WR_RDMA_READ, remote, rkey, length);
}

int raw_write_imm(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint32_t length)
{
	return rdma(raw, IBV_WR_RDMA_WRITE_WITH_IMM, remote, rkey, length);
}

int raw_add(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint64_t add)
{
	struct ibv_sge sge = { (uintptr_t)raw->data, sizeof(add), raw->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.atomic = { .remote_addr = remote, .rkey = rkey, .compare_add = add },
	};

	return post_wait(raw, &wr);
}

void raw_vanish(struct raw_client *raw)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ibv_modify_qp(raw->id->qp, &attr, IBV_QP_STATE);
}

bool raw_is_cut_off(struct raw_client *raw, int timeout_ms)
{
	enum rdma_cm_event_type type;

	while (raw->is_up)
		if (event_wait(raw, &type, timeout_ms))
			return false;
	return true;
}

void raw_close(struct raw_client *raw)
{
	if (!raw->id && !raw->listener)
		return;
	if (raw->is_up)
		rdma_disconnect(raw->id);
	if (raw->id && raw->id->qp)
		rdma_destroy_qp(raw->id);
	if (raw->cq)
		ibv_destroy_cq(raw->cq);
	if (raw->mr)
		ibv_dereg_mr(raw->mr);
	if (raw->pd)
		ibv_dealloc_pd(raw->pd);
	if (raw->id)
		rdma_destroy_id(raw->id);
	if (raw->listener)
		rdma_destroy_id(raw->listener);
	rdma_destroy_event_channel(raw->events);
	if (raw->recvs)
		munmap(raw->recvs, BYTES);
	memset(raw, 0, sizeof(*raw));
}
