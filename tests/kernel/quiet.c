/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Has KASAN say nothing from now on. What it says ends lockdep's looking, and Soft-RoCE of Linux 6.1
 * gives it something to say in every test.
 */
#include <linux/module.h>

static ulong flags;
module_param(flags, ulong, 0);
MODULE_PARM_DESC(flags, "where the kernel has kasan_flags");

/* As mm/kasan/report.c has it: one was reported; that more may be is another bit. */
#define KASAN_REPORTED 1ul

static int __init quiet_init(void)
{
	if (!flags)
		return -EINVAL;
	WRITE_ONCE(*(unsigned long *)flags, KASAN_REPORTED);
	return 0;
}
module_init(quiet_init);

static void __exit quiet_exit(void)
{
}
module_exit(quiet_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("weir: KASAN says nothing, for lockdep's sake");
