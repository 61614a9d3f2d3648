/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that is played by a test, and answers the offers of the first QP of the pair: it copies
 * when the test says so. Failures end the test.
 */
#ifndef WEIR_TESTS_PRELOAD_UNLOAD_ANSWERING_PEER_H
#define WEIR_TESTS_PRELOAD_UNLOAD_ANSWERING_PEER_H

#include "tests/preload/unload/forger.h"

/* Where offers are heard. Return: a descriptor. */
int answerer_listen(void);

/* The next offer of @qp, and where it comes from. Return: the length of that. */
socklen_t answerer_hear(int fd, const struct ibv_qp *qp, struct wire_discovery_offer *offer,
			struct sockaddr_un *from);

/* The first asks; nobody answers for the second but this test. */
struct ibv_qp *answerer_make(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/* Takes @offer, and the first message, which is empty: nothing comes before that has its return. */
void answerer_greet(struct forger *f, struct wire_discovery_offer *offer,
		    const struct sockaddr_un *to, socklen_t length);

/* Says that so many writes are done, and perhaps that no more will be, to where @asked says. */
void answerer_return(struct forger *f, const struct wire_discovery_offer *asked, uint16_t done,
		     bool is_refused);

#endif
