/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How a preloaded library stands before the next library, which is softnic or libibverbs. */
#ifndef WEIR_PRELOAD_NEXT_H
#define WEIR_PRELOAD_NEXT_H

/* A function that replaces libibverbs' function of this name. */
#define EXPORT __attribute__((visibility("default")))

/* The function of this name in the next library; the process ends if there is none. */
void *next_function(const char *name);

/* Looks the name up once; two threads that race find the same function. */
#define NEXT(name)                                                                      \
	({                                                                              \
		static __typeof__(&name) function;                                      \
		__typeof__(&name) found = __atomic_load_n(&function, __ATOMIC_RELAXED); \
                                                                                        \
		if (!found) {                                                           \
			found = (__typeof__(&name))next_function(#name);                \
			__atomic_store_n(&function, found, __ATOMIC_RELAXED);           \
		}                                                                       \
		found;                                                                  \
	})

#endif
