/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages for the user on standard error, and their counters. */
#ifndef WEIR_PRELOAD_UNLOAD_DIAG_H
#define WEIR_PRELOAD_UNLOAD_DIAG_H

#include <stdint.h>

/**
 * struct diag_counters - of this process so far; each counted atomically
 * @small: writes short enough to unload
 * @unloaded: small writes unloaded; @repeated: unloaded writes refused by a peer and given to the
 *	NIC
 * @copied: writes copied for peers; @refused: writes not copied
 * @pauses: times a peer was told to pause unloading
 * @plain: queue pairs with unloading disabled
 */
struct diag_counters {
	uint64_t small;
	uint64_t unloaded;
	uint64_t repeated;
	uint64_t copied;
	uint64_t refused;
	uint64_t pauses;
	uint64_t plain;
};

extern struct diag_counters diag_counters;

/* Release: a reader of the counter sees all earlier work. */
#define DIAG_COUNT(name) ((void)__atomic_add_fetch(&diag_counters.name, 1, __ATOMIC_RELEASE))

/*
 * The device writes a return, and a reader of the return sees the copies made before. With both
 * ends in one process, ThreadSanitizer needs a hint, because it does not see the device's writes.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

#define RETURN_FOUND() __tsan_acquire(&diag_counters)
#define RETURN_SENT() __tsan_release(&diag_counters)
#else
#define RETURN_FOUND() ((void)0)
#define RETURN_SENT() ((void)0)
#endif

/* For tests: the counters so far. */
void weir_unload_read(struct diag_counters *out);

/* Prints one line, unless WEIR_UNLOAD_QUIET is set. */
__attribute__((format(printf, 1, 2))) void diag_log(const char *format, ...);

/*
 * Reports that unloading is disabled on a queue pair. Each reason is printed once, because a
 * program may have thousands of queue pairs. @why: kept.
 */
void diag_disabled(uint32_t qpn, const char *why);

/* Prints a summary in one line, if anything was unloaded or copied. */
void diag_summary(void);

#endif
