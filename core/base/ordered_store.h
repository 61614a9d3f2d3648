/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing into memory that somebody watches, as behind a NIC: programs poll a word that a write
 * ends with, take it for whole when it changes, and then expect all before it to be there.
 * memcpy() promises neither.
 */
#ifndef WEIR_CORE_BASE_ORDERED_STORE_H
#define WEIR_CORE_BASE_ORDERED_STORE_H

#include "core/base/platform.h"

/*
 * The bytes of the word that is stored next: the largest that is aligned at @addr and within @left,
 * which is at least 1. Return: 8, 4, 2 or 1.
 */
static inline uint32_t weir_ordered_store_bytes(uintptr_t addr, uint32_t left)
{
	uint32_t bytes = 8;

	while (addr % bytes || bytes > left)
		bytes /= 2;
	return bytes;
}

/**
 * weir_ordered_store() - copy to where others look
 * @to: any alignment; each aligned word of 8, 4 or 2 bytes that it covers is stored whole
 * @from: nothing of @to; who writes there meanwhile decides what is stored, and no more
 * @length: bytes
 *
 * Words are stored in ascending order, and who sees one with acquire sees those before it.
 *
 * Context: Any; never sleeps.
 */
void weir_ordered_store(void *to, const void *from, uint32_t length);

#endif
