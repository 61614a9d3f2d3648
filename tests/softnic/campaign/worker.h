/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_TESTS_SOFTNIC_CAMPAIGN_WORKER_H
#define WEIR_TESTS_SOFTNIC_CAMPAIGN_WORKER_H

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
	uint64_t random; /* for the operations of the lane only */
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD */
	uint8_t *here; /* ZONE bytes for each operation, then the receives */
	uint8_t *model; /* the worker's own writes to the target, in the order posted */
	uint8_t *expected[OPS_MAX]; /* the result that a read or an atomic must return */
	uint64_t adds, swaps; /* posted so far */
	uint32_t num_posted, num_ended, last_received;
	uint32_t receives; /* a bit for each posted buffer */
	bool failed;
};

struct campaign_worker {
	struct campaign_world *w;
	uint32_t self;
	uint64_t random; /* for timing */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* of all RC queue pairs; NULL: each has its own */
	uint32_t shared_receives; /* a bit for each posted buffer of the SRQ */
	struct ibv_mr *mr, *here_mr;
	uint8_t *here; /* HERE_BYTES for each connection; the worker's own part is the SRQ's */
	struct campaign_connection to[WORKERS_MAX];
	bool sleeps; /* sleeps until events, or else polls */
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
/* Each receive still posted is flushed once, except those of a shared queue. */
void close_all(struct campaign_worker *me);

/* Whether @source sends to a shared receive queue. */
bool shares_receives(const struct campaign_worker *me, uint32_t source);
/* Post receive @i of the queue that @source sends to. */
void post_receive(struct campaign_worker *me, uint32_t source, uint32_t i);
/* Mark a completed receive as taken. Return: its buffer. The receive must have been posted. */
const uint8_t *take_receive(struct campaign_worker *me, uint32_t source, uint32_t i);

/* lane.c */

/* Post the next operation of a lane. */
void post_next(struct campaign_worker *me, uint32_t target);
/* Poll. Return: the number of completions. */
int take_completions(struct campaign_worker *me);

#endif
