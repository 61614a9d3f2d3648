/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A pair of QPs that unload to each other, driven as by a program. Failures end the test. */
#ifndef WEIR_TESTS_PRELOAD_UNLOAD_DRIVE_H
#define WEIR_TESTS_PRELOAD_UNLOAD_DRIVE_H

#include "tests/support/loopback_pair.h"
#include "preload/unload/diag.h"

#define PATIENCE_S 60
#define SMALL 64u
#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define LIST 64 /* writes in one post, as many as there are slots */
#define LIST_BYTES 2048u

uint64_t now_ns(void);

/* Scales @count by WEIR_TEST_SIZE (at most 1) for slow devices: at least two. */
int rounds(int count);

/* The counters of this process so far. */
struct diag_counters said_now(void);
uint64_t unloaded(void);

/* The next completion, with any status. */
struct ibv_wc next_wc(struct loopback_pair *pair);
void assert_no_completion(struct loopback_pair *pair);

/* Posts to the first QP. */
void post(struct loopback_pair *pair, struct ibv_send_wr *wr);

/* Posts @wr, and takes its completion, a success. */
void complete(struct loopback_pair *pair, struct ibv_send_wr *wr);

/* A write of SMALL bytes to the start of the second half. @sge: kept. */
struct ibv_send_wr small_write(struct loopback_pair *pair, struct ibv_sge *sge);

/* Makes a pair and writes until a write is unloaded. @make: as pair_connect(). */
void open_unloading_made(struct loopback_pair *pair, pair_make_fn *make);
void open_unloading(struct loopback_pair *pair);

/* A QP whose send queue has room for a list. */
struct ibv_qp *make_deep(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/*
 * Posts a list of writes of SMALL bytes of @value; only the last is signalled. @to: LIST_BYTES of
 * the second QP's memory. Return: true if the last write succeeded.
 */
bool write_list(struct loopback_pair *pair, char *to, uint32_t rkey, int value);

#endif
