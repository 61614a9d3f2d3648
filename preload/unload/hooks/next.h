/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What stands behind this library: softnic's functions, or libibverbs'. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_NEXT_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_NEXT_H

#include <infiniband/verbs.h>

/* These are macros that choose among functions; here the functions are meant. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* The next library's function of this name. There is one, or the process ends. */
void *next_function(const char *name);

/* Looked up once: two threads that do it at once find the same. */
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

/* Registers what is ours: it is nothing that the program shows to its peers. */
struct ibv_mr *next_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

#endif
