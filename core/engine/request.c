/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Validates a request before any other module reads it. */
#include "core/engine/request.h"

static bool sges_sum_up(const struct weir_req *req)
{
	uint64_t left = req->length;
	uint8_t i;

	if (req->nr_sge > WEIR_SGE_MAX)
		return false;
	for (i = 0; i < req->nr_sge; i++)
		left -= req->sge[i].length;
	return !left;
}

static bool range_wraps(const struct weir_req *req)
{
	return req->remote + (req->length - 1) < req->remote;
}

static bool is_atomic_shaped(const struct weir_req *req)
{
	return req->length == 8 && req->nr_sge == 1 && req->remote % 8 == 0;
}

int weir_request_check(const struct weir_req *req, uint32_t send_max)
{
	switch (req->op) {
	case WEIR_OP_BARRIER:
		return 0;
	case WEIR_OP_SEND:
		if (!sges_sum_up(req))
			return -EINVAL;
		return req->length > send_max ? -EMSGSIZE : 0;
	case WEIR_OP_CAS:
	case WEIR_OP_FADD:
		if (!is_atomic_shaped(req))
			return -EINVAL;
		break;
	case WEIR_OP_READ:
	case WEIR_OP_WRITE:
		break;
	default:
		return -EINVAL;
	}
	return req->length && sges_sum_up(req) && !range_wraps(req) ? 0 : -EINVAL;
}
