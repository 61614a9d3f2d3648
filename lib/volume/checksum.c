/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <isa-l/crc.h>
#include <string.h>

#include "lib/volume/checksum.h"
#include "lib/volume/volume.h"

uint32_t weir_volume_checksum(const void *page)
{
	return weir_page_sum(crc32_iscsi((unsigned char *)page, WEIR_VOLUME_PAGE_BYTES, ~0u));
}

bool weir_volume_checksum_accept(void *page, uint32_t expected)
{
	if (!weir_page_sum_is_zeroes(expected))
		return weir_page_sum_fits(expected, weir_volume_checksum(page));
	memset(page, 0, WEIR_VOLUME_PAGE_BYTES);
	return true;
}
