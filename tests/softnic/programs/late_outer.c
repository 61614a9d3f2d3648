// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Load a library that only this library's RUNPATH finds. */
#include <dlfcn.h>

int load_inner(void);

int load_inner(void)
{
	return !!dlopen("libsoftnic-late-inner.so", RTLD_NOW);
}
