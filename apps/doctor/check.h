/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The checks. Each adds findings, changes nothing, and opens no verbs device. */
#ifndef WEIR_APPS_DOCTOR_CHECK_H
#define WEIR_APPS_DOCTOR_CHECK_H

#include "apps/doctor/report.h"

/* device.c */
void check_rdma_devices(struct report *report);
void check_softnic(struct report *report);
void check_encryption(struct report *report);

/* limits.c */
void check_locked_memory(struct report *report);
void check_huge_pages(struct report *report);
void check_memory(struct report *report);
void check_donor_memory(struct report *report); /* of the donors of this host */

/* fuse.c */
void check_fuse(struct report *report);

/* mounts.c; asks each mount of weir on this machine, at most MOUNTS_MAX, and tries its path */
#define MOUNTS_MAX 8
struct far_host;
void check_mounts(struct report *report, const struct far_host *path);

/* configured.c; @donor_path: of mounts, whose key is in fstab */
/* The device of --device, or else $WEIR_DEVICE. Return: false after a finding: it is not here. */
bool check_wanted_device(struct report *report, const char *wanted);
void check_fstab(struct report *report, const struct far_host *donor_path);
void check_settings(struct report *report); /* of weir.toml */

/* pool.c; @path: as in check_donor_path() */
struct weir_pool_client;
void check_pool(struct report *report, struct weir_pool_client *client,
		const struct far_host *path);

/* port.c */
void check_port(struct report *report);

/* rxe.c */
void check_soft_roce(struct report *report);

/**
 * fix_soft_roce() - load rdma_rxe and add a device on the interface of the default route
 *
 * No-op if there is an RDMA device. Reports each step on standard error.
 *
 * Return: false if a step failed.
 */
bool fix_soft_roce(void);
bool fix_fuse(void); /* loads the module if /dev/fuse is missing; false if that failed */

/**
 * check_path() - prove the path: lend memory in a child process, then write, read back and compare
 * @device: from device_choose()
 */
void check_path(struct report *report, const char *device);

#endif
