/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/lane/claims.h"

/*
 * A word has one writer, or counts of others: of readers, or, in words of pages, of small requests
 * that claim lines.
 */
#define READER 1u
#define SMALL (1u << 15)
#define WRITER (1u << 31)

/* Words of @table from the key @begin up to before @end. */
struct claim {
	uint32_t *table;
	uint64_t begin, end;
	uint32_t holder; /* READER, SMALL or WRITER */
};

/* Fibonacci hashing: keys side by side get words far apart, so threads share no cache line. */
static inline uint32_t *word_of(uint32_t *table, uint64_t key)
{
	return &table[key * 0x9e3779b97f4a7c15ull >> (64 - WEIR_CLAIMS_BITS)];
}

static inline struct claim claim_of(uint32_t *table, unsigned int shift, uint64_t first,
				    uint64_t length, uint32_t holder)
{
	return (struct claim){ table, first >> shift, ((first + (length - 1)) >> shift) + 1,
			       holder };
}

static inline bool has_room(uint32_t found, uint32_t holder)
{
	if (holder == WRITER)
		return !found;
	return found < WRITER && (holder == SMALL ? !(found % SMALL) : found < SMALL);
}

static inline bool take_one(uint32_t *word, uint32_t holder)
{
	uint32_t found = weir_atomic_load(word);

	while (has_room(found, holder)) {
		if (weir_atomic_compare_exchange(word, &found, found + holder))
			return true;
	}
	return false;
}

static inline void give_one(uint32_t *word, uint32_t holder)
{
	uint32_t found = weir_atomic_load(word);

	if (holder == WRITER) {
		weir_store_release(word, 0);
		return;
	}
	while (!weir_atomic_compare_exchange(word, &found, found - holder))
		;
}

static inline void give_up_to(const struct claim *claim, uint64_t end)
{
	uint64_t key;

	for (key = claim->begin; key < end; key++)
		give_one(word_of(claim->table, key), claim->holder);
}

static inline bool take(const struct claim *claim)
{
	uint64_t key;

	for (key = claim->begin; key < claim->end; key++) {
		if (!take_one(word_of(claim->table, key), claim->holder)) {
			give_up_to(claim, key);
			return false;
		}
	}
	return true;
}

static inline bool is_small(uint64_t first, uint64_t length)
{
	return length <= WEIR_CLAIMS_SMALL &&
	       first >> WEIR_CLAIMS_PAGE_SHIFT == (first + (length - 1)) >> WEIR_CLAIMS_PAGE_SHIFT;
}

/* What a request claims: pages, or the lines of a small request, whose @page is claimed besides. */
static inline struct claim claim_for(struct weir_claims *c, uint64_t first, uint64_t length,
				     bool modifies, uint32_t **page)
{
	const uint32_t holder = modifies ? WRITER : READER;

	*page = NULL;
	if (!is_small(first, length))
		return claim_of(c->pages, WEIR_CLAIMS_PAGE_SHIFT, first, length, holder);
	*page = word_of(c->pages, first >> WEIR_CLAIMS_PAGE_SHIFT);
	return claim_of(c->lines, WEIR_CLAIMS_LINE_SHIFT, first, length, holder);
}

bool weir_claims_take(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies)
{
	uint32_t *page;
	const struct claim claim = claim_for(c, first, length, modifies, &page);

	if (page && !take_one(page, SMALL))
		return false;
	if (take(&claim))
		return true;
	if (page)
		give_one(page, SMALL);
	return false;
}

void weir_claims_give(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies)
{
	uint32_t *page;
	const struct claim claim = claim_for(c, first, length, modifies, &page);

	give_up_to(&claim, claim.end);
	if (page)
		give_one(page, SMALL);
}
