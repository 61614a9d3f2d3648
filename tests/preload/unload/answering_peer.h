/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer played by a test, which answers the offers of the pair's first QP and copies only when
 * told. Failures end the test.
 */
#ifndef WEIR_TESTS_PRELOAD_UNLOAD_ANSWERING_PEER_H
#define WEIR_TESTS_PRELOAD_UNLOAD_ANSWERING_PEER_H

#include "tests/preload/unload/forger.h"

/* Opens the socket for offers. Return: a descriptor. */
int answerer_listen(void);

/* Waits for the next offer of @qp; @from receives the sender. Return: the length of @from. */
socklen_t answerer_hear(int fd, const struct ibv_qp *qp, struct wire_discovery_offer *offer,
			struct sockaddr_un *from);

/* The first QP sends offers; only this test answers for the second. */
struct ibv_qp *answerer_make(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/* Accepts @offer, and answers the first, empty message with a return; no write comes before. */
void answerer_greet(struct forger *f, struct wire_discovery_offer *offer,
		    const struct sockaddr_un *to, socklen_t length);

/* Returns: @done writes are done, and with @is_refused none will follow. @asked says where to
 * write. */
void answerer_return(struct forger *f, const struct wire_discovery_offer *asked, uint16_t done,
		     bool is_refused);

#endif
