/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaches devices over generic netlink instead of configfs. Attaching is one transaction that
 * either succeeds or reports a reason, and runs in the caller's process, whose keyrings the kernel
 * can search. See include/uapi/weir_blk.h.
 */
#ifndef WEIR_KERNEL_BLK_NETLINK_H
#define WEIR_KERNEL_BLK_NETLINK_H

int weir_blk_netlink_init(void);
void weir_blk_netlink_exit(void);

#endif
