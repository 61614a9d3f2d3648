/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/lane/claims.h"

/* Fibonacci hashing: pages side by side get words far apart, so threads share no cache line. */
static inline uint32_t *word_of(struct weir_claims *c, uint64_t page)
{
	return &c->words[page * 0x9e3779b97f4a7c15ull >> (64 - WEIR_CLAIMS_BITS)];
}

static inline bool take_one(uint32_t *word, bool modifies)
{
	uint32_t found = modifies ? 0 : weir_atomic_load(word);

	if (modifies)
		return weir_atomic_compare_exchange(word, &found, WEIR_CLAIMS_WRITER);
	while (found != WEIR_CLAIMS_WRITER) {
		if (weir_atomic_compare_exchange(word, &found, found + 1))
			return true;
	}
	return false;
}

static inline void give_one(uint32_t *word, bool modifies)
{
	uint32_t found = weir_atomic_load(word);

	if (modifies) {
		weir_store_release(word, 0);
		return;
	}
	while (!weir_atomic_compare_exchange(word, &found, found - 1))
		;
}

static void give_pages(struct weir_claims *c, uint64_t from, uint64_t to, bool modifies)
{
	for (; from < to; from++)
		give_one(word_of(c, from), modifies);
}

bool weir_claims_take(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies)
{
	uint64_t begin = first >> WEIR_CLAIMS_PAGE_SHIFT, page = begin;
	uint64_t end = ((first + (length - 1)) >> WEIR_CLAIMS_PAGE_SHIFT) + 1;

	for (; page < end; page++) {
		if (!take_one(word_of(c, page), modifies)) {
			give_pages(c, begin, page, modifies);
			return false;
		}
	}
	return true;
}

void weir_claims_give(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies)
{
	give_pages(c, first >> WEIR_CLAIMS_PAGE_SHIFT,
		   ((first + (length - 1)) >> WEIR_CLAIMS_PAGE_SHIFT) + 1, modifies);
}
