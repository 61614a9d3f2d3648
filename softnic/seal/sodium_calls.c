// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "softnic/seal/sodium_calls.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sodium_calls calls;
static const struct sodium_calls *loaded;

/* The ABI of 23 and 26 is the same for these functions. */
static void *open_library(void)
{
	static const char *const names[] = { "libsodium.so.23", "libsodium.so.26" };
	void *library = NULL;
	size_t i;

	for (i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static bool find_symbol(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

static void load(void)
{
	void *library = open_library();
	bool has_all = library;

#define SODIUM_FIND(function) has_all = has_all && find_symbol(library, #function, &calls.function);
	SODIUM_CALLS(SODIUM_FIND)
#undef SODIUM_FIND
	if (!has_all || calls.sodium_init() < 0)
		return;
	calls.has_aes = calls.crypto_aead_aes256gcm_is_available();
	loaded = &calls;
}

const struct sodium_calls *sodium_calls(void)
{
	pthread_once(&once, load);
	return loaded;
}
