/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that waits for a return polls a word of its own memory. Now and then the thread checks
 * its QP, and without progress sends an empty write, because only a sender learns of a peer's
 * death.
 */
#include <errno.h>
#include <sched.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/clock.h"
#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/interpose.h"
#include "preload/unload/diag.h"
#include "preload/unload/settings.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/tracked_qp.h"

#define PROBES 8 /* empty writes; and room for them */
#define SENDS \
	(2 * WIRE_UNLOAD_SLOTS + PROBES) /* in the send queue; half of the writes may be done */
#define SPINS 1000 /* before yielding the CPU */
#define PROBE_NS (100 * WEIR_NS_PER_MS)
#define TAKE_BACK_NS (5 * WEIR_NS_PER_S)

enum { WR_WRITES = 1, WR_PROBE };

static int memory_make(struct unload_tx *tx, struct ibv_pd *pd, struct ibv_pd *program)
{
	void *memory = mmap(NULL, sizeof(*tx->memory), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	tx->memory = memory;
	tx->mr = interpose_reg_own_mr(pd, memory, sizeof(*tx->memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	tx->repeat_mr =
		interpose_reg_own_mr(program, tx->memory->slots, sizeof(tx->memory->slots), 0);
	return tx->mr && tx->repeat_mr ? 0 : -ENOMEM;
}

static int qp_make(struct unload_tx *tx, struct ibv_pd *pd)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = SENDS,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline_data = WIRE_UNLOAD_SLOT_BYTES,
	};

	tx->cq = NEXT(ibv_create_cq)(pd->context, SENDS, NULL, NULL, 0);
	if (!tx->cq)
		return -errno;
	tx->qp = own_qp_create(pd, tx->cq, tx->cq, &cap);
	tx->inline_max = cap.max_inline_data;
	/* The overwrite of a slot is always sent inline. */
	return tx->qp && cap.max_inline_data >= sizeof(uint64_t) ? 0 : -ENOMEM;
}

static int parts_make(struct unload_tx *tx, const struct tracked_qp *w)
{
	struct ibv_pd *pd;

	pthread_mutex_lock(&w->device->lock);
	pd = device_pd(w->device);
	pthread_mutex_unlock(&w->device->lock);
	if (!pd)
		return -ENOMEM;
	randombytes_buf(&tx->nonce, sizeof(tx->nonce));
	tx->psn = randombytes_random() & PSN_BITS;
	return memory_make(tx, pd, w->qp->pd) || qp_make(tx, pd) ? -ENOMEM : 0;
}

struct unload_tx *unload_tx_create(const struct tracked_qp *w)
{
	struct unload_tx *tx = calloc(1, sizeof(*tx));

	if (!tx)
		return NULL;
	tx->device = w->device;
	tx->stall_timeout_ns = settings_stall_timeout_ns();
	if (!parts_make(tx, w))
		return tx;
	unload_tx_free(tx);
	return NULL;
}

void unload_tx_free(struct unload_tx *tx)
{
	if (!tx)
		return;
	if (tx->qp)
		NEXT(ibv_destroy_qp)(tx->qp);
	if (tx->cq)
		NEXT(ibv_destroy_cq)(tx->cq);
	if (tx->mr)
		NEXT(ibv_dereg_mr)(tx->mr);
	if (tx->repeat_mr)
		NEXT(ibv_dereg_mr)(tx->repeat_mr);
	if (tx->memory)
		munmap(tx->memory, sizeof(*tx->memory));
	free(tx);
}

/* Takes completions of the send queue. Any failure means that the QP has ended. */
static void reap_completions(struct unload_tx *tx)
{
	struct ibv_wc wc;

	while (tx->device->ops.poll_cq(tx->cq, 1, &wc) > 0) {
		tx->has_failed |= wc.status != IBV_WC_SUCCESS;
		tx->queued -= wc.wr_id == WR_WRITES ?
				      weir_unload_slots_signal_every(&tx->buffer.slots) :
				      1;
	}
}

static int post_wr(struct unload_tx *tx, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (tx->device->ops.post_send(tx->qp, wr, &bad)) {
		tx->has_failed = true;
		return -EIO;
	}
	tx->queued++;
	return 0;
}

static void fill_slot(struct wire_unload_slot *slot, uint64_t remote, const struct ibv_sge *data,
		      int nr_data)
{
	uint8_t *at = slot->data;
	int i;

	slot->addr = remote;
	for (i = 0; i < nr_data; i++) {
		memcpy(at, (const void *)(uintptr_t)data[i].addr, data[i].length);
		at += data[i].length;
	}
}

int unload_tx_put(struct unload_tx *tx, uint64_t remote, const struct ibv_sge *data, int nr_data,
		  const struct staged_write *staged)
{
	struct ibv_sge sge = {
		.length = WEIR_UNLOAD_WR_HEAD + staged->length,
		.lkey = tx->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = WR_WRITES,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = sge.length <= tx->inline_max ? IBV_SEND_INLINE : 0,
	};
	uint16_t slot;

	while (tx->queued >= SENDS - PROBES && !tx->has_failed)
		reap_completions(tx);
	if (tx->has_failed)
		return -EIO;
	slot = weir_unload_wr_write(&tx->buffer, staged->rkey, &wr);
	tx->staged[slot] = *staged;
	fill_slot(&tx->memory->slots[slot], remote, data, nr_data);
	sge.addr = (uintptr_t)&tx->memory->slots[slot];
	if (!post_wr(tx, &wr))
		return 0;
	weir_unload_slots_untake(&tx->buffer.slots);
	return -EIO;
}

/* Posts a zero-length write, which needs no region. @opcode: a write, with the immediate 0 or
 * without. */
static void post_empty(struct unload_tx *tx, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {
		.wr_id = WR_PROBE,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { tx->buffer.addr, tx->buffer.rkey },
	};

	if (tx->queued < SENDS)
		post_wr(tx, &wr);
}

/* Returns true if a new return has arrived. */
static bool read_return(struct unload_tx *tx, uint8_t *pause_ms)
{
	uint64_t last_return = __atomic_load_n(&tx->memory->last_return, __ATOMIC_ACQUIRE);
	struct wire_unload_return r;

	if (last_return == tx->last_return || !wire_unload_return_is_whole(last_return, &r))
		return false;
	RETURN_FOUND();
	tx->last_return = last_return;
	tx->is_still = false;
	/* A target cannot have done more writes than are open. */
	if (weir_unload_slots_returned(&tx->buffer.slots, r.done, unload_tx_outstanding(tx)) < 0) {
		tx->has_failed = true;
		return true;
	}
	tx->is_refused |= r.is_refused;
	if (r.pause_ms)
		*pause_ms = r.pause_ms;
	return true;
}

static bool has_at_most(const struct unload_tx *tx, uint16_t open_max)
{
	return unload_tx_outstanding(tx) <= open_max || tx->is_refused || tx->has_failed;
}

int unload_tx_connect(struct unload_tx *tx, const struct tracked_qp *w,
		      const struct wire_discovery_offer *answer)
{
	struct qp_path path;
	int rc = qp_path_query(w->qp, &path);

	tx->buffer = (struct weir_unload_buffer){ .addr = answer->addr, .rkey = answer->rkey };
	weir_unload_slots_init(&tx->buffer.slots, WIRE_UNLOAD_SLOTS);
	if (!rc)
		rc = own_qp_connect(tx->qp, &path, answer->qpn, tx->psn, answer->psn);
	if (!rc)
		post_empty(tx, IBV_WR_RDMA_WRITE_WITH_IMM);
	return rc;
}

int unload_tx_check_ready(struct unload_tx *tx)
{
	uint8_t pause_ms;

	reap_completions(tx);
	if (read_return(tx, &pause_ms))
		return tx->is_refused || tx->has_failed ? -EIO : 0;
	return tx->has_failed ? -EIO : -EAGAIN;
}

/*
 * A peer that was only stopped must not copy writes later that have failed by then. RDMA writes
 * reach the peer's slot buffer without the peer's CPU, and make every slot address invalid.
 */
static void take_unsent_back(struct unload_tx *tx)
{
	uint64_t nowhere = 0, until_ns = weir_now_ns() + TAKE_BACK_NS;
	struct ibv_sge sge = { (uintptr_t)&nowhere, sizeof(nowhere), 0 };
	struct ibv_send_wr wr = {
		.wr_id = WR_PROBE,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.wr.rdma = { .rkey = tx->buffer.rkey },
	};
	const struct weir_unload_slots *slots = &tx->buffer.slots;
	uint16_t number;

	for (number = slots->done; number != slots->next && tx->queued < SENDS; number++) {
		wr.wr.rdma.remote_addr = tx->buffer.addr + number % WIRE_UNLOAD_SLOTS *
								   sizeof(struct wire_unload_slot);
		post_wr(tx, &wr);
	}
	while (tx->queued > slots->unsignalled && !tx->has_failed && weir_now_ns() < until_ns)
		reap_completions(tx);
}

static void poll_return(struct unload_tx *tx, uint64_t now_ns, uint8_t *pause_ms)
{
	reap_completions(tx);
	if (read_return(tx, pause_ms))
		tx->moved_ns = now_ns;
	if (now_ns - tx->probed_ns >= PROBE_NS) {
		post_empty(tx, IBV_WR_RDMA_WRITE);
		tx->probed_ns = now_ns;
	}
	if (now_ns - tx->moved_ns >= tx->stall_timeout_ns) {
		take_unsent_back(tx);
		tx->has_failed = true;
	}
}

static void wait_for_return(struct unload_tx *tx, uint16_t open_max, uint8_t *pause_ms)
{
	tx->moved_ns = tx->probed_ns = weir_now_ns();
	while (!has_at_most(tx, open_max)) {
		sched_yield();
		poll_return(tx, weir_now_ns(), pause_ms);
	}
	/* Copies made before the end count. */
	read_return(tx, pause_ms);
}

int unload_tx_wait(struct unload_tx *tx, uint16_t open_max, uint8_t *pause_ms)
{
	int i;

	for (i = 0; i < SPINS && !has_at_most(tx, open_max); i++)
		read_return(tx, pause_ms);
	if (!has_at_most(tx, open_max))
		wait_for_return(tx, open_max, pause_ms);
	/* A peer that has ended may have copied all writes before. */
	if (!unload_tx_outstanding(tx) ||
	    (unload_tx_outstanding(tx) <= open_max && !tx->is_refused))
		return 0;
	return tx->is_refused ? -EREMOTE : -EIO;
}

bool unload_tx_poll(struct unload_tx *tx, uint64_t now_ns, uint8_t *pause_ms)
{
	if (!tx->is_still)
		tx->moved_ns = tx->probed_ns = now_ns;
	poll_return(tx, now_ns, pause_ms);
	tx->is_still = !has_at_most(tx, 0);
	return tx->is_still;
}
