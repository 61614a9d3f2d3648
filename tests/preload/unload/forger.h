/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that is played by a test: it makes offers of its own, or answers, and forges what is in
 * the slots. What it forges for is the second QP of the pair. Failures end the test.
 */
#ifndef WEIR_TESTS_PRELOAD_UNLOAD_FORGER_H
#define WEIR_TESTS_PRELOAD_UNLOAD_FORGER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/support/loopback_pair.h"
#include "wire/discovery.h"

#define PATIENCE_MS 60000
#define AREA 4096u
#define HEAD 8u
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/**
 * struct forger - the other end of a buffer
 * @qp: posts to it; @told: where returns arrive; @slot: what is posted from
 */
struct forger {
	struct loopback_pair pair;
	int fd;
	uint64_t nonce;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct {
		struct wire_unload_slot slot;
		uint64_t told;
	} __attribute__((aligned(64))) own;
	struct wire_discovery_offer offer;
	struct wire_discovery_offer answer;
	uint16_t sent;
	char area[3 * AREA]; /* the middle is registered */
	struct ibv_mr *target;
};

/* One with a buffer to forge in; @rights: to its area. */
void forger_open(struct forger *f, int rights);

/* One without; @make: as pair_connect(). Only its descriptor may be set. */
void forger_begin(struct forger *f, pair_make_fn *make, int rights);
void forger_close(struct forger *f);

/* Weir leaves it alone. */
struct ibv_qp *forger_make_hidden(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/* A new buffer; one before, in which a write was refused, is gone then. */
void forger_buffer(struct forger *f);

/* Its own QP, anew; and that led to the one that f->answer names. */
void forger_qp(struct forger *f);
void forger_connect(struct forger *f);

/* Writes a slot. @length: of the whole write, head included. */
void forger_write(struct forger *f, uint64_t addr, uint32_t length, uint32_t tag);

/* The next return that says something new. */
struct wire_unload_return forger_returned(struct forger *f, uint16_t done);

/* A new offer. */
struct wire_discovery_offer forger_offer(struct forger *f);

/* Its MAC, as who knows the queue pairs makes it; @lie: who does not. */
void forger_seal(const struct loopback_pair *pair, struct wire_discovery_offer *offer,
		 uint32_t lie);

/* Sends @offer until its answer comes, which is f->answer then. */
void forger_ask(struct forger *f, const struct wire_discovery_offer *offer);

/* A socket of this user's, at a name that the kernel chooses. */
int forger_socket(void);

/* The user's socket of that number. Return: the length of its address. */
socklen_t forger_name(int number, struct sockaddr_un *at);

/* To all of the user's sockets. */
void forger_send(int fd, const void *bytes, size_t size);

static inline uint64_t forger_area(const struct forger *f)
{
	return (uintptr_t)f->area + AREA;
}

/* Writes that have been refused in this process so far. */
uint64_t forger_refusals(void);

#endif
