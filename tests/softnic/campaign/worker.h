/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef CAMPAIGN_WORKER_H
#define CAMPAIGN_WORKER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "campaign.h"

enum { DEPTH = 16, GRH = 40, RECEIVE_BYTES = GRH + MESSAGE_MAX, QKEY = 0x12345 };

/* In the wr_id of receives, above the buffer's index. */
#define IS_RECEIVE (1ull << 32)

struct campaign_connection {
	enum campaign_transport transport;
	uint64_t random; /* for what is asked along the lane, and nothing else */
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD */
	uint8_t *here; /* of ZONE bytes for each operation, then the receives */
	uint8_t *model; /* what we have written over there, in order posted */
	uint8_t *expected[OPS_MAX]; /* what a read or an atomic must find */
	uint64_t adds, swaps; /* posted so far */
	uint32_t num_posted, num_ended, last_received;
	uint32_t receives; /* a bit for each buffer that is posted */
	bool failed;
};

struct campaign_worker {
	struct campaign_world *w;
	uint32_t self;
	uint64_t random; /* for all that is a matter of time */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* of all RC queue pairs; NULL: each has its own */
	uint32_t shared_receives; /* a bit for each of its buffers that is posted */
	struct ibv_mr *mr, *here_mr;
	uint8_t *here; /* of HERE_BYTES for each connection; our own: the SRQ's */
	struct campaign_connection to[WORKERS_MAX];
	bool sleeps; /* waits for events, else looks again and again */
};

#define HERE_BYTES ((size_t)OPS_MAX * ZONE + DEPTH * RECEIVE_BYTES)

#define require(condition, ...)                                   \
	do {                                                      \
		if (!(condition)) {                               \
			fprintf(stderr, "worker %u: ", me->self); \
			fprintf(stderr, __VA_ARGS__);             \
			fputc('\n', stderr);                      \
			exit(1);                                  \
		}                                                 \
	} while (0)

uint64_t now_ms(void);

/* connect.c */

void open_all(struct campaign_worker *me);
void connect_all(struct campaign_worker *me);
/* Each receive that is still posted is flushed, once, but for a shared queue's. */
void close_all(struct campaign_worker *me);

/* Is the queue that @source sends to a shared one? */
bool shares_receives(const struct campaign_worker *me, uint32_t source);
/* Receive @i of that queue. */
void post_receive(struct campaign_worker *me, uint32_t source, uint32_t i);
/* It came back: its buffer. It must have been posted. */
const uint8_t *take_receive(struct campaign_worker *me, uint32_t source, uint32_t i);

/* lane.c */

/* The next operation along a lane. */
void post_next(struct campaign_worker *me, uint32_t target);
/* Polls. Returns how many there were. */
int take_completions(struct campaign_worker *me);

#endif
