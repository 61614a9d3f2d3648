/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Silences KASAN from now on. A KASAN report disables lockdep, and Soft-RoCE of Linux 6.1 causes a
 * report in every test.
 */
#include <linux/module.h>

static ulong flags;
module_param(flags, ulong, 0);
MODULE_PARM_DESC(flags, "where the kernel has kasan_flags");

/* As in mm/kasan/report.c: a report was made; another bit allows more reports. */
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
