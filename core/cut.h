/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cuts a request into work requests, and its local memory along with it. */
#ifndef WEIR_CORE_CUT_H
#define WEIR_CORE_CUT_H

#include "core/request.h"

/**
 * weir_cut_length() - how long the next WR of a request is
 * @req: the request
 * @fragment_bytes: a WR is at most this long, at least 1
 *
 * Context: Any.
 * Return: bytes; 0 only for an empty message.
 */
uint32_t weir_cut_length(const struct weir_req *req, uint32_t fragment_bytes);

/**
 * weir_cut() - make the next WR of a request
 * @wr: to be filled in, all but its channel
 * @req: the request; its count of posted bytes and of WRs goes up
 * @length: from weir_cut_length()
 *
 * Context: Any. Externally serialised.
 */
void weir_cut(struct weir_wr *wr, struct weir_req *req, uint32_t length);

#endif
