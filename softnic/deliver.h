/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a work request goes, and what becomes of it there.
 */
#ifndef SOFTNIC_DELIVER_H
#define SOFTNIC_DELIVER_H

#include "qp.h"

/**
 * deliver_step() - one step of the work request at the head of a send queue
 * @qp: its queue pair, lock held
 *
 * Return: how it ended, IBV_WC_SUCCESS if all is done, or RESP_*. With RESP_SILENT the other end,
 * qp->to, is not known or does not answer.
 */
int deliver_step(struct qp *qp);

/** deliver_give_up() - whoever is waited for has not answered in time. UC or UD, lock held. */
void deliver_give_up(struct qp *qp);

#endif
