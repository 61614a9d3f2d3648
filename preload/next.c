/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/next.h"

void *next_function(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function) {
		fprintf(stderr, "%s: no %s after it: load it before libibverbs\n", PRELOADED, name);
		abort();
	}
	return function;
}
