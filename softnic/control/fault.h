/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault injection for tests, by the options of option.h.
 *
 * Each random draw is a function of the seed, the queue pair's rank by creation, and the WR's
 * number in the queue pair. So the same program with the same seed meets the same faults, however
 * its threads run.
 */
#ifndef WEIR_SOFTNIC_CONTROL_FAULT_H
#define WEIR_SOFTNIC_CONTROL_FAULT_H

#include "option.h"
#include "softnic/qp/resp.h"

/** fault_open() - apply the options of WEIR_SOFTNIC when the process opens the device */
void fault_open(void);

/** fault_init_qp() - number a new queue pair */
void fault_init_qp(struct qp *qp);

/**
 * fault_set() - change an option while the program runs
 *
 * "After N operations" counts from now; N = 0 means at once.
 *
 * Context: Engine thread.
 * Return: 0, or -EINVAL if @option is not a fault or @value is out of range.
 */
int fault_set(uint32_t option, uint64_t value);

/** fault_is_gone() - has the device disappeared? If so, all creating verbs fail. */
bool fault_is_gone(void);

/** fault_port_is_down() - is our port down? Peers read shared_life instead. */
bool fault_port_is_down(void);

/** fault_mr_take() - charge @bytes of registered memory; if true, the caller owes a give */
bool fault_mr_take(uint64_t bytes);
void fault_mr_give(uint64_t bytes);

/** fault_mr_change() - change a charge from @from to @to bytes; never fails if @to is smaller */
bool fault_mr_change(uint64_t from, uint64_t to);

extern bool fault_any; /* a fault was set at some time; never goes back to false */

/* What happens to a packet to another host. */
enum {
	FAULT_LOSES = 1 << 0,
	FAULT_DOUBLES = 1 << 1,
	FAULT_DELAYS = 1 << 2, /* the next packet overtakes it */
	FAULT_SPOILS = 1 << 3,
};

/** fault_packet() - draw the faults of packet @number of this process: FAULT_* */
uint32_t fault_packet(uint64_t number);

/** fault_packet_delay_ns() - how late packets leave now */
uint64_t fault_packet_delay_ns(void);

int fault_inject(struct qp *qp, const struct send_wqe *wqe);

/**
 * fault_step() - inject the faults of the WR at the head of a send queue
 * @qp: the queue pair, with qp->to mapped
 * @wqe: the WR
 *
 * Context: qp->lock held, before each step of the WR.
 * Return: 0 to execute the step, or its result instead, as from resp_step().
 */
static inline int fault_step(struct qp *qp, const struct send_wqe *wqe)
{
	if (load_relaxed(&qp->to->peer->pub->life.down))
		return RESP_SILENT;
	return load_relaxed(&fault_any) ? fault_inject(qp, wqe) : 0;
}

#endif
