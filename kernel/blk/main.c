// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <net/genetlink.h>

#include "kernel/blk/device.h"
#include "kernel/blk/netlink.h"
#include "kernel/blk/page/seal.h"

#define CREATE_TRACE_POINTS
#include "kernel/blk/trace.h"

static int __init weir_blk_module_init(void)
{
	int rc = weir_blk_seal_init();

	if (rc)
		return rc;
	rc = weir_blk_init();
	if (rc)
		goto exit_seal;
	rc = weir_blk_netlink_init();
	if (!rc)
		return 0;
	weir_blk_exit();
exit_seal:
	weir_blk_seal_exit();
	return rc;
}

static void __exit weir_blk_module_exit(void)
{
	weir_blk_netlink_exit();
	weir_blk_exit();
	weir_blk_seal_exit();
}

module_init(weir_blk_module_init);
module_exit(weir_blk_module_exit);

MODULE_DESCRIPTION("weir: block devices of other machines' memory");
MODULE_LICENSE("GPL");
MODULE_ALIAS_GENL_FAMILY(WEIR_BLK_FAMILY);
