/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots are posted in chains, with one doorbell each. Where bitmaps confirm, writes ask for no
 * completion: the look behind them has one, and says for all of them that they are done, and more. Where
 * immediates do, and of the slots that a peer is told of, every so many writes ask for one.
 */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/exchange/exchange.h"

#define POLLED 32
#define SIGNAL_EVERY 32u /* writes that tell, with one completion */

/* What a completion is of: the high byte of its wr_id. */
enum tag { TAG_WRITE, TAG_LOOK, TAG_WAKE, TAG_PROBE, TAG_HEARD, TAG_GIVES, TAG_RECV };

static uint64_t id_of(enum tag tag, uint64_t value)
{
	return (uint64_t)tag << 56 | value;
}

int weir_exchange_fail(struct weir_exchange *x, int status)
{
	if (!x->status)
		x->status = status;
	return x->status;
}

static int post(struct weir_exchange *x, struct ibv_send_wr *first)
{
	struct ibv_send_wr *bad;

	if (x->status)
		return x->status;
	x->info.doorbells++;
	return ibv_post_send(x->id->qp, first, &bad) ? weir_exchange_fail(x, -ECONNRESET) : 0;
}

static void look_fill(struct weir_exchange *x, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	uint32_t words = weir_confirm_words(x->out.slots) + weir_confirm_words(x->in.slots);

	*sge = (struct ibv_sge){ (uintptr_t)x->fresh, words * 8, x->pool_mr->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = id_of(TAG_LOOK, 0),
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { x->peer.bits.address, x->peer.bits.rkey },
	};
	weir_confirm_out_look(&x->out);
	x->look_end = x->signalled = x->out.committed;
	weir_look_posted(&x->look, weir_now_ns());
	x->info.looks++;
}

/* Its header, for the number it gets now. */
static struct wire_slot *head_fill(struct weir_exchange *x, const struct weir_exchange_slot *slot)
{
	struct wire_slot *head = weir_exchange_head(&x->pool, slot->number);

	head->sequence = x->out.committed;
	head->length = (uint32_t)slot->length;
	weir_confirm_out_commit(&x->out, slot->number);
	x->info.bytes_put += slot->length;
	return head;
}

/* @count pieces to @at, in one write. */
static void write_fill(struct weir_exchange *x, struct ibv_send_wr *wr, struct ibv_sge *sges, int count,
		       uint64_t at, uint32_t rkey)
{
	*wr = (struct ibv_send_wr){
		.wr_id = id_of(TAG_WRITE, x->out.committed),
		.sg_list = sges,
		.num_sge = count,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { at, rkey },
	};
	x->info.writes++;
}

/*
 * A slot as one write of two pieces, or of one where they lie together here, too; or as a write of
 * its data and then one of its header, where the peer has them apart. Return: how many writes.
 */
static unsigned int slot_fill(struct weir_exchange *x, const struct weir_exchange_slot *slot,
			      struct ibv_send_wr *wrs, struct ibv_sge *sges)
{
	const struct ibv_mr *mr = x->pool.gpu_mr ? x->pool.gpu_mr : x->pool_mr;
	struct wire_slot *head = head_fill(x, slot);
	char *data = x->pool.data + slot->number * x->pool.stride;
	uint64_t far_head = x->peer.heads.address + (uint64_t)slot->number * x->peer.head_stride;
	uint64_t far_data = x->peer.mirror.address + slot->number * x->pool.stride;
	unsigned int n = 0;

	sges[0] = (struct ibv_sge){ (uintptr_t)head, sizeof(*head), x->pool_mr->lkey };
	sges[1] = (struct ibv_sge){ (uintptr_t)data, (uint32_t)slot->length, mr->lkey };
	if (!weir_exchange_is_joined(x)) {
		if (slot->length)
			write_fill(x, &wrs[n++], &sges[1], 1, far_data, x->peer.mirror.rkey);
		write_fill(x, &wrs[n++], &sges[0], 1, far_head, x->peer.heads.rkey);
		wrs[n - 1].send_flags = IBV_SEND_INLINE;
		return n;
	}
	if (data == (char *)(head + 1))
		sges[0].length += sges[1].length;
	write_fill(x, wrs, sges, data == (char *)(head + 1) || !slot->length ? 1 : 2, far_head,
		   x->peer.heads.rkey);
	if (wrs->num_sge == 1 && sges[0].length <= x->inline_max)
		wrs->send_flags = IBV_SEND_INLINE;
	return 1;
}

/* The peer learns of the slot by the write itself; who wrote it, now and then. */
static void slot_announce(struct weir_exchange *x, uint32_t number, struct ibv_send_wr *wr)
{
	uint32_t every = x->send_max / 2 < SIGNAL_EVERY ? x->send_max / 2 : SIGNAL_EVERY;

	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htobe32(number);
	weir_confirm_out_sent(&x->out);
	weir_exchange_told(x);
	if (x->out.committed - x->signalled < every)
		return;
	wr->send_flags |= IBV_SEND_SIGNALED;
	x->signalled = x->out.committed;
}

static int queue_chain(struct weir_exchange *x, const struct weir_exchange_slot *slots,
		       unsigned int count, unsigned int tells, bool is_last)
{
	struct ibv_send_wr wrs[2 * WEIR_EXCHANGE_CHAIN + 1];
	struct ibv_sge sges[2 * WEIR_EXCHANGE_CHAIN + 1];
	unsigned int i, n = 0;

	for (i = 0; i < count; i++) {
		n += slot_fill(x, &slots[i], &wrs[n], &sges[2 * i]);
		if (i < tells)
			slot_announce(x, slots[i].number, &wrs[n - 1]);
	}
	if (is_last && weir_exchange_look_is_due(x, x->put_ns)) {
		look_fill(x, &wrs[n], &sges[2 * count]);
		n++;
	}
	for (i = 0; i + 1 < n; i++)
		wrs[i].next = &wrs[i + 1];
	return post(x, wrs);
}

int weir_exchange_queue_slots(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			      unsigned int count)
{
	uint64_t now_ns = weir_now_ns();
	unsigned int part, tells = weir_exchange_tells(x, count, now_ns);
	int rc = 0;

	x->put_ns = now_ns;
	for (; !rc && count; slots += part, count -= part) {
		part = count < WEIR_EXCHANGE_CHAIN ? count : WEIR_EXCHANGE_CHAIN;
		rc = queue_chain(x, slots, part, tells, part == count);
	}
	return rc;
}

int weir_exchange_queue_look(struct weir_exchange *x, uint64_t ring)
{
	struct ibv_sge sges[2];
	struct ibv_send_wr wrs[2];

	look_fill(x, &wrs[1], &sges[1]);
	if (!ring)
		return post(x, &wrs[1]);
	*x->ring = ring;
	sges[0] = (struct ibv_sge){ (uintptr_t)x->ring, sizeof(*x->ring), x->pool_mr->lkey };
	wrs[0] = (struct ibv_send_wr){
		.next = &wrs[1],
		.wr_id = id_of(TAG_WAKE, 0),
		.sg_list = sges,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { x->peer.bell.address, x->peer.bell.rkey },
	};
	x->info.wakes++;
	return post(x, wrs);
}

/* A write of nothing: what is there to be found is found by looking. */
static int queue_nothing(struct weir_exchange *x, enum ibv_wr_opcode opcode, uint32_t imm,
			 uint64_t id)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(imm),
		.wr.rdma = { x->peer.bell.address, x->peer.bell.rkey },
	};

	return post(x, &wr);
}

int weir_exchange_queue_wake(struct weir_exchange *x)
{
	x->info.wakes++;
	return queue_nothing(x, IBV_WR_RDMA_WRITE_WITH_IMM, WIRE_WAKE, id_of(TAG_WAKE, 0));
}

int weir_exchange_queue_heard(struct weir_exchange *x)
{
	x->is_telling = true;
	return queue_nothing(x, IBV_WR_RDMA_WRITE_WITH_IMM, WIRE_HEARD, id_of(TAG_HEARD, 0));
}

/* One is under way at a time, or many short waits on a slow wire would fill the queue with them. */
int weir_exchange_queue_probe(struct weir_exchange *x)
{
	if (x->is_probing)
		return x->status;
	x->is_probing = true;
	return queue_nothing(x, IBV_WR_RDMA_WRITE, 0, id_of(TAG_PROBE, 0));
}

/* One is under way at a time, or whoever asks after every slot would fill the queue with them. */
int weir_exchange_queue_mark(struct weir_exchange *x)
{
	if (x->signalled == x->out.committed || x->acked < x->marked)
		return x->status;
	x->signalled = x->marked = x->out.committed;
	return queue_nothing(x, IBV_WR_RDMA_WRITE, 0, id_of(TAG_WRITE, x->out.committed));
}

int weir_exchange_queue_gives(struct weir_exchange *x)
{
	uint32_t buffer, count;
	struct wire_gives *gives;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int rc = 0;

	while (!rc && x->nr_back && x->gives_free) {
		buffer = (uint32_t)__builtin_ctz(x->gives_free);
		gives = &x->gives[buffer];
		count = x->nr_back < WIRE_GIVES_MAX ? x->nr_back : WIRE_GIVES_MAX;
		x->nr_back -= count;
		gives->count = count;
		memcpy(gives->slots, x->back, count * sizeof(gives->slots[0]));
		memmove(x->back, x->back + count, x->nr_back * sizeof(x->back[0]));
		x->gives_free &= ~(1u << buffer);
		sge = (struct ibv_sge){ (uintptr_t)gives,
					(uint32_t)(offsetof(struct wire_gives, slots) +
						   count * sizeof(gives->slots[0])),
					x->pool_mr->lkey };
		wr = (struct ibv_send_wr){
			.wr_id = id_of(TAG_GIVES, buffer),
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
		x->info.gives++;
		rc = weir_exchange_queue_recvs(x);
		if (!rc)
			rc = post(x, &wr);
	}
	return rc;
}

int weir_exchange_queue_recvs(struct weir_exchange *x)
{
	struct ibv_recv_wr wrs[WEIR_EXCHANGE_CHAIN], *bad;
	struct ibv_sge sges[WEIR_EXCHANGE_CHAIN];
	uint32_t i, n;

	while (x->nr_spare && !x->status) {
		n = x->nr_spare < WEIR_EXCHANGE_CHAIN ? x->nr_spare : WEIR_EXCHANGE_CHAIN;
		for (i = 0; i < n; i++) {
			uint32_t buffer = x->spare[--x->nr_spare];
			char *at = x->recvs + buffer * WEIR_EXCHANGE_RECV_BYTES;

			sges[i] = (struct ibv_sge){ (uintptr_t)at, WEIR_EXCHANGE_RECV_BYTES,
						    x->pool_mr->lkey };
			wrs[i] = (struct ibv_recv_wr){
				.next = i + 1 < n ? &wrs[i + 1] : NULL,
				.wr_id = id_of(TAG_RECV, buffer),
				.sg_list = &sges[i],
				.num_sge = 1,
			};
		}
		x->info.recvs += n;
		x->info.doorbells++;
		if (ibv_post_recv(x->id->qp, wrs, &bad))
			return weir_exchange_fail(x, -ECONNRESET);
	}
	return x->status;
}

static void acknowledge(struct weir_exchange *x, uint64_t slots)
{
	if (slots > x->acked)
		x->acked = slots;
}

static int looked(struct weir_exchange *x)
{
	uint64_t now_ns = weir_now_ns(), arrived = x->out.arrived;
	int found, freed, slot, rc = 0;

	acknowledge(x, x->look_end);
	found = weir_confirm_in_looked(&x->in, x->fresh);
	freed = weir_confirm_out_looked(&x->out, x->fresh + weir_confirm_words(x->in.slots));
	if (found < 0 || freed < 0)
		return -EPROTO;
	weir_look_back(&x->look, &x->out, (uint32_t)found, (uint32_t)freed,
		       (uint32_t)(x->out.arrived - arrived), now_ns);
	while (!rc && (slot = weir_confirm_in_find(&x->in)) >= 0)
		rc = weir_exchange_arrive(x, (uint32_t)slot);
	if (!rc && x->out.arrived != arrived)
		rc = weir_exchange_answer(x, WEIR_EXCHANGE_NEWS);
	return rc;
}

static int gives_received(struct weir_exchange *x, uint32_t buffer, size_t length)
{
	struct wire_gives gives;
	uint32_t i;
	int rc = wire_gives_decode(x->recvs + buffer * WEIR_EXCHANGE_RECV_BYTES, length, &gives);

	for (i = 0; !rc && i < gives.count; i++)
		rc = weir_confirm_out_told(&x->out, gives.slots[i]);
	if (!rc && x->is_ending && !weir_confirm_out_is_full(&x->out, x->end_slot))
		x->is_heard = true;
	return rc;
}

static int told(struct weir_exchange *x, uint32_t slot)
{
	int rc = weir_confirm_in_told(&x->in, slot);

	return rc ? rc : weir_exchange_arrive(x, slot);
}

/* Bitmap mode. */
static int hinted(struct weir_exchange *x, uint32_t hint)
{
	if (hint == WIRE_HEARD) {
		x->is_heard = x->is_ending;
		return x->is_ending ? 0 : -EPROTO;
	}
	if (hint == WIRE_WAKE) {
		weir_look_woken(&x->look);
		return 0;
	}
	weir_look_told(&x->look);
	return told(x, hint);
}

static int received(struct weir_exchange *x, const struct ibv_wc *wc)
{
	uint32_t buffer = (uint32_t)wc->wr_id;

	x->spare[x->nr_spare++] = buffer;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return weir_exchange_is_imm(x) ? told(x, be32toh(wc->imm_data)) :
						 hinted(x, be32toh(wc->imm_data));
	return weir_exchange_is_imm(x) ? gives_received(x, buffer, wc->byte_len) : -EPROTO;
}

static int completed(struct weir_exchange *x, const struct ibv_wc *wc)
{
	x->info.completions++;
	if (wc->status != IBV_WC_SUCCESS)
		return -ECONNRESET;
	switch ((enum tag)(wc->wr_id >> 56)) {
	case TAG_WRITE:
		acknowledge(x, wc->wr_id & ~(0xffull << 56));
		return 0;
	case TAG_LOOK:
		return looked(x);
	case TAG_PROBE:
		x->is_probing = false;
		return 0;
	case TAG_HEARD:
		x->is_telling = false;
		return 0;
	case TAG_GIVES:
		x->gives_free |= 1u << (wc->wr_id & 0xff);
		return 0;
	case TAG_RECV:
		return received(x, wc);
	default:
		return 0;
	}
}

int weir_exchange_queue_poll(struct weir_exchange *x)
{
	struct ibv_wc wcs[POLLED];
	int i, n, rc = 0;

	do {
		n = x->status ? 0 : ibv_poll_cq(x->cq, POLLED, wcs);
		for (i = 0; !rc && i < n; i++)
			rc = completed(x, &wcs[i]);
		if (n < 0 || rc)
			return weir_exchange_fail(x, rc ? rc : -ECONNRESET);
		if (x->look.is_looking)
			weir_look_polled(&x->look, weir_now_ns());
		if (x->nr_spare >= WEIR_EXCHANGE_CHAIN)
			rc = weir_exchange_queue_recvs(x);
	} while (n == POLLED && !rc);
	return x->status;
}
