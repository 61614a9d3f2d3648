// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Loads a library that lies where its own RUNPATH leads, and nothing else's. */
#include <dlfcn.h>

int load_inner(void);

int load_inner(void)
{
	return !!dlopen("libsoftnic-late-inner.so", RTLD_NOW);
}
