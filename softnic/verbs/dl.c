// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * NCCL, TensorPipe and some bindings load libibverbs or librdmacm with dlopen(), and look up
 * functions in the handle, where LD_PRELOAD has no effect. So our dlopen() returns this library,
 * which exports all functions of both libraries. Functions that need no device are passed on to
 * libibverbs.
 *
 * dlopen() and dlvsym() search the directories and libraries of their caller. So our versions end
 * with a jump: the next dlopen() then sees the program as its caller.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "softnic/shm/shared.h"
#include "verbs.h"

#define EXPORTED __attribute__((visibility("default")))
#ifdef __clang__
#define JUMP __attribute__((musttail)) return
#define JUMPS
#else
#define JUMP return
#define JUMPS __attribute__((optimize("O2")))
#endif
/* A sanitizer's runtime calls dlvsym() at its start, before instrumented code can run. */
#if defined(__clang__)
#define EARLY __attribute__((disable_sanitizer_instrumentation))
#else
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

typedef void *open_fn(const char *path, int mode);
typedef void *version_fn(void *handle, const char *name, const char *version);

static void *this; /* the handle returned to programs */

static open_fn *next_dlopen(void)
{
	static open_fn *next;

	if (!load_relaxed(&next))
		store_relaxed(&next, (open_fn *)dlsym(RTLD_NEXT, "dlopen"));
	return load_relaxed(&next);
}

static bool is_verbs_library(const char *path)
{
	static const char *const names[] = {
		"libibverbs.so.1",
		"libibverbs.so",
		"librdmacm.so.1",
		"librdmacm.so",
	};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* If the real library is not installed, dlopen() must fail, so that the program does without. */
static __attribute__((noinline)) void *open_softnic_instead(const char *path, int mode)
{
	static const char here;
	open_fn *next = next_dlopen();
	Dl_info info;

	if (!path || !is_verbs_library(path) || !next(path, mode) || !dladdr(&here, &info))
		return NULL;
	store_relaxed(&this, next(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD));
	return load_relaxed(&this);
}

JUMPS EXPORTED void *dlopen(const char *path, int mode)
{
	open_fn *next = next_dlopen();
	void *handle = open_softnic_instead(path, mode);

	if (handle)
		return handle;
	JUMP next(path, mode);
}

/* Our symbols have no versions, so a lookup of any version in our handle finds ours. */
JUMPS EARLY EXPORTED void *dlvsym(void *handle, const char *name, const char *version)
{
	static version_fn *next;

	if (handle && handle == load_relaxed(&this))
		return dlsym(handle, name);
	if (!load_relaxed(&next))
		store_relaxed(&next, (version_fn *)dlsym(RTLD_NEXT, "dlvsym"));
	JUMP load_relaxed (&next)(handle, name, version);
}

static void *libibverbs_symbol(const char *name)
{
	void *lib = next_dlopen()("libibverbs.so.1", RTLD_LAZY);

	return lib ? dlsym(lib, name) : NULL;
}

#define PASS_ON(type, name, parameter)                                                      \
	EXPORTED type name(parameter value)                                                 \
	{                                                                                   \
		static type (*next)(parameter);                                             \
                                                                                            \
		if (!load_relaxed(&next))                                                   \
			store_relaxed(&next, (type(*)(parameter))libibverbs_symbol(#name)); \
		return load_relaxed(&next)(value);                                          \
	}

PASS_ON(const char *, ibv_event_type_str, enum ibv_event_type)
PASS_ON(const char *, ibv_node_type_str, enum ibv_node_type)
PASS_ON(const char *, ibv_port_state_str, enum ibv_port_state)
PASS_ON(const char *, ibv_wc_status_str, enum ibv_wc_status)
PASS_ON(int, ibv_rate_to_mbps, enum ibv_rate)
PASS_ON(int, ibv_rate_to_mult, enum ibv_rate)
PASS_ON(enum ibv_rate, mbps_to_ibv_rate, int)
PASS_ON(enum ibv_rate, mult_to_ibv_rate, int)
