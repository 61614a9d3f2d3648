/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ends of a connection in two processes: the test, and a puppet. The puppet is the test's
 * own program started again; it obeys commands on a socket and answers with the result.
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

/* Exchanged by the ends before they connect. */
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
	struct ibv_qp_cap cap; /* the queue pair's actual limits, perhaps above those requested */
	struct ibv_mr *mr;
	uint8_t *buf; /* BUF_SIZE bytes, registered with @access */
	int access;
	struct endpoint_name remote;
	bool shares; /* context, domain and region belong to another end */
};

/* Connection attributes, for tests that need others. */
struct manners {
	uint8_t min_rnr_timer, rnr_retry, timeout, retry_cnt;
	bool bears_no_reads, makes_no_reads; /* no atomics either: a depth of zero */
};
extern const struct manners plain;

void end_open(struct endpoint *e, int access);
/* On another device than the first. */
void end_open_on(struct endpoint *e, int access, int device);
/* Open another queue pair over the same region. */
void end_open_sharing(struct endpoint *e, const struct endpoint *other);
/* Open with all rights, and a completion queue from @make. */
void end_open_with(struct endpoint *e, struct ibv_cq *(*make)(struct endpoint *e));
struct ibv_cq *make_cq_of_three(struct endpoint *e);
void end_connect(struct endpoint *e, const struct endpoint_name *remote, const struct manners *m);
void end_close(struct endpoint *e);
struct endpoint_name end_name(const struct endpoint *e);

enum puppet_order {
	ORDER_POST_RECV = 1, /* [offset, length): result of ibv_post_recv() */
	ORDER_POST_WRONG_RECV, /* the same, with an invalid key */
	ORDER_SEND, /* [offset, length), solicited if value */
	ORDER_SEND_MANY, /* value times, each after the completion of the last */
	ORDER_ECHO, /* value times: sleep, receive at offset, send 8 bytes back */
	ORDER_POLL, /* wait for a completion: wc */
	ORDER_ARM, /* only for solicited completions if value */
	ORDER_WAIT_EVENT, /* block in ibv_get_cq_event(), then acknowledge */
	ORDER_PEEK, /* the 8 bytes at offset: value */
	ORDER_POKE, /* value to offset */
	ORDER_FILL, /* [offset, length) with bytes of value */
	ORDER_DEREGISTER, /* and unmap */
	ORDER_TO_ERROR,
	ORDER_ASYNC_EVENT, /* wait for an event: its type in value */
	ORDER_SPIN_ADD, /* value times fetch-and-add of 1 at the other end's offset */
	ORDER_WRITE_ONCE, /* 8 bytes */
	ORDER_WRITE_FOR_EVER, /* the whole region; answer first */
	ORDER_FORK, /* value: a child that idles for a while */
	ORDER_FORK_RAW, /* the same, hidden from softnic */
	ORDER_CPU_NS, /* value: CPU time of the process so far */
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

/*
 * Start the test's program again, with @option and the number of a socket; *@fd is the other
 * end.
 */
pid_t start_again(const char *option, int *fd);

/* Start a puppet whose region has the rights @access, and connect @e to it. */
void puppet_start(struct puppet *p, struct endpoint *e, int access, const struct manners *m);
struct puppet_answer tell(struct puppet *p, enum puppet_order order, uint64_t offset,
			  uint64_t length, uint64_t value);
/* The two halves of tell(), for actions in between. */
void give_order(struct puppet *p, enum puppet_order order, uint64_t offset, uint64_t length,
		uint64_t value);
struct puppet_answer take_answer(struct puppet *p);
/* Close both ends in good order; the puppet must exit with 0. */
void puppet_stop(struct puppet *p, struct endpoint *e);
/* kill -9; @e stays. */
void puppet_kill(struct puppet *p);

/* Both ends as a test's state, with setup and teardown. */
struct puppet_pair {
	struct endpoint e;
	struct puppet p;
};
int pair_up(void **state);
int pair_down(void **state);

/* A work request with one piece; the caller may complete it. */
struct test_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};
struct test_wr *wr_make(struct test_wr *w, struct endpoint *e, enum ibv_wr_opcode op,
			uint64_t offset, uint32_t length, uint64_t remote_offset);
int post(struct endpoint *e, struct test_wr *w);
/*
 * Set the data of the ibv_wr_* request just begun: inline where supported, else from
 * INLINE_STAGE in the region.
 */
#define INLINE_STAGE 2048
void wr_give_inline(struct endpoint *e, const char *text);

/* Wait for a completion. */
struct ibv_wc wait_wc(struct endpoint *e);
/* The same, polling without a pause. */
struct ibv_wc wait_wc_awake(struct endpoint *e);
/* Post, wait, check the status. */
void do_wr(struct endpoint *e, struct test_wr *w, enum ibv_wc_status status);
int post_recv(struct endpoint *e, uint64_t wr_id, uint64_t offset, uint32_t length);
/* Post @n short writes, numbered from 0. */
void write_times(struct endpoint *e, int n);
/* Wait for an event of the endpoint's CQ, and acknowledge it. */
void wait_event(struct endpoint *e);

uint64_t now_ms(void);

/* CPU time of this process. */
uint64_t cpu_ns(void);

/* A memfd that cannot shrink, which peers may map. */
int sealed_file(size_t size);

/* Main of every test: runs the puppet if started as one. */
int test_main(int argc, char **argv, int (*tests)(void));

#endif
