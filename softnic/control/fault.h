/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Faults on demand: what a test wants to go wrong, as the options of option.h say.
 *
 * Whatever is random is a function of the seed, of which queue pair of the process it is
 * (the first that was made, the second...) and of which operation of that queue pair. So
 * the same program with the same seed meets the same faults, however its threads run.
 */
#ifndef WEIR_SOFTNIC_CONTROL_FAULT_H
#define WEIR_SOFTNIC_CONTROL_FAULT_H

#include "option.h"
#include "softnic/qp/resp.h"

/** fault_open() - the process opens the device: what WEIR_SOFTNIC wants holds from now on */
void fault_open(void);

/** fault_init_qp() - a queue pair was made: the next in order */
void fault_init_qp(struct qp *qp);

/**
 * fault_set() - change an option while the program runs
 *
 * "After N operations" counts from now; N = 0 is at once.
 *
 * Context: the engine's thread.
 * Return: 0, or -EINVAL if there is no such fault or value.
 */
int fault_set(uint32_t option, uint64_t value);

/** fault_is_gone() - has the device disappeared? Whatever would make something fails then. */
bool fault_is_gone(void);

/** fault_port_is_down() - by our own fault; peers look at shared_life */
bool fault_port_is_down(void);

/** fault_mr_take() - may so many bytes more be registered? If so the caller owes a give. */
bool fault_mr_take(uint64_t bytes);
void fault_mr_give(uint64_t bytes);

/** fault_mr_change() - may so many bytes take the place of others? Less always may. */
bool fault_mr_change(uint64_t from, uint64_t to);

extern bool fault_any; /* has there been any to look for? Never goes back to false. */

int fault_inject(struct qp *qp, const struct send_wqe *wqe);

/**
 * fault_step() - what goes wrong with the work request at the head of a send queue, if anything
 * @qp: linked
 * @wqe: the request
 *
 * Context: qp->lock held, before each step of it.
 * Return: 0 if it is to be done, or how it ends instead: as resp_step().
 */
static inline int fault_step(struct qp *qp, const struct send_wqe *wqe)
{
	if (load_relaxed(&qp->to->peer->pub->life.down))
		return RESP_SILENT;
	return load_relaxed(&fault_any) ? fault_inject(qp, wqe) : 0;
}

#endif
