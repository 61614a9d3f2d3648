// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

#include "kernel/weir/reconnect.h"
#include "kernel/weir/nic.h"

static int __init weir_init(void)
{
	int rc = kweir_reconnect_init();

	if (rc)
		return rc;
	rc = kweir_nics_init();
	if (rc)
		kweir_reconnect_exit();
	return rc;
}

static void __exit weir_exit(void)
{
	kweir_nics_exit();
	kweir_reconnect_exit();
}

module_init(weir_init);
module_exit(weir_exit);

MODULE_DESCRIPTION("weir: memory of other machines over RDMA");
MODULE_LICENSE("GPL");
