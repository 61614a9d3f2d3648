// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A stranger who guesses queue pair and PSNs sends arbitrary packets to a queue pair of each kind.
 * The queue pair stays within memory, rights and receives, whatever comes, and its own packets
 * are well-formed. After a failure each work request has ended.
 *
 * The input is a sequence of records of RECORD bytes: the traits of a packet, or an event.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/roce/icrc.h"
#include "softnic/roce/psn.h"
#include "softnic/roce/qp.h"

enum {
	RECORD = 8,
	WQES = 8,
	DEPTH = 3,
	ROOM = 600,
	MEMORY = 2048,
	RKEY = 1,
	OUTPUTS_MAX = 64,
	SHORT_MAX = 64, /* longer than all headers */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct roce_flow flow = { .src_port = 4791, .dst_port = 4791 };

static struct {
	struct roce_qp qp;
	struct roce_wqe wqes[WQES];
	struct roce_resource resources[DEPTH];
	uint8_t memory[MEMORY];
	uint32_t receives, taken, posted, ended;
	uint64_t write_addr, write_bytes; /* the last write that was checked as a whole */
	uint64_t now_ns;
} end;

static enum roce_status is_within(uint32_t rkey, uint64_t addr, uint32_t bytes)
{
	return !bytes || (rkey == RKEY && addr <= MEMORY && bytes <= MEMORY - addr) ?
		       ROCE_SUCCESS :
		       ROCE_REM_ACCESS;
}

static enum roce_status check(void *host, uint32_t rkey, enum roce_right right, uint64_t addr,
			      uint32_t bytes)
{
	(void)host;
	assert(bytes <= ROCE_MESSAGE_MAX);
	if (right == ROCE_RIGHT_WRITE) {
		end.write_addr = addr;
		end.write_bytes = bytes;
	}
	return is_within(rkey, addr, bytes);
}

static enum roce_status read_memory(void *host, uint32_t rkey, uint64_t addr, uint8_t *to,
				    uint32_t bytes)
{
	if (check(host, rkey, ROCE_RIGHT_READ, addr, bytes))
		return ROCE_REM_ACCESS;
	memcpy(to, end.memory + addr, bytes);
	return ROCE_SUCCESS;
}

static enum roce_status write_memory(void *host, uint32_t rkey, uint64_t addr, const uint8_t *from,
				     uint32_t bytes)
{
	(void)host;
	assert(addr >= end.write_addr && bytes <= end.write_bytes &&
	       addr - end.write_addr <= end.write_bytes - bytes);
	if (is_within(rkey, addr, bytes))
		return ROCE_REM_ACCESS;
	memcpy(end.memory + addr, from, bytes);
	return ROCE_SUCCESS;
}

static enum roce_status execute_atomic(void *host, const struct roce_packet *p, uint64_t *original)
{
	if (check(host, p->rkey, ROCE_RIGHT_ATOMIC, p->addr, sizeof(*original)))
		return ROCE_REM_ACCESS;
	assert(p->addr % sizeof(*original) == 0);
	memcpy(original, end.memory + p->addr, sizeof(*original));
	return ROCE_SUCCESS;
}

static enum roce_status gather(void *host, const struct roce_wqe *wqe, uint32_t offset,
			       uint32_t bytes, uint8_t *to)
{
	(void)host;
	assert(bytes <= wqe->length && offset <= wqe->length - bytes);
	memset(to, 'x', bytes);
	return wqe->id % 13 == 12 ? ROCE_LOC_PROT : ROCE_SUCCESS;
}

static enum roce_status scatter(void *host, const struct roce_wqe *wqe, uint32_t offset,
				const uint8_t *from, uint32_t bytes)
{
	(void)host;
	assert(bytes <= wqe->length && offset <= wqe->length - bytes);
	assert(wqe->op >= ROCE_OP_READ && bytes <= ROCE_PAYLOAD_MAX);
	memcpy(end.memory, from, bytes < MEMORY ? bytes : MEMORY);
	return ROCE_SUCCESS;
}

static int64_t take(void *host)
{
	(void)host;
	assert(!end.taken);
	if (!end.receives)
		return -EAGAIN;
	end.receives--;
	end.taken = 1;
	return ROOM;
}

static enum roce_status place(void *host, uint64_t offset, const uint8_t *from, uint32_t bytes)
{
	(void)host;
	assert(end.taken && bytes <= ROOM && offset <= ROOM - bytes);
	memcpy(end.memory + offset, from, bytes);
	return ROCE_SUCCESS;
}

static void finish(void *host, const struct roce_arrival *arrival)
{
	(void)host;
	assert(end.taken && (arrival->is_write || arrival->bytes <= ROOM));
	end.taken = 0;
}

static void give_back(void *host)
{
	(void)host;
	assert(end.taken);
	end.taken = 0;
	end.receives++;
}

static int64_t receives(void *host)
{
	(void)host;
	return end.receives;
}

static enum roce_status invalidate(void *host, uint32_t key)
{
	(void)host;
	return key % 2 ? ROCE_SUCCESS : ROCE_REM_ACCESS;
}

static const struct roce_ops ops = {
	gather, scatter, check,	 read_memory, write_memory, execute_atomic,
	take,	place,	 finish, give_back,   receives,	    invalidate,
};

static void start(enum roce_transport transport)
{
	const struct roce_config config = {
		.ops = &ops,
		.wqes = end.wqes,
		.resources = end.resources,
		.transport = transport,
		.send_size = WQES,
		.qpn = 17,
		.dest_qpn = 18,
		.send_psn = 0xfffffd,
		.receive_psn = 0xfffffc,
		.mtu = ROCE_MTU_MIN,
		.window = 16,
		.read_packets = 4,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = DEPTH,
		.timeout = 1,
		.retries = 7,
		.rnr_retries = 6,
		.rnr_timer = 1,
		.qkey = 5,
	};

	memset(&end, 0, sizeof(end));
	roce_qp_init(&end.qp, &config);
}

static void post(const uint8_t *record)
{
	struct roce_wqe wqe = {
		.id = end.posted,
		.op = record[1] % (ROCE_OP_ATOMIC_WRITE + 2),
		.length = record[2] * 5,
		.is_fenced = record[3] & 1,
		.addr = record[4],
	};

	if (wqe.op > ROCE_OP_READ)
		wqe.length = sizeof(uint64_t);
	end.posted += !roce_qp_post(&end.qp, &wqe);
}

/* Near the PSNs that count, with fields that are often valid. */
static void input(const uint8_t *record)
{
	static const uint8_t grh[ROCE_GRH_BYTES];
	uint8_t bytes[ROCE_PACKET_MAX] = { 0 };
	uint8_t opcode = end.qp.config.transport | (record[0] & ~ROCE_TRANSPORT_MASK);
	uint32_t traits = roce_packet_traits(opcode);
	bool is_response = traits & ROCE_IS_RESPONSE;
	struct roce_packet p = {
		.opcode = opcode,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = 17,
		.psn = roce_psn_wire((is_response ? end.qp.req.acked : end.qp.resp.expected) +
				     record[1] % 8 - 2),
		.wants_ack = record[2] & 1,
		.rkey = record[2] % 16 ? RKEY : 2,
		.addr = record[3] * 9u,
		.dma_bytes = record[4] == 255 ? UINT32_MAX : record[4] * 3,
		.syndrome = record[5],
		.msn = record[6],
		.qkey = 5,
		.imm = record[6],
		.payload_bytes = record[7] & 1 ? ROCE_MTU_MIN : record[7] * 3,
	};
	size_t size;

	if (!traits)
		return;
	if (!(traits & ROCE_HAS_PAYLOAD))
		p.payload_bytes = 0;
	size = roce_packet_encode(&p, bytes) + p.payload_bytes;
	size += roce_packet_pad(bytes + size, p.payload_bytes);
	size = roce_icrc_append(&flow, bytes, size);
	assert(!roce_packet_decode(&p, bytes, size));
	roce_qp_input(&end.qp, &p, grh, end.now_ns);
}

/* A message of several packets in order, which may be longer than its receive or its length. */
static void input_message(const uint8_t *record)
{
	const bool is_write = record[1] & 1;
	uint8_t packet[RECORD];
	int i, last = 1 + record[1] / 2 % 5;

	memcpy(packet, record, RECORD);
	packet[1] = 2; /* the expected PSN */
	packet[7] = 1; /* as long as the MTU */
	for (i = 0; i <= last; i++) {
		packet[0] = is_write ? i == 0	 ? ROCE_WRITE_FIRST :
				       i == last ? ROCE_WRITE_LAST :
						   ROCE_WRITE_MIDDLE :
			    i == 0	 ? ROCE_SEND_FIRST :
			    i == last	 ? ROCE_SEND_LAST :
					   ROCE_SEND_MIDDLE;
		input(packet);
	}
}

/* Packets that end early, at the end of an allocation. */
static void decode_short(const uint8_t *data, size_t size)
{
	struct roce_packet p;
	uint8_t *bytes;
	size_t n;

	for (n = 0; n <= size && n <= SHORT_MAX; n++) {
		bytes = malloc(n + 1); /* not 0 bytes */
		memcpy(bytes + 1, data, n);
		if (n > 1)
			bytes[2] &= 0xf0; /* the version */
		if (!roce_packet_decode(&p, bytes + 1, n))
			assert(p.payload_bytes <= n);
		free(bytes);
	}
}

static void drain(void)
{
	uint8_t bytes[ROCE_PACKET_MAX];
	struct roce_completion c;
	struct roce_packet p;
	uint64_t path;
	size_t size;
	int i;

	for (i = 0; i < OUTPUTS_MAX; i++) {
		size = roce_qp_output(&end.qp, bytes, &path, end.now_ns);
		if (!size)
			break;
		size = roce_icrc_append(&flow, bytes, size);
		assert(size <= sizeof(bytes) && !roce_packet_decode(&p, bytes, size));
	}
	while (roce_qp_completion(&end.qp, &c))
		assert(c.wqe.id == end.ended++);
}

static void play(const uint8_t *data, size_t size)
{
	struct roce_packet p;

	for (; size >= RECORD; data += RECORD, size -= RECORD) {
		switch (data[0] >> 5) {
		case 0:
			post(data);
			break;
		case 1:
			end.receives += data[1] % 4;
			break;
		case 2:
			end.now_ns += data[1] * 100u;
			roce_qp_expired(&end.qp, end.now_ns);
			break;
		case 3:
			if (!roce_packet_decode(&p, data, size))
				roce_qp_input(&end.qp, &p, end.memory, end.now_ns);
			break;
		case 4:
			end.receives++;
			input_message(data);
			break;
		default:
			input(data);
		}
		drain();
	}
	roce_qp_fail(&end.qp);
	drain();
	assert(end.ended == end.posted && !end.taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum roce_transport transports[] = { ROCE_RC, ROCE_UC, ROCE_UD };
	int i;

	decode_short(data, size);
	for (i = 0; i < 3; i++) {
		start(transports[i]);
		play(data, size);
	}
	return 0;
}
