/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who waits for a return looks at a word of its own memory; now and then it looks whether its QP
 * still lives, and, when nothing moves, sends an empty write, for only who sends learns of a peer's
 * death.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "preload/unload/clock.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/next.h"
#include "preload/unload/diag.h"
#include "preload/unload/settings.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/tracked_qp.h"

#define HEAD offsetof(struct wire_slot, data)
#define PROBES 8 /* empty writes; and room for them */
#define SENDS (2 * WIRE_SLOTS + PROBES) /* in the send queue; half of the writes may be done */
#define SIGNAL_EVERY (WIRE_SLOTS / 4)
#define SPINS 1000 /* before others are given a turn */
#define PROBE_NS (100 * NS_PER_MS)
#define TAKE_BACK_NS (5 * NS_PER_S)

enum { WR_WRITES = 1, WR_PROBE };

static int memory_make(struct side *side, struct ibv_pd *pd, struct ibv_pd *program)
{
	void *memory = mmap(NULL, sizeof(*side->memory), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	side->memory = memory;
	side->mr = next_reg_mr(pd, memory, sizeof(*side->memory),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	side->repeat_mr = next_reg_mr(program, side->memory->slots, sizeof(side->memory->slots), 0);
	return side->mr && side->repeat_mr ? 0 : -ENOMEM;
}

static int qp_make(struct side *side, struct ibv_pd *pd)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = SENDS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
		.max_inline_data = WIRE_SLOT_BYTES,
	};

	side->cq = NEXT(ibv_create_cq)(pd->context, SENDS, NULL, NULL, 0);
	if (!side->cq)
		return -errno;
	side->qp = connect_make(pd, side->cq, side->cq, &cap);
	side->inline_max = cap.max_inline_data;
	/* What is taken back is taken from nowhere but the work request. */
	return side->qp && cap.max_inline_data >= sizeof(uint64_t) ? 0 : -ENOMEM;
}

static int parts_make(struct side *side, const struct watched *w)
{
	struct ibv_pd *pd;

	pthread_mutex_lock(&w->device->lock);
	pd = device_pd(w->device);
	pthread_mutex_unlock(&w->device->lock);
	if (!pd || connect_random(&side->nonce, sizeof(side->nonce)) ||
	    connect_random(&side->psn, sizeof(side->psn)))
		return -ENOMEM;
	side->psn &= PSN_BITS;
	return memory_make(side, pd, w->qp->pd) || qp_make(side, pd) ? -ENOMEM : 0;
}

struct side *side_make(const struct watched *w)
{
	struct side *side = calloc(1, sizeof(*side));

	if (!side)
		return NULL;
	side->device = w->device;
	side->patience_ns = settings_patience_ns();
	if (!parts_make(side, w))
		return side;
	side_free(side);
	return NULL;
}

void side_free(struct side *side)
{
	if (!side)
		return;
	if (side->qp)
		NEXT(ibv_destroy_qp)(side->qp);
	if (side->cq)
		NEXT(ibv_destroy_cq)(side->cq);
	if (side->mr)
		NEXT(ibv_dereg_mr)(side->mr);
	if (side->repeat_mr)
		NEXT(ibv_dereg_mr)(side->repeat_mr);
	if (side->memory)
		munmap(side->memory, sizeof(*side->memory));
	free(side);
}

/* What has left the send queue. A failure of any means that the QP has ended. */
static void reap(struct side *side)
{
	struct ibv_wc wc;

	while (side->device->ops.poll_cq(side->cq, 1, &wc) > 0) {
		side->has_failed |= wc.status != IBV_WC_SUCCESS;
		side->queued -= wc.wr_id == WR_WRITES ? SIGNAL_EVERY : 1;
	}
}

static int post(struct side *side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (side->device->ops.post_send(side->qp, wr, &bad)) {
		side->has_failed = true;
		return -EIO;
	}
	side->queued++;
	return 0;
}

static void fill(struct wire_slot *slot, uint64_t remote, const struct ibv_sge *data, int nr_data)
{
	uint8_t *at = slot->data;
	int i;

	slot->addr = remote;
	for (i = 0; i < nr_data; i++) {
		memcpy(at, (const void *)(uintptr_t)data[i].addr, data[i].length);
		at += data[i].length;
	}
}

int side_put(struct side *side, uint64_t remote, const struct ibv_sge *data, int nr_data,
	     const struct staged *staged)
{
	uint32_t at = side->next % WIRE_SLOTS;
	struct ibv_sge sge = {
		.addr = (uintptr_t)&side->memory->slots[at],
		.length = HEAD + staged->length,
		.lkey = side->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = WR_WRITES,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = sge.length <= side->inline_max ? IBV_SEND_INLINE : 0,
		.imm_data = htonl(staged->rkey),
		.wr.rdma = { side->buffer + at * sizeof(struct wire_slot), side->rkey },
	};

	fill(&side->memory->slots[at], remote, data, nr_data);
	side->staged[at] = *staged;
	if (++side->unsignalled == SIGNAL_EVERY) {
		side->unsignalled = 0;
		wr.send_flags |= IBV_SEND_SIGNALED;
	}
	while (side->queued >= SENDS - PROBES && !side->has_failed)
		reap(side);
	if (side->has_failed || post(side, &wr))
		return -EIO;
	side->next++;
	return 0;
}

/* Of no bytes, so that no region is asked for. @opcode: a write, with the immediate 0 or without. */
static void post_empty(struct side *side, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {
		.wr_id = WR_PROBE,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { side->buffer, side->rkey },
	};

	if (side->queued < SENDS)
		post(side, &wr);
}

/* Whether something came that was not there before. */
static bool look(struct side *side, uint8_t *pause_ms)
{
	uint64_t told = __atomic_load_n(&side->memory->told, __ATOMIC_ACQUIRE);
	struct wire_return r;

	if (told == side->told || !wire_return_whole(told, &r))
		return false;
	RETURN_FOUND();
	side->told = told;
	side->is_still = false;
	/* More than there are is nothing that a target may say. */
	if ((uint16_t)(r.done - side->done) > side_open(side)) {
		side->has_failed = true;
		return true;
	}
	side->done = r.done;
	side->is_refused |= r.is_refused;
	if (r.pause_ms)
		*pause_ms = r.pause_ms;
	return true;
}

static bool is_over(const struct side *side, uint16_t open_max)
{
	return side_open(side) <= open_max || side->is_refused || side->has_failed;
}

int side_connect(struct side *side, const struct watched *w, const struct wire_offer *answer)
{
	struct path path;
	int err = path_of(w->qp, &path);

	side->buffer = answer->addr;
	side->rkey = answer->rkey;
	if (!err)
		err = connect_to(side->qp, &path, answer->qpn, side->psn, answer->psn);
	if (!err)
		post_empty(side, IBV_WR_RDMA_WRITE_WITH_IMM);
	return err;
}

int side_heard(struct side *side)
{
	uint8_t pause_ms;

	reap(side);
	if (look(side, &pause_ms))
		return side->is_refused || side->has_failed ? -EIO : 0;
	return side->has_failed ? -EIO : -EAGAIN;
}

/*
 * A peer that was only stopped must not copy later what has failed by then. Its buffer is written
 * to without it: no slot leads anywhere any more once that is done.
 */
static void take_back(struct side *side)
{
	uint64_t nowhere = 0, until_ns = clock_ns() + TAKE_BACK_NS;
	struct ibv_sge sge = { (uintptr_t)&nowhere, sizeof(nowhere), 0 };
	struct ibv_send_wr wr = {
		.wr_id = WR_PROBE,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.wr.rdma = { .rkey = side->rkey },
	};
	uint16_t number;

	for (number = side->done; number != side->next && side->queued < SENDS; number++) {
		wr.wr.rdma.remote_addr = side->buffer +
					 number % WIRE_SLOTS * sizeof(struct wire_slot);
		post(side, &wr);
	}
	while (side->queued > side->unsignalled && !side->has_failed && clock_ns() < until_ns)
		reap(side);
}

static void look_long(struct side *side, uint64_t now_ns, uint8_t *pause_ms)
{
	reap(side);
	if (look(side, pause_ms))
		side->moved_ns = now_ns;
	if (now_ns - side->probed_ns >= PROBE_NS) {
		post_empty(side, IBV_WR_RDMA_WRITE);
		side->probed_ns = now_ns;
	}
	if (now_ns - side->moved_ns >= side->patience_ns) {
		take_back(side);
		side->has_failed = true;
	}
}

static void wait_long(struct side *side, uint16_t open_max, uint8_t *pause_ms)
{
	side->moved_ns = side->probed_ns = clock_ns();
	while (!is_over(side, open_max)) {
		sched_yield();
		look_long(side, clock_ns(), pause_ms);
	}
	/* What was copied before the end counts. */
	look(side, pause_ms);
}

int side_wait(struct side *side, uint16_t open_max, uint8_t *pause_ms)
{
	int i;

	for (i = 0; i < SPINS && !is_over(side, open_max); i++)
		look(side, pause_ms);
	if (!is_over(side, open_max))
		wait_long(side, open_max, pause_ms);
	/* A peer that has ended may have copied all before. */
	if (!side_open(side) || (side_open(side) <= open_max && !side->is_refused))
		return 0;
	return side->is_refused ? -EREMOTE : -EIO;
}

bool side_tend(struct side *side, uint64_t now_ns, uint8_t *pause_ms)
{
	if (!side->is_still)
		side->moved_ns = side->probed_ns = now_ns;
	look_long(side, now_ns, pause_ms);
	side->is_still = !is_over(side, 0);
	return side->is_still;
}
