/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The start of the next part is computed from @posted. The search is short, at most WEIR_SGE_MAX
 * entries, and a retry only resets @posted.
 */
#include "core/engine/fragment.h"

void weir_fragment_begin(struct weir_wr *wr, struct weir_req *req)
{
	wr->next = NULL;
	wr->req = req;
	wr->offset = req->posted;
	wr->length = 0;
	wr->nr_reqs = 0;
	wr->nr_sge = 0;
}

/*
 * Appends a piece to the SGEs of @wr, extending the last SGE if the memory is contiguous. @wr may
 * have no SGE yet.
 */
static void append_sge(struct weir_wr *wr, const struct weir_sge *piece)
{
	struct weir_sge *end = wr->sge + wr->nr_sge;

	if (wr->nr_sge && weir_fragment_is_contiguous(end - 1, piece)) {
		end[-1].length += piece->length;
		return;
	}
	*end = *piece;
	wr->nr_sge++;
}

/* Appends the local memory of bytes [@offset, @offset + @length) of @req. */
static void append_slice(struct weir_wr *wr, const struct weir_req *req, uint64_t offset,
			 uint32_t length)
{
	const struct weir_sge *from = req->sge;

	for (; length && from < req->sge + req->nr_sge; from++) {
		struct weir_sge piece = *from;

		if (offset >= from->length) {
			offset -= from->length;
			continue;
		}
		piece.addr += offset;
		piece.length -= (uint32_t)offset;
		if (piece.length > length)
			piece.length = length;
		append_sge(wr, &piece);
		length -= piece.length;
		offset = 0;
	}
}

void weir_fragment_add(struct weir_wr *wr, struct weir_req *req, uint32_t length)
{
	if (req->nr_sge == 1 && req->length == length)
		append_sge(wr, &req->sge[0]);
	else
		append_slice(wr, req, req->posted, length);
	wr->length += length;
	wr->nr_reqs++;
	req->posted += length;
	req->wrs++;
}
