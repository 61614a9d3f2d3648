/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes a mistake when loaded, to test that a debug kernel reports mistakes. Harmless on a kernel
 * without such checks.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *what = "";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "locks, sleep or memory");

static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(one);
static DEFINE_MUTEX(other);

/* No other thread uses the mutex, so this call never really sleeps. */
static void sleep_with_a_spinlock(void)
{
	spin_lock(&spin);
	mutex_lock(&one);
	mutex_unlock(&one);
	spin_unlock(&spin);
}

static void lock_both(struct mutex *first, struct mutex *second)
{
	mutex_lock(first);
	mutex_lock(second);
	mutex_unlock(second);
	mutex_unlock(first);
}

static void read_what_is_freed(void)
{
	char *memory = kmalloc(64, GFP_KERNEL);

	kfree(memory);
	if (memory)
		READ_ONCE(memory[8]);
}

static int __init mistake_init(void)
{
	if (sysfs_streq(what, "sleep")) {
		sleep_with_a_spinlock();
	} else if (sysfs_streq(what, "locks")) {
		lock_both(&one, &other);
		lock_both(&other, &one);
	} else if (sysfs_streq(what, "memory")) {
		read_what_is_freed();
	} else {
		return -EINVAL;
	}
	return 0;
}
module_init(mistake_init);

static void __exit mistake_exit(void)
{
}
module_exit(mistake_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("weir: mistakes for the debug kernel to find");
