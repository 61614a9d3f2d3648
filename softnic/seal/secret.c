// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "softnic/seal/secret.h"

/* A leak detector does not look for pointers in mappings that it does not know. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_register_root_region(at, size) ((void)0)
#define __lsan_unregister_root_region(at, size) ((void)0)
#endif

static void warn_unlocked(int reason)
{
	static bool is_told;

	if (!__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED))
		fprintf(stderr,
			"softnic: keys may reach the swap, because memory cannot be locked: %s; "
			"raise the limit 'ulimit -l'\n",
			strerror(reason));
}

void *secret_alloc(size_t size)
{
	void *secret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (secret == MAP_FAILED)
		return NULL;
	madvise(secret, size, MADV_DONTDUMP);
	__lsan_register_root_region(secret, size);
	if (mlock(secret, size))
		warn_unlocked(errno);
	return secret;
}

void secret_free(void *secret, size_t size)
{
	if (!secret)
		return;
	__lsan_unregister_root_region(secret, size);
	explicit_bzero(secret, size);
	munmap(secret, size);
}

#if defined(__x86_64__)

void secret_forget_registers(void)
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

void secret_forget_registers(void)
{
	__asm__ volatile(".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, "
			 "24, 25, 26, 27, 28, 29, 30, 31\n\t"
			 "movi v\\i\().2d, #0\n\t"
			 ".endr");
}

#else

void secret_forget_registers(void)
{
}

#endif
