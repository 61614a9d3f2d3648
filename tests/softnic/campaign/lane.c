// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A worker posts operations on lanes and checks each completion. The completion must belong to
 * the next operation in flight on the queue pair. The status must be possible under the faults,
 * and a read must return the bytes written before.
 */
#include <arpa/inet.h>

#include "worker.h"

enum { WCS_MAX = 8 };

static enum op_kind think_of_kind(struct campaign_connection *c)
{
	static const uint32_t kinds[TRANSPORTS] = {
		[RC] = KINDS, [UC] = KINDS_UC, [UD] = KINDS_UD
	};

	return random_below(&c->random, kinds[c->transport]);
}

/* Small lengths are more frequent. A message begins with its index. */
static uint32_t think_of_length(struct campaign_connection *c, enum op_kind kind)
{
	uint32_t most = random_below(&c->random, 8) ? 2048 : ZONE - COUNTER_BYTES, length;

	if (!random_below(&c->random, 4))
		most = INLINE_MAX;
	length = 1 + random_below(&c->random, most);
	if (kind_writes(kind) || kind == KIND_READ)
		return length;
	if (kind == KIND_ADD || kind == KIND_SWAP)
		return sizeof(uint64_t);
	return length > MESSAGE_MAX	 ? MESSAGE_MAX :
	       length < sizeof(uint32_t) ? sizeof(uint32_t) :
					   length;
}

static void think_of(struct campaign_connection *c, struct campaign_op *op)
{
	op->kind = think_of_kind(c);
	op->fill = weir_rng_next(&c->random);
	op->length = think_of_length(c, op->kind);
	op->offset =
		COUNTER_BYTES + random_below(&c->random, ZONE - COUNTER_BYTES - op->length + 1);
	op->is_inline = random_below(&c->random, 2) && op->length <= INLINE_MAX &&
			(kind_writes(op->kind) || kind_is_received(op->kind));
	if (op->kind == KIND_ADD)
		op->offset = 0;
	if (op->kind == KIND_SWAP)
		op->offset = SWAP_AT;
}

static void expect(struct campaign_connection *c, uint32_t index, const void *bytes,
		   uint32_t length)
{
	c->expected[index] = malloc(length);
	memcpy(c->expected[index], bytes, length);
}

/* Fill the data to send, and update the model of the target's memory. */
static void prepare(struct campaign_connection *c, const struct campaign_op *op, uint32_t index,
		    uint8_t *here)
{
	uint32_t k;

	for (k = 0; k < op->length; k++)
		here[k] = op_byte(op, k);
	if (kind_is_received(op->kind) && !kind_writes(op->kind))
		memcpy(here, &index, sizeof(index));
	if (kind_writes(op->kind))
		memcpy(c->model + op->offset, here, op->length);
	c->expected[index] = NULL;
	if (op->kind == KIND_READ)
		expect(c, index, c->model + op->offset, op->length);
	if (op->kind == KIND_ADD)
		expect(c, index, &c->adds, sizeof(c->adds));
	if (op->kind == KIND_SWAP)
		expect(c, index, &c->swaps, sizeof(c->swaps));
}

/* The wr_id of each operation is its place in the log. */
static void address(struct campaign_worker *me, uint32_t target, const struct campaign_op *op,
		    struct ibv_send_wr *wr)
{
	uint64_t there = me->w->addrs[target] + (size_t)me->self * ZONE + op->offset;
	uint32_t rkey = me->w->rkeys[target];
	struct campaign_connection *c = &me->to[target];

	wr->imm_data = htonl(wr->wr_id);
	if (c->transport == UD) {
		wr->wr.ud.ah = c->ah;
		wr->wr.ud.remote_qpn = me->w->lanes[target][me->self].qpn;
		wr->wr.ud.remote_qkey = QKEY;
	} else if (op->kind == KIND_ADD || op->kind == KIND_SWAP) {
		wr->wr.atomic.remote_addr = there;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = op->kind == KIND_ADD ? 1 : c->swaps;
		wr->wr.atomic.swap = c->swaps + 1;
	} else {
		wr->wr.rdma.remote_addr = there;
		wr->wr.rdma.rkey = rkey;
	}
}

void post_next(struct campaign_worker *me, uint32_t target)
{
	static const enum ibv_wr_opcode opcodes[KINDS] = {
		[KIND_SEND] = IBV_WR_SEND,
		[KIND_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[KIND_WRITE] = IBV_WR_RDMA_WRITE,
		[KIND_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[KIND_READ] = IBV_WR_RDMA_READ,
		[KIND_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[KIND_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct campaign_connection *c = &me->to[target];
	uint32_t index = c->num_posted++;
	struct campaign_op *op = &me->w->lanes[me->self][target].ops[index];
	uint8_t *here = c->here + (size_t)index * ZONE;
	struct ibv_sge sge = { (uintptr_t)here, 0, me->here_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;

	think_of(c, op);
	prepare(c, op, index, here);
	sge.length = op->length;
	wr.opcode = opcodes[op->kind];
	wr.send_flags = op->is_inline ? IBV_SEND_INLINE : 0;
	address(me, target, op, &wr);
	c->adds += op->kind == KIND_ADD;
	c->swaps += op->kind == KIND_SWAP;
	__atomic_store_n(&op->state, OP_POSTED, __ATOMIC_RELEASE);
	require(!ibv_post_send(c->qp, &wr, &bad), "cannot post %u to %u", index, target);
	if (op->is_inline)
		memset(here, 0xee, op->length);
}

/* Without acknowledgements only the worker's own device can fail an operation. */
static bool is_excusable(enum campaign_transport transport, enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR ||
	       (transport == RC &&
		(status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR));
}

static void end_op(struct campaign_worker *me, uint32_t target, const struct ibv_wc *wc)
{
	struct campaign_connection *c = &me->to[target];
	struct campaign_op *op = &me->w->lanes[me->self][target].ops[wc->wr_id];

	require(wc->wr_id == c->num_ended && op->state == OP_POSTED,
		"to %u: operation %u ended, %u was next", target, (unsigned int)wc->wr_id,
		c->num_ended);
	c->num_ended++;
	if (wc->status != IBV_WC_SUCCESS) {
		require(is_excusable(c->transport, wc->status), "to %u: operation %u: status %d",
			target, (unsigned int)wc->wr_id, wc->status);
		require(!c->failed || wc->status == IBV_WC_WR_FLUSH_ERR,
			"to %u: a second failure, status %d", target, wc->status);
		op->state = wc->status == IBV_WC_WR_FLUSH_ERR ? OP_FLUSHED : OP_FAILED;
		c->failed = true;
	} else {
		require(!c->failed, "to %u: success after a failure", target);
		require(!c->expected[wc->wr_id] || !memcmp(c->here + wc->wr_id * ZONE,
							   c->expected[wc->wr_id], op->length),
			"to %u: operation %u found something else", target,
			(unsigned int)wc->wr_id);
		op->state = OP_DONE;
	}
	free(c->expected[wc->wr_id]);
}

/* The index of the source's operation, from the immediate or from the message itself. */
static uint32_t index_of(const struct ibv_wc *wc, const uint8_t *bytes)
{
	uint32_t index;

	if (wc->wc_flags & IBV_WC_WITH_IMM)
		return ntohl(wc->imm_data);
	memcpy(&index, bytes, sizeof(index));
	return index;
}

static void check_message(struct campaign_worker *me, uint32_t source, const struct ibv_wc *wc,
			  const uint8_t *bytes)
{
	struct campaign_connection *c = &me->to[source];
	uint32_t index, k, front = c->transport == UD ? GRH : 0;
	const struct campaign_op *op;
	enum op_kind kind;

	bytes += front;
	index = index_of(wc, bytes);
	require(index < OPS_MAX && index >= c->last_received, "from %u: message %u after %u",
		source, index, c->last_received);
	op = &me->w->lanes[source][me->self].ops[index];
	kind = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? KIND_WRITE_IMM :
	       wc->wc_flags & IBV_WC_WITH_IMM	       ? KIND_SEND_IMM :
							 KIND_SEND;
	require(op->kind == kind, "from %u: %u is of another kind", source, index);
	require(wc->byte_len == front + op->length, "from %u: %u bytes, not %u", source,
		wc->byte_len, front + op->length);
	for (k = sizeof(index); kind != KIND_WRITE_IMM && k < op->length; k++)
		require(bytes[k] == op_byte(op, k), "from %u: byte %u of message %u", source, k,
			index);
	c->last_received = index + 1;
	me->w->lanes[source][me->self].received++;
}

static void end_receive(struct campaign_worker *me, uint32_t source, const struct ibv_wc *wc)
{
	uint32_t i = (uint32_t)wc->wr_id;
	const uint8_t *bytes = take_receive(me, source, i);

	require(wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_WR_FLUSH_ERR,
		"from %u: receive: status %d", source, wc->status);
	if (wc->status == IBV_WC_SUCCESS)
		check_message(me, source, wc, bytes);
	if (wc->status == IBV_WC_SUCCESS || shares_receives(me, source))
		post_receive(me, source, i);
}

static uint32_t whose(struct campaign_worker *me, uint32_t qpn)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (me->to[t].qp && me->to[t].qp->qp_num == qpn)
			return t;
	require(false, "a completion of nobody's");
	return 0;
}

int take_completions(struct campaign_worker *me)
{
	struct ibv_wc wcs[WCS_MAX];
	int i, n = ibv_poll_cq(me->cq, 1 + random_below(&me->random, WCS_MAX), wcs);

	require(n >= 0, "cannot poll");
	for (i = 0; i < n; i++) {
		if (wcs[i].wr_id & IS_RECEIVE)
			end_receive(me, whose(me, wcs[i].qp_num), &wcs[i]);
		else
			end_op(me, whose(me, wcs[i].qp_num), &wcs[i]);
	}
	return n;
}
