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

void weir_cut_begin(struct weir_wr *wr, struct weir_req *req)
{
	wr->next = NULL;
	wr->req = req;
	wr->offset = req->posted;
	wr->length = 0;
	wr->nr_reqs = 0;
	wr->nr_sge = 0;
}

/* Puts at @to what [@offset, @offset + @length) of the request's local memory consists of. */
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

/* Makes one of the entries @at - 1 and @at, of @count from @at on, if they join. */
static uint8_t join(struct weir_sge *at, uint8_t count)
{
	if (!weir_cut_joins(at - 1, at))
		return count;
	at[-1].length += at->length;
	memmove(at, at + 1, --count * sizeof(*at));
	return count;
}

void weir_cut_add(struct weir_wr *wr, struct weir_req *req, uint32_t length)
{
	struct weir_sge *end = wr->sge + wr->nr_sge;
	uint8_t count = slice(end, req, req->posted, length);

	if (wr->nr_sge && count)
		count = join(end, count);
	wr->nr_sge += count;
	wr->length += length;
	wr->nr_reqs++;
	req->posted += length;
	req->wrs++;
}
