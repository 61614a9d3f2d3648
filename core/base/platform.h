/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Everything the core needs from its host, in user space and in the kernel. No other file of the
 * core knows __KERNEL__.
 */
#ifndef WEIR_CORE_BASE_PLATFORM_H
#define WEIR_CORE_BASE_PLATFORM_H

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef HAVE_SDT
#include <sys/sdt.h>
#endif
#endif

#ifndef UINT16_MAX
#define UINT16_MAX U16_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif

#define WEIR_NS_PER_MS 1000000ull
#define WEIR_NS_PER_S 1000000000ull

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

/*
 * The atomics of inbox.c (on pointers) and of trace.c (on numbers). A swap is a full barrier, and
 * so is a compare-and-swap that succeeds.
 *
 * weir_atomic_load(from): relaxed.
 * weir_atomic_load_ordered(from): ordered after the caller's earlier unlock; in user space, the
 *	unlock must be sequentially consistent.
 * weir_atomic_exchange(at, to): returns the old value.
 * weir_atomic_compare_exchange(at, expected, to): true if *@expected was there and @to is now;
 *	otherwise *@expected becomes the value found.
 * weir_load_acquire(from): no later access moves before this load.
 * weir_store_release(at, to): no earlier access moves after this store.
 */
#ifdef __KERNEL__
#define weir_load_acquire(from) smp_load_acquire(from)
#define weir_store_release(at, to) smp_store_release(at, to)
#define weir_atomic_load(from) READ_ONCE(*(from))
#define weir_atomic_load_ordered(from) \
	({                             \
		smp_mb();              \
		READ_ONCE(*(from));    \
	})
#define weir_atomic_exchange(at, to) xchg(at, to)
#define weir_atomic_compare_exchange(at, expected, to) try_cmpxchg(at, expected, to)
#else
#define weir_load_acquire(from) __atomic_load_n(from, __ATOMIC_ACQUIRE)
#define weir_store_release(at, to) __atomic_store_n(at, to, __ATOMIC_RELEASE)
#define weir_atomic_load(from) __atomic_load_n(from, __ATOMIC_RELAXED)
#define weir_atomic_load_ordered(from) __atomic_load_n(from, __ATOMIC_SEQ_CST)
#define weir_atomic_exchange(at, to) __atomic_exchange_n(at, to, __ATOMIC_SEQ_CST)
#define weir_atomic_compare_exchange(at, expected, to) \
	__atomic_compare_exchange_n(at, expected, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
#endif

/**
 * weir_bug() - report a programming error of our own, not an error of the world
 * @broken: a condition that must never be true
 *
 * Traps in user space. In the kernel, warns once and lets the caller return safely.
 *
 * Context: Any.
 * Return: @broken.
 */
static inline bool weir_bug(bool broken)
{
#ifdef __KERNEL__
	return WARN_ON_ONCE(broken);
#else
	if (broken)
		__builtin_trap();
	return broken;
#endif
}

#endif
