/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/secret.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 64u /* of the widest ciphers' keys */

static void (*listener)(int status);
static bool was_heard;

void weir_secret_set_listener(void (*on_unlocked)(int status))
{
	listener = on_unlocked;
}

/* libsodium locks the pages, but ignores a failure. Locking them again costs nothing. */
static void check_lock(const void *secret, size_t size)
{
	int status = mlock(secret, size) ? -errno : 0;

	if (status && listener && !__atomic_exchange_n(&was_heard, true, __ATOMIC_RELAXED))
		listener(status);
}

void *weir_secret_alloc(size_t size)
{
	/* libsodium aligns the end of its memory, before the guard page. */
	size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	void *secret;

	if (sodium_init() < 0 || whole < size)
		return NULL;
	secret = sodium_malloc(whole);
	if (!secret)
		return NULL;
	check_lock(secret, whole);
	memset(secret, 0, whole);
	return secret;
}

void weir_secret_free(void *secret)
{
	sodium_free(secret);
	weir_secret_forget_registers();
}

#if defined(__x86_64__)

void weir_secret_forget_registers(void)
{
	/* memcpy() prefers the upper sixteen, since these need no vzeroupper later. */
	if (__builtin_cpu_supports("avx512f"))
		__asm__ volatile(".irp i, 16, 17, 18, 19, 20, 21, 22, 23, "
				 "24, 25, 26, 27, 28, 29, 30, 31\n\t"
				 "vpxord %zmm\\i, %zmm\\i, %zmm\\i\n\t"
				 ".endr");
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroall");
	else
		__asm__ volatile(".irp i, 0, 1, 2, 3, 4, 5, 6, 7, "
				 "8, 9, 10, 11, 12, 13, 14, 15\n\t"
				 "pxor %xmm\\i, %xmm\\i\n\t"
				 ".endr");
}

#elif defined(__aarch64__)

void weir_secret_forget_registers(void)
{
	__asm__ volatile(".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, "
			 "24, 25, 26, 27, 28, 29, 30, 31\n\t"
			 "movi v\\i\().2d, #0\n\t"
			 ".endr");
}

#else

void weir_secret_forget_registers(void)
{
}

#endif
