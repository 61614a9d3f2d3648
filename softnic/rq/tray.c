// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>

#include "softnic/shm/fenced_copy.h"
#include "tray.h"

int trays_map(struct trays *trays, void *at, size_t room, uint32_t num)
{
	if (trays_bytes(num) > room)
		return -EPROTO;
	*trays = (struct trays){ at, num };
	return 0;
}

static uint8_t *tray_at(const struct trays *trays, uint32_t index)
{
	return trays->at + (size_t)index * TRAY_BYTES;
}

void tray_put(const struct trays *trays, uint32_t index, const void *bytes, uint32_t length,
	      const uint32_t *cut)
{
	if (length)
		fenced_copy(tray_at(trays, index), bytes, length, cut);
}

bool tray_empty(const struct trays *trays, const struct recv_queue *rq, uint32_t index,
		uint64_t offset, uint64_t length, uint32_t pd)
{
	return trays->at && length <= TRAY_BYTES &&
	       recv_scatter(rq, index, pd, offset, tray_at(trays, index), (uint32_t)length);
}
