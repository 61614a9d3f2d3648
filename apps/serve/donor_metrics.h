/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Metrics of a donor and of its file servers. */
#ifndef WEIR_APPS_SERVE_DONOR_METRICS_H
#define WEIR_APPS_SERVE_DONOR_METRICS_H

#include "apps/metrics/exposition.h"

struct fs_tenants;

extern const struct metric_group donor_metrics, donor_identity_metrics, file_server_metrics;

/*
 * Writes the metrics of the tenants' donor. Waits for the donor's thread, so it must have returned
 * before weir_donor_close() is called.
 *
 * Context: any thread but the donor's.
 * Return: 0; -ENOMEM.
 */
int donor_metrics_collect(struct exposition *x, struct fs_tenants *tenants);

#endif
