/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs whose peer on another host is gone.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_LOST_H
#define WEIR_SOFTNIC_QP_FAR_LOST_H

#include <stdbool.h>
#include <stdint.h>

struct qp;

/** lost_declare() - the peer is gone: the queue pair fails, the listener hears; qp->lock held */
void lost_declare(struct qp *qp);

/**
 * lost_listen() - hear of queue pairs whose peers are gone
 * @fn: called on the engine thread without locks, after one or more were lost; see lost_has()
 *
 * Context: Any thread.
 */
void lost_listen(void (*fn)(void));

/** lost_has() - is the peer of a queue pair of this process gone? nic.lock not held */
bool lost_has(uint32_t qpn);

#endif
