/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ends of a connection in two processes: the test, and a puppet that is the test's own
 * program started again, does what it is told over a socket and says what came of it.
 */
#ifndef WEIR_TESTS_SUPPORT_VERBS_PUPPET_H
#define WEIR_TESTS_SUPPORT_VERBS_PUPPET_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>
#include <infiniband/verbs.h>
#include "test_device.h"

enum {
	PATIENCE_MS = 60000,
	BUF_SIZE = 4 << 20,
	QUEUE_DEPTH = 16,
	INLINE_MAX = 256,
	SGES_MAX = 4,
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC,
};

/* What one end tells the other before they connect. */
struct endpoint_name {
	uint32_t qpn, rkey;
	uint64_t addr;
};

struct endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of both queues */
	struct ibv_qp *qp;
	struct ibv_qp_cap cap; /* what the queue pair was given: a device may give more */
	struct ibv_mr *mr;
	uint8_t *buf; /* BUF_SIZE bytes, registered with @access */
	int access;
	struct endpoint_name remote;
	bool shares; /* context, domain and region are another end's */
};

/* How ends connect, where a test wants it otherwise than these. */
struct manners {
	uint8_t min_rnr_timer, rnr_retry, timeout, retry_cnt;
	bool bears_no_reads, makes_no_reads; /* nor atomics: a depth of none, not of one */
};
extern const struct manners plain;

void end_open(struct endpoint *e, int access);
/* On another device than the first. */
void end_open_on(struct endpoint *e, int access, int device);
/* One more queue pair over the same region. */
void end_open_sharing(struct endpoint *e, const struct endpoint *other);
/* With all rights, and a completion queue that @make makes. */
void end_open_with(struct endpoint *e, struct ibv_cq *(*make)(struct endpoint *e));
struct ibv_cq *make_cq_of_three(struct endpoint *e);
void end_connect(struct endpoint *e, const struct endpoint_name *remote, const struct manners *m);
void end_close(struct endpoint *e);
struct endpoint_name end_name(const struct endpoint *e);

enum puppet_order {
	ORDER_POST_RECV = 1, /* [offset, length): result is what ibv_post_recv() says */
	ORDER_POST_WRONG_RECV, /* the same, with a key that is none */
	ORDER_SEND, /* [offset, length), solicited if value */
	ORDER_SEND_MANY, /* value times, each when the last one is done */
	ORDER_ECHO, /* value times: sleeps, receives at offset, sends 8 bytes back */
	ORDER_POLL, /* waits for a completion: wc */
	ORDER_ARM, /* for solicited ones only if value */
	ORDER_WAIT_EVENT, /* blocks in ibv_get_cq_event(), acknowledges */
	ORDER_PEEK, /* the 8 bytes at offset: value */
	ORDER_POKE, /* value to offset */
	ORDER_FILL, /* [offset, length) with bytes of value */
	ORDER_DEREGISTER, /* and unmap */
	ORDER_TO_ERROR,
	ORDER_ASYNC_EVENT, /* waits for one: value is its type */
	ORDER_SPIN_ADD, /* value times fetch-and-add of 1 at the other's offset */
	ORDER_WRITE_ONCE, /* 8 bytes */
	ORDER_WRITE_FOR_EVER, /* the whole region; answers first */
	ORDER_FORK, /* value: a child that does nothing for a while */
	ORDER_FORK_RAW, /* the same, and softnic does not learn of it */
	ORDER_CPU_NS, /* value: what the process used so far */
	ORDER_CLOSE, /* everything, in order */
};

struct puppet {
	pid_t pid;
	int fd;
	struct endpoint_name name;
};

struct puppet_answer {
	int result;
	uint64_t value;
	struct ibv_wc wc;
};

/* The test's program once more, with @option and the number of a socket, whose other end is *@fd. */
pid_t start_again(const char *option, int *fd);

/* Starts a puppet whose region has these rights and connects @e to it. */
void puppet_start(struct puppet *p, struct endpoint *e, int access, const struct manners *m);
struct puppet_answer tell(struct puppet *p, enum puppet_order order, uint64_t offset,
			  uint64_t length, uint64_t value);
/* The two halves of tell(), to have something happen meanwhile. */
void give_order(struct puppet *p, enum puppet_order order, uint64_t offset, uint64_t length,
		uint64_t value);
struct puppet_answer take_answer(struct puppet *p);
/* Closes both ends in good order; the puppet must exit with 0. */
void puppet_stop(struct puppet *p, struct endpoint *e);
/* kill -9; @e stays. */
void puppet_kill(struct puppet *p);

/* Both of them in a test's state, set up and taken down. */
struct puppet_pair {
	struct endpoint e;
	struct puppet p;
};
int pair_up(void **state);
int pair_down(void **state);

/* A work request with one piece, to fill in further. */
struct test_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};
struct test_wr *wr_make(struct test_wr *w, struct endpoint *e, enum ibv_wr_opcode op,
			uint64_t offset, uint32_t length, uint64_t remote_offset);
int post(struct endpoint *e, struct test_wr *w);
/*
 * What the ibv_wr_* request that has begun is to send: inline where that works, else from
 * INLINE_STAGE in the region.
 */
#define INLINE_STAGE 2048
void wr_give_inline(struct endpoint *e, const char *text);

/* Waits for one completion. */
struct ibv_wc wait_wc(struct endpoint *e);
/* The same, without a pause between two looks. */
struct ibv_wc wait_wc_awake(struct endpoint *e);
/* Posts, waits, checks the status. */
void do_wr(struct endpoint *e, struct test_wr *w, enum ibv_wc_status status);
int post_recv(struct endpoint *e, uint64_t wr_id, uint64_t offset, uint32_t length);

uint64_t now_ms(void);

/* What this process has used of the processors. */
uint64_t cpu_ns(void);

/* A memfd that cannot shrink: what peers may map. */
int sealed_file(size_t size);

/* Every test's main: plays the puppet if it was started as one. */
int test_main(int argc, char **argv, int (*tests)(void));

#endif
