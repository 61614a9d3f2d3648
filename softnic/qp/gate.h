/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gates. A queue pair admits its peer when the program connects it. A program that connects first,
 * and then demands a proof over the queue pair, closes the queue pair's gate before it connects.
 *
 * While the gate is closed, the peer gets no descriptor: neither of our memory or our files, nor of
 * the queue pair, its SRQ and its completion channel. Short messages travel in the sockets between
 * the two engines. The receiving engine takes the receive and fills the buffers itself, because
 * the sender cannot reach them. All else waits until the gate opens. Then the peer gets what other
 * peers get when the queue pair is connected, and messages are copied as always. The engine fills
 * no more buffers for that peer.
 *
 * Each end has a gate of its own. Between hosts a gate changes nothing.
 */
#ifndef WEIR_SOFTNIC_QP_GATE_H
#define WEIR_SOFTNIC_QP_GATE_H

#include "qp.h"

/** gate_is_closed() - whether the peer gets nothing yet; nic.lock held */
static inline bool gate_is_closed(const struct qp *qp)
{
	return qp->gate.is_present && !qp->gate.is_open;
}

/** gate_reset() - close the gate again, if there is one; qp->lock held */
void gate_reset(struct qp *qp);

/**
 * gate_is_used() - whether the WR at the head of the send queue goes to a closed gate
 *
 * A message in flight stays in flight until it is answered. Context: qp->lock held.
 */
static inline bool gate_is_used(const struct qp *qp)
{
	return qp->to->is_gated || qp->gate_sender.is_out;
}

/**
 * gate_step() - execute one step of a WR whose peer has closed its gate
 *
 * Arguments, context and result are those of resp_step(); RESP_SILENT also means that the WR waits
 * for an answer, or for the gate. RDMA and atomics fail once the peer confirms that it is closed.
 */
int gate_step(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges,
	      const void *inlined);

/**
 * gate_found() - the peer announces the queue pair, but keeps it behind a gate
 *
 * Context: nic.lock and qp->lock held.
 * Return: 0, or -EPROTO if @r cannot be behind a gate.
 */
int gate_found(struct qp *qp, struct remote_qp *r);

/** gate_answered() - a peer took a message, or refused it; on the engine thread, no locks held */
void gate_answered(struct shm_peer *peer, const struct shm_msg *m);

/**
 * gate_take() - take a message that a client sent to a gate
 * @g: the client
 * @bytes: m->value of them
 *
 * A message that was taken before is only answered again, and so is one to an open gate.
 * Context: nic.lock held.
 */
void gate_take(struct shm_client *g, const struct shm_msg *m, const void *bytes);

/**
 * softnic_gate_close() - make the peer wait until softnic_gate_open()
 *
 * For libraries that find this function by its name. A reset closes the gate again.
 *
 * Context: Any thread, no locks held.
 * Return: 0, or -EINVAL for other queue pairs than RC in the reset state.
 */
__attribute__((visibility("default"))) int softnic_gate_close(struct ibv_qp *qp);

/**
 * softnic_gate_open() - admit the connected peer, which has proven itself to the program
 *
 * Context: as above.
 */
__attribute__((visibility("default"))) void softnic_gate_open(struct ibv_qp *qp);

#endif
