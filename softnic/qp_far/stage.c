// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/roce/requester.h"
#include "softnic/roce/responder.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "softnic/qp_far/stage.h"

enum { WRITES_MAX = 64 };

static struct {
	uint64_t addr, length, next;
	uint8_t bytes[STAGE_AHEAD_BYTES];
} ahead;

/* Writes to consecutive addresses from @addr on; each with the PSN of its packet. */
static struct {
	struct iovec from[WRITES_MAX];
	uint64_t psns[WRITES_MAX];
	uint32_t count;
	uint64_t addr, bytes;
	bool may_wait; /* those of the packet being dealt with */
	bool are_responses; /* to a read of ours; else they are writes of the peer */
} writes;

void stage_forget(void)
{
	ahead.length = 0;
	ahead.next = 0;
}

static int copy(bool to_memory, uint64_t addr, void *bytes, uint64_t length)
{
	struct iovec here = { bytes, length };
	struct iovec there = { (void *)(uintptr_t)addr, length };

	return copy_bytes(&nic.self, to_memory, &here, 1, &there, 1);
}

static bool has(uint64_t addr, uint32_t bytes)
{
	return addr >= ahead.addr && addr + bytes <= ahead.addr + ahead.length;
}

int stage_read(uint64_t addr, uint32_t bytes, uint64_t available, uint8_t *to)
{
	uint64_t length = available < STAGE_AHEAD_BYTES ? available : STAGE_AHEAD_BYTES;

	ahead.next = addr + bytes;
	if (!has(addr, bytes)) {
		if (length == bytes)
			return copy(false, addr, to, bytes);
		ahead.addr = addr;
		ahead.length = copy(false, addr, ahead.bytes, length) ? 0 : length;
		if (!ahead.length)
			return copy(false, addr, to, bytes);
	}
	memcpy(to, ahead.bytes + (addr - ahead.addr), bytes);
	return 0;
}

bool stage_ends_at(uint64_t addr)
{
	return ahead.next == addr;
}

static void fail(struct qp *qp, uint64_t psn)
{
	if (writes.are_responses)
		roce_requester_fail(&qp->far->roce, ROCE_LOC_PROT); /* the oldest is the read */
	else
		roce_responder_nak(&qp->far->roce, ROCE_NAK_OPERATION, psn);
}

/* Finds the first write that fails, and executes those before it. */
static void refuse_first_bad(struct qp *qp)
{
	uint64_t addr = writes.addr;
	uint32_t i;

	for (i = 0; i < writes.count; i++) {
		if (copy(true, addr, writes.from[i].iov_base, writes.from[i].iov_len)) {
			fail(qp, writes.psns[i]);
			return;
		}
		addr += writes.from[i].iov_len;
	}
}

void stage_flush(struct qp *qp)
{
	struct iovec here[WRITES_MAX], there = { (void *)(uintptr_t)writes.addr, writes.bytes };

	if (!writes.count)
		return;
	memcpy(here, writes.from, sizeof(here));
	if (copy_bytes(&nic.self, true, here, writes.count, &there, 1))
		refuse_first_bad(qp);
	writes.count = 0;
	writes.bytes = 0;
}

/*
 * A write with immediate and the last response to a read end by a completion, so their bytes must
 * be there.
 */
static bool may_wait(uint32_t traits)
{
	if (traits & ROCE_IS_RESPONSE)
		return traits & ROCE_HAS_PAYLOAD && !(traits & ROCE_IS_END);
	return traits & ROCE_IS_WRITE && !(traits & ROCE_HAS_IMM);
}

void stage_begin(struct qp *qp, uint8_t opcode)
{
	uint32_t traits = roce_packet_traits(opcode);
	bool is_response = traits & ROCE_IS_RESPONSE;

	writes.may_wait = may_wait(traits);
	if (!writes.may_wait || writes.count == WRITES_MAX || is_response != writes.are_responses)
		stage_flush(qp);
	writes.are_responses = is_response;
}

/* So the writes that wait belong to one message, and to consecutive addresses. */
void stage_end(struct qp *qp, uint8_t opcode)
{
	if (roce_packet_traits(opcode) & ROCE_IS_END)
		stage_flush(qp);
}

int stage_write(struct qp *qp, uint64_t addr, const uint8_t *from, uint32_t bytes)
{
	if (!writes.may_wait || (writes.count && addr != writes.addr + writes.bytes))
		return copy(true, addr, (void *)from, bytes);
	if (!writes.count)
		writes.addr = addr;
	writes.from[writes.count] = (struct iovec){ (void *)from, bytes };
	writes.psns[writes.count++] = qp->far->roce.resp.expected;
	writes.bytes += bytes;
	return 0;
}
