/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The place of the next cut is recomputed from the bytes posted so far rather than
 * remembered: a request has at most WEIR_SGE_MAX entries, and a retry is then only a
 * matter of setting that number back.
 */
#include "core/cut.h"

uint32_t weir_cut_length(const struct weir_req *req, uint32_t fragment_bytes)
{
	uint64_t left = req->length - req->posted;

	return left < fragment_bytes ? (uint32_t)left : fragment_bytes;
}

/* Copies what [@offset, @offset + @length) of the request's local memory consists of. */
static uint8_t slice(struct weir_sge *to, const struct weir_req *req, uint64_t offset,
		     uint32_t length)
{
	const struct weir_sge *from = req->sge;
	uint8_t count = 0;

	for (; length && from < req->sge + req->nr_sge; from++) {
		uint32_t left;

		if (offset >= from->length) {
			offset -= from->length;
			continue;
		}
		left = from->length - (uint32_t)offset;
		to[count] = *from;
		to[count].addr += offset;
		to[count].length = left < length ? left : length;
		length -= to[count++].length;
		offset = 0;
	}
	return count;
}

void weir_cut(struct weir_wr *wr, struct weir_req *req, uint32_t length)
{
	wr->next = NULL;
	wr->req = req;
	wr->offset = req->posted;
	wr->length = length;
	wr->nr_sge = slice(wr->sge, req, req->posted, length);
	req->posted += length;
	req->wrs++;
}
