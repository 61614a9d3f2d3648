/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What small writes ask of the peers' NICs: how far their translation caches would reach. Each
 * queue pair is counted for itself, as if its writes were all that its peer's NIC gets.
 *
 * Context of all: with tracked_qp_life.
 */
#ifndef WEIR_PRELOAD_UNLOAD_PRESSURE_H
#define WEIR_PRELOAD_UNLOAD_PRESSURE_H

struct weir_path_selector;

/* What a queue pair that will write no more has counted; once. One that has not counted: nothing. */
void pressure_add(const struct weir_path_selector *route);

/* What they all have, in one line, if there is anything. */
void pressure_report(void);

#endif
