/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/client/request/latency.h"

#include "core/base/rng.h"
#include "lib/base/clock.h"
#include "lib/client/request/request.h"
#include "lib/client/session.h"

_Static_assert((int)WEIR_STATS_SHM_READ == WEIR_OP_READ, "weir_latency_kind()");
_Static_assert((int)WEIR_STATS_SHM_WRITE == WEIR_OP_WRITE, "weir_latency_kind()");
_Static_assert((int)WEIR_STATS_SHM_ATOMIC == WEIR_OP_CAS, "weir_latency_kind()");

static void draw_gap(struct weir_latency_sampler *sampler)
{
	uint64_t bits = weir_rng_next(&sampler->random);

	sampler->left = 1 + (uint32_t)weir_rng_scale(bits, WEIR_LATENCY_GAP_MAX);
}

void weir_latency_init(struct weir_latency_sampler *sampler, uint64_t seed)
{
	sampler->random = seed;
	draw_gap(sampler);
}

void weir_latency_choose(struct weir_latency_sampler *sampler, struct weir_request *request)
{
	request->is_timed = true;
	draw_gap(sampler);
}

void weir_latency_begin(struct weir_latency_sampler *sampler, struct weir_request *request)
{
	request->submitted_ns = weir_now_ns();
	weir_latency_choose(sampler, request);
}

void weir_latency_end(struct weir_request *request)
{
	struct weir_histogram *shown = request->session->stats_shm->latency;

	request->is_timed = false;
	if (!request->req.status)
		weir_histogram_add(&shown[weir_latency_kind(request->req.op)],
				   weir_now_ns() - request->submitted_ns);
}
