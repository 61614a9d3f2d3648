/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Metrics that can be read from outside a process, by the means of weir stat, weir top and weir
 * pool: those of sessions, of softnic, of the tenants of weir share, and of a pool.
 */
#ifndef WEIR_APPS_METRICS_HOST_METRICS_H
#define WEIR_APPS_METRICS_HOST_METRICS_H

#include "apps/metrics/exposition.h"

#include <sys/types.h>

extern const struct metric_group build_metrics, session_metrics, request_metrics, softnic_metrics,
	softnic_host_metrics, softnic_peer_metrics, share_metrics, pool_metrics, blk_metrics,
	host_donor_metrics, host_mount_metrics, host_operation_metrics, pool_group_metrics,
	pool_donor_metrics, span_metrics, failure_metrics, share_class_metrics;

/*
 * Each writes its group. @pid: only this process; 0: all processes of this user, or of all users
 * if root asks. Return: 0; -ENOMEM; errors of /proc and socket(2).
 */
int session_metrics_collect(struct exposition *x, pid_t pid);
int softnic_metrics_collect(struct exposition *x, pid_t pid);

/*
 * Writes the tenants of the weir share at @socket that this user may see; none if nobody listens
 * there. Return: 0; errors of share_snapshot_take().
 */
int share_metrics_collect(struct exposition *x, const char *socket);

/* Writes the donors whose page this user may read. Return: 0; errors of donor_list_add(). */
int host_donor_metrics_collect(struct exposition *x);

/* Writes the mounts whose page this user may read. Return: 0; errors of mount_list_add(). */
int host_mount_metrics_collect(struct exposition *x);

/*
 * Writes the block devices of this host; none without the module. Return: 0; -ENOMEM; errors of
 * netlink.
 */
int blk_metrics_collect(struct exposition *x);

struct weir_pool_client;

/*
 * Writes the pool's groups; without @client nothing. @pool: its name, for the label. Return: 0 or
 * -ENOMEM.
 */
int pool_metrics_collect(struct exposition *x, const char *pool, struct weir_pool_client *client);

/* Writes this process's counts of spans; without a collector nothing. */
void span_metrics_collect(struct exposition *x);

/* Writes the version of this command. */
void build_metrics_collect(struct exposition *x);

#endif
