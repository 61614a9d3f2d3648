/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Encryption of a connected far queue pair: the host of softnic/seal. The option encrypt says
 * whether queue pairs ask for it (2), answer a peer or a program that asks (1), or refuse (0).
 *
 * Context of all: qp->lock held, unless said otherwise.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_FAR_SEAL_H
#define WEIR_SOFTNIC_QP_FAR_FAR_SEAL_H

#include "softnic/qp_far/far.h"
#include "softnic/udp/socket.h"

/**
 * far_seal_load() - load the cryptographic library, unless encryption is off
 *
 * Loading takes the dynamic linker's lock. A thread may hold that lock and wait for ours, for
 * example in the constructor of a library. So callers load before they lock.
 *
 * Context: no locks held but that of poller.c.
 */
void far_seal_load(void);

/** far_seal_load_early() - the same when a device is opened, if all connections ask */
void far_seal_load_early(void);

/** far_seal_init() - at RTR; 0 or -ENOMEM; the caller owes far_seal_fini() in both cases */
int far_seal_init(struct qp *qp, struct far *f, const struct ibv_qp_attr *attr);

/** far_seal_fini() - wipe and free the agreement, if there is one */
void far_seal_fini(struct far *f);

/** far_seal_start() - at RTS */
void far_seal_start(struct qp *qp);

/**
 * far_seal_may_send() - send the messages of the agreement that are due
 *
 * Context: Between send_begin() and send_end().
 * Return: false if no RoCE packet may leave yet.
 */
bool far_seal_may_send(struct qp *qp);

/**
 * far_seal_output() - as roce_qp_output(), sealed if that is agreed, and sent
 *
 * Context: Between send_begin() and send_end().
 * Return: false if nothing is to be sent.
 */
bool far_seal_output(struct qp *qp, uint64_t now_ns);

/** far_seal_message() - a message of the agreement came from the peer's address */
void far_seal_message(struct qp *qp, const struct agree_message *m);

/**
 * far_seal_open() - open a packet in place
 *
 * Return: false if it is refused. Otherwise @decoded is the packet in it.
 */
bool far_seal_open(struct qp *qp, const struct udp_packet *packet, struct roce_packet *decoded);

/**
 * softnic_seal_ask() - want encryption for a queue pair, unless clear text is decided
 *
 * For libraries that find this function by its name. At RTS or before, and before the first work
 * request.
 *
 * Context: Any thread, no locks held.
 */
__attribute__((visibility("default"))) void softnic_seal_ask(struct ibv_qp *qp);

/**
 * softnic_seal_state() - what protects the packets of a queue pair
 * @session: 32 bytes, the same at both ends and of no other connection; written if encrypted
 * @can: set to whether this end would encrypt if its peer did
 *
 * Context: as above.
 * Return: the cipher's name; "none" in clear text; NULL if no network is between the ends.
 */
__attribute__((visibility("default"))) const char *
softnic_seal_state(struct ibv_qp *qp, uint8_t *session, int *can);

#endif
