/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgements that wait for the program's reply. Some programs answer each message by one of
 * their own. Then the acknowledgement leaves with the reply, as one train. The peer, which polls
 * for its completion, finds both at once, and neither end wakes its engine. TCP calls that a
 * delayed acknowledgement in interactive mode.
 *
 * An acknowledgement waits only after several replies in a row that came soon, and for 100 us at
 * most. A reply that does not come ends the waiting until replies come again. None waits if a
 * completion queue has a channel: ib_send_lat -e fails if it finds both completions at once.
 *
 * Context of all: qp->lock held; a connected far queue pair.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_REPLY_H
#define WEIR_SOFTNIC_QP_FAR_REPLY_H

#include <stdbool.h>
#include <stdint.h>

struct qp;

/** reply_heard() - a batch of packets is dealt with, and an acknowledgement may be owed */
void reply_heard(struct qp *qp, uint64_t now_ns);

/** reply_posted() - work requests of the program go to the transport */
void reply_posted(struct qp *qp);

/**
 * reply_is_awaited() - must the transport's output wait?
 *
 * On false, a request leaves before the acknowledgement, which may be the shorter packet of the
 * two, as the last of a train must be.
 */
bool reply_is_awaited(struct qp *qp, uint64_t now_ns);

/** reply_is_owed() - does an acknowledgement wait? Then it must leave before the queue pair ends */
bool reply_is_owed(const struct qp *qp);

#endif
