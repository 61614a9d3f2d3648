/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory in huge pages if possible, so that a NIC and a CPU need few translations.
 *
 * Context of all: any. Return: the memory, to be given to munmap(2); NULL: see errno.
 */
#ifndef WEIR_LIB_BASE_HUGE_MAP_H
#define WEIR_LIB_BASE_HUGE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR_HUGE_BYTES (2ul << 20)

/*
 * Maps @length bytes at the start of a huge page. @fd: a file to share; -1: memory of zeroes, no
 * page of it present.
 */
char *weir_huge_map_aligned(size_t length, int fd);

/*
 * Maps reserved huge pages, if @length is a multiple of these, or ordinary pages that may become
 * huge. @is_reserved: receives which.
 */
char *weir_huge_map(size_t length, bool *is_reserved);

#endif
