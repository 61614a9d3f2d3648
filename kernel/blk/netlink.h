/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaches devices over generic netlink instead of configfs. Attaching is one transaction that
 * either succeeds or reports a reason, and runs in the caller's process, whose keyrings the kernel
 * can search. See include/uapi/weir_blk.h.
 */
#ifndef WEIR_KERNEL_BLK_NETLINK_H
#define WEIR_KERNEL_BLK_NETLINK_H

#include <linux/types.h>

/*
 * Tells the agent of /dev/weirN that a look would find something new. The agent looks from time to
 * time, too: without memory, the message is left out. Context: process; sleeps.
 */
void weir_blk_netlink_tell(u32 number);

int weir_blk_netlink_init(void);
void weir_blk_netlink_exit(void);

#endif
