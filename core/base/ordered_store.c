/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Splits the copy into aligned words and stores each with release, in ascending order. */
#include "core/base/ordered_store.h"

#define STORE(type, to, from)                           \
	do {                                            \
		type word;                              \
                                                        \
		memcpy(&word, from, sizeof(word));      \
		weir_store_release((type *)(to), word); \
	} while (0)

static void store_word(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	switch (bytes) {
	case 8:
		STORE(uint64_t, to, from);
		break;
	case 4:
		STORE(uint32_t, to, from);
		break;
	case 2:
		STORE(uint16_t, to, from);
		break;
	default:
		STORE(uint8_t, to, from);
	}
}

void weir_ordered_store(void *to, const void *from, uint32_t length)
{
	const uint8_t *source = from;
	uint8_t *at = to;
	uint32_t bytes;

	for (; length; length -= bytes, at += bytes, source += bytes) {
		bytes = weir_ordered_store_bytes((uintptr_t)at, length);
		store_word(at, source, bytes);
	}
}
