/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The checks. Each adds one finding or several, changes nothing, and opens no verbs device. */
#ifndef WEIR_DOCTOR_CHECK_H
#define WEIR_DOCTOR_CHECK_H

#include "apps/doctor/report.h"

/* device.c */
void check_rdma_devices(struct report *report);
void check_softnic(struct report *report);

/* limits.c */
void check_locked_memory(struct report *report);
void check_huge_pages(struct report *report);
void check_memory(struct report *report);

/* fuse.c */
void check_fuse(struct report *report);

/* port.c */
void check_port(struct report *report);

/* rxe.c */
void check_soft_roce(struct report *report);

/**
 * fix_soft_roce() - load rdma_rxe and put a device on the interface of the default route
 *
 * Does nothing where there is an RDMA device. Says on standard error what it does.
 */
void fix_soft_roce(void);
void fix_fuse(void); /* loads the module if /dev/fuse is missing */

/**
 * check_path() - prove the path: lend memory in a child, write, read back, compare
 * @device: what device_choose() gave
 */
void check_path(struct report *report, const char *device);

#endif
