/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How devices are attached: generic netlink, rather than configfs, because to attach is one
 * transaction that either comes about or says in words why not, and because it happens in the
 * caller's own process, so that his keyrings are there to be searched. See include/uapi/weir_blk.h.
 */
#ifndef WEIR_KERNEL_BLK_NETLINK_H
#define WEIR_KERNEL_BLK_NETLINK_H

int weir_blk_netlink_init(void);
void weir_blk_netlink_exit(void);

#endif
