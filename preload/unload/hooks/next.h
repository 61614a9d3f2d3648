/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions of the next library: softnic or libibverbs. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_NEXT_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_NEXT_H

#include <infiniband/verbs.h>

/* These names are also macros; the functions are meant here. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

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

/* Registers weir's own memory, which the program does not show to its peers. */
struct ibv_mr *next_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

#endif
