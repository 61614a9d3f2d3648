/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the user is told, on standard error, and what is counted for that. */
#ifndef WEIR_PRELOAD_UNLOAD_DIAG_H
#define WEIR_PRELOAD_UNLOAD_DIAG_H

#include <stdint.h>

/**
 * struct diag_counters - of this process so far; each counted atomically
 * @small: writes that are short enough
 * @unloaded: of them; @repeated: of these, those that a peer refused, and the NIC was given
 * @copied: for peers; @refused: not copied
 * @pauses: times that a peer was told to leave the CPU alone for a while
 * @plain: queue pairs for which nothing more is unloaded
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

/* Who reads it sees what was done before. */
#define DIAG_COUNT(name) ((void)__atomic_add_fetch(&diag_counters.name, 1, __ATOMIC_RELEASE))

/*
 * A return is written by a device, and what was copied before it is seen by who finds it. Where
 * both are in one process, ThreadSanitizer must be told: it does not see what devices do.
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

/* For tests: what has been counted so far. */
void weir_unload_read(struct diag_counters *out);

/* One line. Nothing is said where WEIR_UNLOAD_QUIET is set. */
__attribute__((format(printf, 1, 2))) void diag_log(const char *format, ...);

/*
 * Nothing more is unloaded on a queue pair. Each reason is said once: a program may have thousands
 * of them. @why: kept.
 */
void diag_disabled(uint32_t qpn, const char *why);

/* What it came to, in one line, if it came to anything. */
void diag_summary(void);

#endif
