/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The part of stdlib.h that the core's tests need in the kernel. */
#ifndef WEIR_TESTS_KERNEL_HOST_STDLIB_H
#define WEIR_TESTS_KERNEL_HOST_STDLIB_H

#include <linux/mm.h>
#include <linux/slab.h>

#define malloc(bytes) kvmalloc(bytes, GFP_KERNEL)
#define calloc(count, bytes) kvcalloc(count, bytes, GFP_KERNEL)
#define free(memory) kvfree(memory)

#endif
