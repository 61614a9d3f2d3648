/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stores to polled memory, as a NIC would. Programs poll the last word of a write: once the whole
 * word changes, all earlier bytes must be there. memcpy() promises neither order nor whole words.
 */
#ifndef WEIR_CORE_BASE_ORDERED_STORE_H
#define WEIR_CORE_BASE_ORDERED_STORE_H

#include "core/base/platform.h"

/*
 * The size of the next word to store: the largest power of two up to 8 that is aligned at @addr and
 * fits @left bytes. @left is at least 1. Return: 8, 4, 2 or 1.
 */
static inline uint32_t weir_ordered_store_bytes(uintptr_t addr, uint32_t left)
{
	uint32_t bytes = 8;

	while (addr % bytes || bytes > left)
		bytes /= 2;
	return bytes;
}

/**
 * weir_ordered_store() - copy to memory that others poll
 * @to: any alignment; each aligned word of 8, 4 or 2 bytes inside the range is stored whole
 * @from: must not overlap @to; a concurrent writer there can change the bytes stored, nothing else
 * @length: bytes
 *
 * Words are stored in ascending order. A reader that loads a word with acquire sees all words
 * before it.
 *
 * Context: Any; never sleeps.
 */
void weir_ordered_store(void *to, const void *from, uint32_t length);

#endif
