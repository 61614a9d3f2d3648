/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <isa-l/crc.h>
#include <string.h>

#include "lib/volume/checksum.h"
#include "lib/volume/volume.h"

uint32_t weir_volume_checksum(const void *page)
{
	uint32_t crc = crc32_iscsi((unsigned char *)page, WEIR_VOLUME_PAGE_BYTES, ~0u);

	return (crc & ~1u) ? crc & ~1u : 2;
}

bool weir_volume_checksum_accept(void *page, uint32_t expected)
{
	if (expected == WEIR_SUM_NOTHING)
		memset(page, 0, WEIR_VOLUME_PAGE_BYTES);
	return expected == WEIR_SUM_NOTHING || expected == WEIR_SUM_UNKNOWN ||
	       expected == weir_volume_checksum(page);
}
