/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester of a queue pair: the send queue, its packets, and their acknowledgements.
 */
#ifndef WEIR_SOFTNIC_ROCE_REQUESTER_H
#define WEIR_SOFTNIC_ROCE_REQUESTER_H

#include "softnic/roce/qp.h"

void roce_requester_init(struct roce_qp *qp);

/** roce_requester_post() - append a valid work request; -ENOMEM if the queue is full */
int roce_requester_post(struct roce_qp *qp, const struct roce_wqe *wqe);

/** roce_requester_output() - write the next request packet; its length, or 0 */
size_t roce_requester_output(struct roce_qp *qp, uint8_t *bytes, uint64_t *path, uint64_t now_ns);

/** roce_requester_input() - deal with a response */
void roce_requester_input(struct roce_qp *qp, const struct roce_packet *p, uint64_t now_ns);

/** roce_requester_heard() - a packet for this queue pair came: the peer lives */
void roce_requester_heard(struct roce_qp *qp, uint64_t now_ns);

/** roce_requester_fail() - end the oldest open WQE with @status, flush the others; once */
void roce_requester_fail(struct roce_qp *qp, enum roce_status status);

/** roce_requester_request_end() - PSN after the packet or piece of a read that begins at @psn */
uint64_t roce_requester_request_end(const struct roce_qp *qp, const struct roce_wqe *wqe,
				    uint64_t psn);

/** roce_requester_end() - all packets of the oldest open WQE are acknowledged */
void roce_requester_end(struct roce_qp *qp);

/** roce_requester_end_stuck() - fail if the WQE that cannot be sent is the oldest open one */
void roce_requester_end_stuck(struct roce_qp *qp);

/** roce_requester_rewind() - transmit again from the first PSN that is not acknowledged */
void roce_requester_rewind(struct roce_qp *qp);

/** roce_requester_wqe() - the WQE at a position of the ring */
static inline struct roce_wqe *roce_requester_wqe(struct roce_qp *qp, uint32_t position)
{
	return &qp->config.wqes[position & (qp->config.send_size - 1)];
}

/** roce_requester_expects_data() - whether the WQE ends by a response of its own, no ACK */
static inline bool roce_requester_expects_data(const struct roce_wqe *wqe)
{
	return wqe->op >= ROCE_OP_READ;
}

#endif
