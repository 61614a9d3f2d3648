/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/volume/page_seal.h"
#include "core/volume/extents.h"

uint64_t weir_page_seal_nonces(struct weir_extents *v, uint32_t pages)
{
	uint64_t first = v->nonces + 1;

	v->nonces += pages;
	return first;
}

uint32_t weir_page_seal_sum(uint64_t nonce)
{
	return weir_page_sum(nonce << 1);
}

void weir_page_seal_written(struct weir_extents *v, const struct weir_extents_write *w,
			    const struct weir_page_seal *seals)
{
	memcpy(v->extent[w->extent].seal + w->page, seals, w->pages * sizeof(*seals));
}

void weir_page_seal_expect(const struct weir_extents *v, uint32_t extent, uint32_t page,
			   uint32_t pages, struct weir_page_seal *seals)
{
	memcpy(seals, v->extent[extent].seal + page, pages * sizeof(*seals));
}
