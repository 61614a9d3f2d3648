/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Demand of small writes on the peers' NICs: the reach of their translation caches. Each queue pair
 * is counted alone, as if its peer's NIC received no other writes.
 *
 * Context of all: with tracked_qp_life.
 */
#ifndef WEIR_PRELOAD_UNLOAD_PRESSURE_H
#define WEIR_PRELOAD_UNLOAD_PRESSURE_H

struct weir_path_selector;

/* Adds the counts of a queue pair that will write no more; once. A QP without counts adds nothing.
 */
void pressure_add(const struct weir_path_selector *route);

/* Prints the sums in one line, if there is anything. */
void pressure_report(void);

#endif
