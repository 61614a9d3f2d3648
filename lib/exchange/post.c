/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots are posted in chains with one doorbell each. In bitmap mode writes are unsignalled: the
 * bitmap read behind them is signalled and covers them all. In immediate mode, and for slots
 * with a notice, every few writes one is signalled.
 */
#include <errno.h>
#include <string.h>

#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"

#define SIGNAL_EVERY 32u /* writes with immediates per completion */

/* A peer that has said that it closes was not lost. */
int weir_exchange_fail(struct weir_exchange *x, int status)
{
	if (status == -ECONNRESET && x->is_closed)
		status = -ENOTCONN;
	if (!x->status)
		x->status = status;
	return x->status;
}

static int post_sends(struct weir_exchange *x, struct ibv_send_wr *first)
{
	struct ibv_send_wr *bad;

	if (x->status)
		return x->status;
	x->info.doorbells++;
	return ibv_post_send(x->qp, first, &bad) ? weir_exchange_fail(x, -ECONNRESET) : 0;
}

/*
 * Posts a chain with a bitmap read. Counts posting time as polled, since some devices work while
 * posting.
 */
static int post_bitmap_read(struct weir_exchange *x, struct ibv_send_wr *first)
{
	int rc = post_sends(x, first);

	weir_slot_poll_polled(&x->slot_poll, weir_now_ns());
	return rc;
}

static void fill_bitmap_read(struct weir_exchange *x, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	uint32_t words = weir_slot_bitmap_words(x->out.slots) + weir_slot_bitmap_words(x->in.slots);

	*sge = (struct ibv_sge){ (uintptr_t)x->fresh, words * 8, x->pool_mr->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = weir_exchange_wr_id(WEIR_EXCHANGE_WR_BITMAP_READ, 0),
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { x->peer.bits.address, x->peer.bits.rkey },
	};
	weir_slot_bitmap_tx_read_posted(&x->out);
	x->read_end = x->signalled = x->out.committed;
	weir_slot_poll_posted(&x->slot_poll, weir_now_ns());
	x->info.bitmap_reads++;
}

/* Fills in the header with the next sequence number. */
static struct wire_exchange_slot_head *fill_header(struct weir_exchange *x,
						   const struct weir_exchange_slot *slot)
{
	struct wire_exchange_slot_head *head = weir_exchange_slot_header(&x->pool, slot->number);

	head->sequence = x->out.committed;
	head->length = (uint32_t)slot->length;
	head->before = x->out.committed ? (uint16_t)weir_slot_bitmap_tx_last(&x->out) : 0;
	weir_slot_bitmap_tx_commit(&x->out, slot->number);
	weir_slot_poll_put(&x->slot_poll, slot->length);
	x->nr_acquired--;
	x->info.bytes_put += slot->length;
	return head;
}

/* Fills in a write of @count pieces to @at. */
static void fill_write(struct weir_exchange *x, struct ibv_send_wr *wr, struct ibv_sge *sges,
		       int count, uint64_t at, uint32_t rkey)
{
	*wr = (struct ibv_send_wr){
		.wr_id = weir_exchange_wr_id(WEIR_EXCHANGE_WR_WRITE, x->out.committed),
		.sg_list = sges,
		.num_sge = count,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { at, rkey },
	};
	x->info.writes++;
}

/*
 * Builds the writes of a slot: a single write of one or two pieces, or separate writes of data
 * and header if they are apart at the peer. Return: the number of writes.
 */
static unsigned int fill_slot(struct weir_exchange *x, const struct weir_exchange_slot *slot,
			      struct ibv_send_wr *wrs, struct ibv_sge *sges)
{
	const struct ibv_mr *mr = x->pool.gpu_mr ? x->pool.gpu_mr : x->pool_mr;
	struct wire_exchange_slot_head *head = fill_header(x, slot);
	char *data = x->pool.data + slot->number * x->pool.stride;
	uint64_t far_head = x->peer.heads.address + (uint64_t)slot->number * x->peer.head_stride;
	uint64_t far_data = x->peer.mirror.address + slot->number * x->pool.stride;
	unsigned int n = 0;

	sges[0] = (struct ibv_sge){ (uintptr_t)head, sizeof(*head), x->pool_mr->lkey };
	sges[1] = (struct ibv_sge){ (uintptr_t)data, (uint32_t)slot->length, mr->lkey };
	if (!weir_exchange_is_contiguous(x)) {
		if (slot->length)
			fill_write(x, &wrs[n++], &sges[1], 1, far_data, x->peer.mirror.rkey);
		fill_write(x, &wrs[n++], &sges[0], 1, far_head, x->peer.heads.rkey);
		wrs[n - 1].send_flags = IBV_SEND_INLINE;
		return n;
	}
	if (data == (char *)(head + 1))
		sges[0].length += sges[1].length;
	fill_write(x, wrs, sges, data == (char *)(head + 1) || !slot->length ? 1 : 2, far_head,
		   x->peer.heads.rkey);
	if (wrs->num_sge == 1 && sges[0].length <= x->inline_max)
		wrs->send_flags = IBV_SEND_INLINE;
	return 1;
}

/* The immediate for the last slot, which covers all unshown slots. */
static uint32_t fill_notice(struct weir_exchange *x, uint64_t now_ns)
{
	uint32_t others = (uint32_t)weir_slot_poll_unshown(&x->out) - 1;

	if (!weir_exchange_is_imm(x))
		weir_exchange_notified(x, now_ns);
	weir_slot_bitmap_tx_notified(&x->out);
	return wire_exchange_imm_encode(weir_slot_bitmap_tx_last(&x->out), others);
}

/* Makes the write notify the peer of the slot, and signals it now and then. */
static void announce_slot(struct weir_exchange *x, struct ibv_send_wr *wr)
{
	uint32_t every = x->send_max / 2 < SIGNAL_EVERY ? x->send_max / 2 : SIGNAL_EVERY;

	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htobe32(fill_notice(x, x->put_ns));
	if (x->out.committed - x->signalled < every)
		return;
	wr->send_flags |= IBV_SEND_SIGNALED;
	x->signalled = x->out.committed;
}

static int post_chain(struct weir_exchange *x, const struct weir_exchange_slot *slots,
		      unsigned int count, bool is_last)
{
	struct ibv_send_wr wrs[2 * WEIR_EXCHANGE_CHAIN + 1];
	struct ibv_sge sges[2 * WEIR_EXCHANGE_CHAIN + 1];
	unsigned int i, n = 0;
	bool looks;

	for (i = 0; i < count; i++) {
		n += fill_slot(x, &slots[i], &wrs[n], &sges[2 * i]);
		if (weir_exchange_is_imm(x))
			announce_slot(x, &wrs[n - 1]);
	}
	if (!weir_exchange_is_imm(x) && is_last && weir_exchange_must_notify(x, x->put_ns)) {
		announce_slot(x, &wrs[n - 1]);
		x->info.imm_writes++;
	}
	looks = is_last && weir_exchange_bitmap_read_is_due(x, x->put_ns);
	if (looks)
		fill_bitmap_read(x, &wrs[n++], &sges[2 * count]);
	for (i = 0; i + 1 < n; i++)
		wrs[i].next = &wrs[i + 1];
	return looks ? post_bitmap_read(x, wrs) : post_sends(x, wrs);
}

int weir_exchange_post_slots(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			     unsigned int count)
{
	unsigned int part;
	int rc = 0;

	x->put_ns = weir_now_ns();
	for (; !rc && count; slots += part, count -= part) {
		part = count < WEIR_EXCHANGE_CHAIN ? count : WEIR_EXCHANGE_CHAIN;
		rc = post_chain(x, slots, part, part == count);
	}
	return rc;
}

int weir_exchange_post_bitmap_read(struct weir_exchange *x, uint64_t ring)
{
	struct ibv_sge sges[2];
	struct ibv_send_wr wrs[2];

	fill_bitmap_read(x, &wrs[1], &sges[1]);
	if (!ring)
		return post_bitmap_read(x, &wrs[1]);
	*x->ring = ring;
	sges[0] = (struct ibv_sge){ (uintptr_t)x->ring, sizeof(*x->ring), x->pool_mr->lkey };
	wrs[0] = (struct ibv_send_wr){
		.next = &wrs[1],
		.wr_id = weir_exchange_wr_id(WEIR_EXCHANGE_WR_WAKE, 0),
		.sg_list = sges,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { x->peer.doorbell.address, x->peer.doorbell.rkey },
	};
	x->info.wakeups++;
	return post_bitmap_read(x, wrs);
}

/* Posts an empty write: only the immediate or the completion matters. */
static int post_empty_write(struct weir_exchange *x, enum ibv_wr_opcode opcode, uint32_t imm,
			    uint64_t id)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(imm),
		.wr.rdma = { x->peer.doorbell.address, x->peer.doorbell.rkey },
	};

	return post_sends(x, &wr);
}

int weir_exchange_post_wake(struct weir_exchange *x)
{
	x->info.wakeups++;
	return post_empty_write(x, IBV_WR_RDMA_WRITE_WITH_IMM, WIRE_EXCHANGE_IMM_WAKE,
				weir_exchange_wr_id(WEIR_EXCHANGE_WR_WAKE, 0));
}

int weir_exchange_post_notice(struct weir_exchange *x, uint64_t now_ns)
{
	x->info.wakeups++;
	x->signalled = x->marked = x->out.committed;
	return post_empty_write(x, IBV_WR_RDMA_WRITE_WITH_IMM, fill_notice(x, now_ns),
				weir_exchange_wr_id(WEIR_EXCHANGE_WR_WRITE, x->out.committed));
}

int weir_exchange_post_end_ack(struct weir_exchange *x)
{
	x->is_end_ack_posted = true;
	return post_empty_write(x, IBV_WR_RDMA_WRITE_WITH_IMM, WIRE_EXCHANGE_IMM_DRAINED,
				weir_exchange_wr_id(WEIR_EXCHANGE_WR_END_ACK, 0));
}

int weir_exchange_post_close(struct weir_exchange *x)
{
	x->is_close_posted = true;
	return post_empty_write(x, IBV_WR_RDMA_WRITE_WITH_IMM, WIRE_EXCHANGE_IMM_CLOSED,
				weir_exchange_wr_id(WEIR_EXCHANGE_WR_CLOSE, 0));
}

/* Only one probe is in flight, or many short waits on a slow wire would fill the queue. */
int weir_exchange_post_probe(struct weir_exchange *x)
{
	if (x->is_probing)
		return x->status;
	x->is_probing = true;
	return post_empty_write(x, IBV_WR_RDMA_WRITE, 0,
				weir_exchange_wr_id(WEIR_EXCHANGE_WR_PROBE, 0));
}

/* Only one marker is in flight, or frequent callers would fill the queue. */
int weir_exchange_post_marker(struct weir_exchange *x)
{
	if (x->signalled == x->out.committed || x->acked < x->marked)
		return x->status;
	x->signalled = x->marked = x->out.committed;
	return post_empty_write(x, IBV_WR_RDMA_WRITE, 0,
				weir_exchange_wr_id(WEIR_EXCHANGE_WR_WRITE, x->out.committed));
}

int weir_exchange_post_returns(struct weir_exchange *x)
{
	uint32_t buffer, count;
	struct wire_exchange_freed *freed;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int rc = 0;

	while (!rc && x->nr_returns && x->return_buffers_free) {
		buffer = (uint32_t)__builtin_ctz(x->return_buffers_free);
		freed = &x->return_buffers[buffer];
		count = x->nr_returns < WIRE_EXCHANGE_FREED_MAX ? x->nr_returns :
								  WIRE_EXCHANGE_FREED_MAX;
		x->nr_returns -= count;
		freed->count = count;
		memcpy(freed->slots, x->back, count * sizeof(freed->slots[0]));
		memmove(x->back, x->back + count, x->nr_returns * sizeof(x->back[0]));
		x->return_buffers_free &= ~(1u << buffer);
		sge = (struct ibv_sge){ (uintptr_t)freed,
					(uint32_t)(offsetof(struct wire_exchange_freed, slots) +
						   count * sizeof(freed->slots[0])),
					x->pool_mr->lkey };
		wr = (struct ibv_send_wr){
			.wr_id = weir_exchange_wr_id(WEIR_EXCHANGE_WR_RETURNS, buffer),
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
		x->info.credits++;
		rc = weir_exchange_post_recvs(x);
		if (!rc)
			rc = post_sends(x, &wr);
	}
	return rc;
}

int weir_exchange_post_recvs(struct weir_exchange *x)
{
	struct ibv_recv_wr wrs[WEIR_EXCHANGE_CHAIN], *bad;
	struct ibv_sge sges[WEIR_EXCHANGE_CHAIN];
	uint32_t i, n;

	while (x->nr_recvs_spare && !x->status) {
		n = x->nr_recvs_spare < WEIR_EXCHANGE_CHAIN ? x->nr_recvs_spare :
							      WEIR_EXCHANGE_CHAIN;
		for (i = 0; i < n; i++) {
			uint32_t buffer = x->spare[--x->nr_recvs_spare];
			char *at = x->recvs + buffer * WEIR_EXCHANGE_RECV_BYTES;

			sges[i] = (struct ibv_sge){ (uintptr_t)at, WEIR_EXCHANGE_RECV_BYTES,
						    x->pool_mr->lkey };
			wrs[i] = (struct ibv_recv_wr){
				.next = i + 1 < n ? &wrs[i + 1] : NULL,
				.wr_id = weir_exchange_wr_id(WEIR_EXCHANGE_WR_RECV, buffer),
				.sg_list = &sges[i],
				.num_sge = 1,
			};
		}
		x->info.recvs += n;
		x->info.doorbells++;
		if (ibv_post_recv(x->qp, wrs, &bad))
			return weir_exchange_fail(x, -ECONNRESET);
	}
	return x->status;
}
