/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes allocations of weir's modules fail, like the kernel's failslab, which distributions
 * disable. Counts allocations by processes and work items with one of these modules on the stack:
 * the first so many succeed, the next so many fail. Allocations marked as unable to fail succeed,
 * as do allocations in interrupts, which belong to the network.
 */
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/stacktrace.h>
#include <linux/sysfs.h>

#define DEPTH 48

static unsigned long text[8];
static unsigned int nr_text;
module_param_array(text, ulong, &nr_text, 0);
MODULE_PARM_DESC(text, "where the code of each module begins and ends");

static unsigned int near = DEPTH;
module_param(near, uint, 0600);
MODULE_PARM_DESC(near, "among so many callers of the allocator one is weir's");

static int counter_set(const char *value, const struct kernel_param *param)
{
	unsigned long number;
	int rc = kstrtoul(value, 0, &number);

	if (!rc)
		atomic_long_set(param->arg, number);
	return rc;
}

static int counter_get(char *out, const struct kernel_param *param)
{
	return sysfs_emit(out, "%ld\n", atomic_long_read(param->arg));
}

static const struct kernel_param_ops counter = { .set = counter_set, .get = counter_get };

static atomic_long_t skip, fail, seen;
module_param_cb(skip, &counter, &skip, 0600);
MODULE_PARM_DESC(skip, "so many more go well");
module_param_cb(fail, &counter, &fail, 0600);
MODULE_PARM_DESC(fail, "so many fail then; 0: nobody looks");
module_param_cb(seen, &counter, &seen, 0600);
MODULE_PARM_DESC(seen, "so many there were while somebody looked");

static bool is_weirs(unsigned long address)
{
	unsigned int i;

	for (i = 0; i + 1 < nr_text; i += 2) {
		if (address >= text[i] && address < text[i + 1])
			return true;
	}
	return false;
}

static unsigned int find_address(const unsigned long *stack, unsigned int nr, unsigned long address)
{
	unsigned int i = 0;

	while (i < nr && stack[i] != address)
		i++;
	return i;
}

/*
 * At a function's first instruction the return address is at the top of the stack. A frame-pointer
 * unwind misses the caller of a function without a frame, and reports the function itself.
 */
static bool is_for_weir(const struct pt_regs *regs)
{
	unsigned long caller = *(unsigned long *)kernel_stack_pointer((struct pt_regs *)regs);
	unsigned long stack[DEPTH];
	unsigned int nr = stack_trace_save(stack, DEPTH, 0), i, end;

	i = find_address(stack, nr, caller);
	if (i == nr)
		i = find_address(stack, nr, instruction_pointer((struct pt_regs *)regs));
	if (near && is_weirs(caller))
		return true;
	for (end = min(nr, i + near); i < end; i++) {
		if (is_weirs(stack[i]))
			return true;
	}
	return false;
}

/* Did the probe stop an interrupt? The breakpoint is an NMI itself, and counts as one. */
static bool is_interrupts(void)
{
	return in_serving_softirq() || hardirq_count() > (in_nmi() ? HARDIRQ_OFFSET : 0);
}

static bool is_denied(const struct pt_regs *regs, gfp_t gfp)
{
	if (!atomic_long_read(&fail) || gfp & __GFP_NOFAIL || is_interrupts() || !is_for_weir(regs))
		return false;
	atomic_long_inc(&seen);
	return atomic_long_dec_if_positive(&skip) < 0 && atomic_long_dec_if_positive(&fail) >= 0;
}

/* Runs in place of the probed function, and returns instead. */
static noinline int no_object(void)
{
	return -ENOMEM;
}

static noinline struct page *no_page(void)
{
	return NULL;
}

static int object_wanted(struct kprobe *probe, struct pt_regs *regs)
{
	if (!is_denied(regs, regs_get_kernel_argument(regs, 1)))
		return 0;
	regs->ip = (unsigned long)no_object;
	return 1;
}

static int page_wanted(struct kprobe *probe, struct pt_regs *regs)
{
	if (!is_denied(regs, regs_get_kernel_argument(regs, 0)))
		return 0;
	regs->ip = (unsigned long)no_page;
	return 1;
}

/* A post handler prevents optimisation: an optimised probe cannot change the next instruction. */
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe objects = {
	.symbol_name = "should_failslab",
	.pre_handler = object_wanted,
	.post_handler = after,
};
static struct kprobe pages = {
	.symbol_name = "__alloc_pages",
	.pre_handler = page_wanted,
	.post_handler = after,
};
static struct kprobe *probes[] = { &objects, &pages };

static int __init starve_init(void)
{
	return register_kprobes(probes, ARRAY_SIZE(probes));
}
module_init(starve_init);

static void __exit starve_exit(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}
module_exit(starve_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("weir: its modules get no memory");
