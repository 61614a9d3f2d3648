/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes of other hosts listen where: a process that has answered a request did.
 *
 * Context of all: cm_lock held.
 */
#ifndef WEIR_SOFTNIC_CM_FAR_LISTENERS_H
#define WEIR_SOFTNIC_CM_FAR_LISTENERS_H

#include "softnic/cm/cm.h"

/* The process that has queue pair @qpn has accepted the request of @id. */
void listeners_learn(const struct cm_id *id, uint32_t qpn);

/*
 * Whether the process that listened where @id calls has just ended: neighbor.h. Another may listen
 * there already. Only so many listeners are remembered; of others, no.
 */
bool listeners_have_lost(const struct cm_id *id);

#endif
