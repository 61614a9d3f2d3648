/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The responder of a queue pair: requests of the peer, and the responses to them.
 */
#ifndef WEIR_SOFTNIC_ROCE_RESPONDER_H
#define WEIR_SOFTNIC_ROCE_RESPONDER_H

#include "softnic/roce/qp.h"

void roce_responder_init(struct roce_qp *qp);

/** roce_responder_input() - deal with a request; @grh for UD */
void roce_responder_input(struct roce_qp *qp, const struct roce_packet *p, const uint8_t *grh);

/** roce_responder_output() - write the next response packet; its length, or 0 */
size_t roce_responder_output(struct roce_qp *qp, uint8_t *bytes);

/** roce_responder_end() - give back the receive in use; no request is accepted any more */
void roce_responder_end(struct roce_qp *qp);

/** roce_responder_nak() - send a NAK or RNR NAK with @psn after the responses pending */
void roce_responder_nak(struct roce_qp *qp, uint8_t syndrome, uint64_t psn);

/**
 * roce_responder_answer() - execute a read or atomic that arrived in order
 *
 * Return: 0, or the syndrome of the NAK.
 */
uint8_t roce_responder_answer(struct roce_qp *qp, const struct roce_packet *p);

/** roce_responder_answer_again() - send the response of a duplicate read or atomic, if kept */
void roce_responder_answer_again(struct roce_qp *qp, const struct roce_packet *p, uint64_t psn);

#endif
