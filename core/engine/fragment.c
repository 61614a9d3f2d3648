/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The place of the next cut is recomputed from the bytes posted so far rather than
 * remembered: a request has at most WEIR_SGE_MAX entries, and a retry is then only a
 * matter of setting that number back.
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
 * Adds a piece. Where it goes on where the one before it ended it needs no entry, and there may be
 * none.
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

/* Adds what [@offset, @offset + @length) of the request's local memory consists of. */
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
