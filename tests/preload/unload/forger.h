/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer played by a test: sends its own offers, or answers, and forges slots. The pair's second QP
 * is the victim. Failures end the test.
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
 * struct forger - the initiator's end of a slot buffer
 * @qp: posts to the buffer; @last_return: receives returns; @slot: source of posts
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
		uint64_t last_return;
	} __attribute__((aligned(64))) own;
	struct wire_discovery_offer offer;
	struct wire_discovery_offer answer;
	uint16_t sent;
	char area[3 * AREA]; /* the middle is registered */
	struct ibv_mr *target;
};

/* Opens a forger with a slot buffer; @rights: to its area. */
void forger_open(struct forger *f, int rights);

/* Opens a forger without a buffer; @make: as pair_connect(). Of @f only the descriptor may be set.
 */
void forger_begin(struct forger *f, pair_make_fn *make, int rights);
void forger_close(struct forger *f);

/* Makes a QP that weir does not track. */
struct ibv_qp *forger_make_hidden(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/* Gets a new buffer; an earlier buffer with a refused write is gone then. */
void forger_buffer(struct forger *f);

/* Makes the forger's QP again; and connects it to the QP that f->answer names. */
void forger_qp(struct forger *f);
void forger_connect(struct forger *f);

/* Writes a slot. @length: of the whole write, head included. */
void forger_write(struct forger *f, uint64_t addr, uint32_t length, uint32_t tag);

/* Waits for the next return with news. */
struct wire_unload_return forger_returned(struct forger *f, uint16_t done);

/* Makes a new offer. */
struct wire_discovery_offer forger_offer(struct forger *f);

/* Computes the MAC with the queue pairs' secrets, or with @lie in their place. */
void forger_seal(const struct loopback_pair *pair, struct wire_discovery_offer *offer,
		 uint32_t lie);

/* Sends @offer until its answer arrives in f->answer. */
void forger_ask(struct forger *f, const struct wire_discovery_offer *offer);

/* A socket of this user's, at a name that the kernel chooses. */
int forger_socket(void);

/* The name of the user's socket @number. Return: the length of the address. */
socklen_t forger_name(int number, struct sockaddr_un *at);

/* Sends to all of the user's sockets. */
void forger_send(int fd, const void *bytes, size_t size);

static inline uint64_t forger_area(const struct forger *f)
{
	return (uintptr_t)f->area + AREA;
}

/* Writes refused in this process so far. */
uint64_t forger_refusals(void);

#endif
