/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that a device beyond the verbs may offer, found by name at run time. */
#ifndef WEIR_LIB_BASE_SYMBOL_H
#define WEIR_LIB_BASE_SYMBOL_H

#include <dlfcn.h>
#include <string.h>

/**
 * weir_symbol_find() - find a function of the process
 * @function: a pointer to a function; set to NULL if there is none of that name
 */
static inline void weir_symbol_find(const char *name, void *function)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	memcpy(function, &found, sizeof(found));
}

#endif
