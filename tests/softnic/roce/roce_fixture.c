// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>

#include "roce_fixture.h"

struct roce_host a, b;

static enum roce_status gather(void *host, const struct roce_wqe *wqe, uint32_t offset,
			       uint32_t bytes, uint8_t *to)
{
	struct roce_host *h = host;

	if (wqe->id == UINT64_MAX)
		return ROCE_LOC_PROT;
	memcpy(to, h->local + offset, bytes);
	return ROCE_SUCCESS;
}

static enum roce_status scatter(void *host, const struct roce_wqe *wqe, uint32_t offset,
				const uint8_t *from, uint32_t bytes)
{
	struct roce_host *h = host;

	(void)wqe;
	memcpy(h->local + offset, from, bytes);
	return ROCE_SUCCESS;
}

static enum roce_status check(void *host, uint32_t rkey, enum roce_right right, uint64_t addr,
			      uint32_t bytes)
{
	struct roce_host *h = host;

	if (h->revoked || !(h->rights >> right & 1))
		return ROCE_REM_ACCESS;
	return !bytes || (rkey == FIXTURE_RKEY && addr + bytes <= sizeof(h->memory)) ?
		       ROCE_SUCCESS :
		       ROCE_REM_ACCESS;
}

static enum roce_status read_memory(void *host, uint32_t rkey, uint64_t addr, uint8_t *to,
				    uint32_t bytes)
{
	struct roce_host *h = host;

	if (check(host, rkey, ROCE_RIGHT_READ, addr, bytes))
		return ROCE_REM_ACCESS;
	memcpy(to, h->memory + addr, bytes);
	return ROCE_SUCCESS;
}

static enum roce_status write_memory(void *host, uint32_t rkey, uint64_t addr, const uint8_t *from,
				     uint32_t bytes)
{
	struct roce_host *h = host;

	if (check(host, rkey, ROCE_RIGHT_WRITE, addr, bytes))
		return ROCE_REM_ACCESS;
	memcpy(h->memory + addr, from, bytes);
	h->writes++;
	return ROCE_SUCCESS;
}

static enum roce_status execute_atomic(void *host, const struct roce_packet *p, uint64_t *original)
{
	struct roce_host *h = host;
	uint64_t value;

	if (check(host, p->rkey,
		  p->opcode == ROCE_ATOMIC_WRITE ? ROCE_RIGHT_WRITE : ROCE_RIGHT_ATOMIC, p->addr,
		  sizeof(value)))
		return ROCE_REM_ACCESS;
	memcpy(original, h->memory + p->addr, sizeof(*original));
	if (p->opcode == ROCE_ATOMIC_WRITE) {
		memcpy(h->memory + p->addr, p->payload, sizeof(value));
		h->writes++;
		return ROCE_SUCCESS;
	}
	value = p->opcode == ROCE_FETCH_ADD ? *original + p->swap_add :
		*original == p->compare	    ? p->swap_add :
					      *original;
	memcpy(h->memory + p->addr, &value, sizeof(value));
	return ROCE_SUCCESS;
}

static int64_t take(void *host)
{
	struct roce_host *h = host;

	assert_false(h->is_taken);
	if (!h->receives)
		return -EAGAIN;
	h->receives--;
	h->is_taken = true;
	return h->room;
}

static enum roce_status place(void *host, uint64_t offset, const uint8_t *from, uint32_t bytes)
{
	struct roce_host *h = host;

	assert_true(h->is_taken);
	if (h->unmapped)
		return ROCE_LOC_PROT;
	memcpy(h->receive + offset, from, bytes);
	return ROCE_SUCCESS;
}

static void finish(void *host, const struct roce_arrival *arrival)
{
	struct roce_host *h = host;

	assert_true(h->is_taken && h->num_arrivals < FIXTURE_ARRIVALS);
	h->is_taken = false;
	h->arrivals[h->num_arrivals++] = *arrival;
}

static void give_back(void *host)
{
	struct roce_host *h = host;

	assert_true(h->is_taken);
	h->is_taken = false;
	h->receives++;
	h->given_back++;
}

static int64_t receives(void *host)
{
	struct roce_host *h = host;

	return h->hides_receives ? ROCE_RECEIVES_UNKNOWN : (int64_t)h->receives;
}

static enum roce_status invalidate(void *host, uint32_t key)
{
	struct roce_host *h = host;

	h->invalidated = key;
	return key == FIXTURE_RKEY ? ROCE_SUCCESS : ROCE_REM_ACCESS;
}

static const struct roce_ops ops = {
	.gather = gather,
	.scatter = scatter,
	.check = check,
	.read = read_memory,
	.write = write_memory,
	.atomic = execute_atomic,
	.take = take,
	.place = place,
	.finish = finish,
	.give_back = give_back,
	.receives = receives,
	.invalidate = invalidate,
};

static void start(struct roce_host *h, enum roce_transport transport, uint32_t qpn,
		  uint32_t dest_qpn, uint32_t send_psn, uint32_t receive_psn)
{
	const struct roce_config config = {
		.ops = &ops,
		.host = h,
		.wqes = h->wqes,
		.resources = h->resources,
		.transport = transport,
		.send_size = FIXTURE_WQES,
		.qpn = qpn,
		.dest_qpn = dest_qpn,
		.send_psn = send_psn,
		.receive_psn = receive_psn,
		.mtu = FIXTURE_MTU,
		.window = 64,
		.read_packets = FIXTURE_READ_PACKETS,
		.max_rd_atomic = FIXTURE_DEPTH,
		.max_dest_rd_atomic = FIXTURE_DEPTH,
		.timeout = FIXTURE_TIMEOUT,
		.retries = 2,
		.rnr_retries = 1,
		.rnr_timer = FIXTURE_RNR_TIMER,
		.qkey = 0x1ee7,
	};
	uint32_t i;

	memset(h, 0, sizeof(*h));
	for (i = 0; i < sizeof(h->memory); i++) {
		h->local[i] = (uint8_t)(i * 7 + (i >> 8));
		h->memory[i] = (uint8_t)(i * 11 + (i >> 8) + qpn);
	}
	h->room = FIXTURE_BYTES;
	h->now_ns = 1;
	h->hides_receives = true;
	h->rights = 1 << ROCE_RIGHT_WRITE | 1 << ROCE_RIGHT_READ | 1 << ROCE_RIGHT_ATOMIC;
	roce_qp_init(&h->qp, &config);
}

void roce_setup(enum roce_transport transport)
{
	start(&a, transport, 10, 20, FIXTURE_PSN, 5);
	start(&b, transport, 20, 10, 5, FIXTURE_PSN);
}

void roce_post(struct roce_host *host, enum roce_op op, uint32_t length)
{
	const struct roce_wqe wqe = {
		.op = op,
		.length = length,
		.rkey = FIXTURE_RKEY,
		.imm = op == ROCE_OP_SEND_INV ? FIXTURE_RKEY : 0x01020304,
		.swap_add = 3,
		.dest_qpn = 20,
		.qkey = 0x1ee7,
		.path = 99,
	};

	assert_int_equal(roce_qp_post(&host->qp, &wqe), 0);
}

bool roce_sent(struct roce_host *host, struct roce_sent *sent)
{
	static const struct roce_flow flow;
	uint64_t path;
	size_t size = roce_qp_output(&host->qp, sent->bytes, &path, host->now_ns);

	if (!size)
		return false;
	size = roce_icrc_append(&flow, sent->bytes, size);
	assert_int_equal(roce_packet_decode(&sent->p, sent->bytes, size), ROCE_ACCEPTED);
	return true;
}

void roce_expect(struct roce_host *host, uint8_t opcode, struct roce_sent *sent)
{
	assert_true(roce_sent(host, sent));
	assert_int_equal(sent->p.opcode, opcode);
}

void roce_expect_silence(struct roce_host *host)
{
	struct roce_sent sent;

	assert_false(roce_sent(host, &sent));
}

void roce_deliver(struct roce_host *to, const struct roce_sent *sent)
{
	static const uint8_t grh[ROCE_GRH_BYTES] = { [39] = 0xfe };

	roce_qp_input(&to->qp, &sent->p, grh, to->now_ns);
}

void roce_settle(void)
{
	struct roce_sent sent;
	bool moved = true;

	while (moved) {
		moved = false;
		while (roce_sent(&a, &sent)) {
			roce_deliver(&b, &sent);
			moved = true;
		}
		while (roce_sent(&b, &sent)) {
			roce_deliver(&a, &sent);
			moved = true;
		}
	}
}

void roce_wait(struct roce_host *host, uint64_t ns)
{
	host->now_ns += ns;
	roce_qp_expired(&host->qp, host->now_ns);
}

void roce_expect_completion(struct roce_host *host, enum roce_status status)
{
	struct roce_completion c;

	assert_true(roce_qp_completion(&host->qp, &c));
	assert_int_equal(c.status, status);
}

void roce_expect_no_completion(struct roce_host *host)
{
	struct roce_completion c;

	assert_false(roce_qp_completion(&host->qp, &c));
}
