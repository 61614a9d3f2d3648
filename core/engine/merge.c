/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order tree sorts all unfinished requests with neighbours by remote address, so merging needs
 * no structure. An isolated request costs one comparison.
 */
#include "core/engine/merge.h"
#include "core/engine/fragment.h"

static struct weir_req *req_of(struct weir_order_node *node)
{
	return weir_list_entry(node, struct weir_req, order);
}

static bool may_merge(const struct weir_req *req)
{
	return req->state == WEIR_REQ_READY && !req->posted && !req->no_merge &&
	       weir_merge_is_worthwhile(req) &&
	       (req->op == WEIR_OP_READ || req->op == WEIR_OP_WRITE);
}

static bool wr_has_room(const struct weir_merge *m, const struct weir_req *req,
			const struct weir_merge_limits *limits, bool joins)
{
	return m->nr_reqs < WEIR_MERGE_REQS_MAX && m->bytes < limits->bytes_max &&
	       req->length <= limits->bytes_max - m->bytes &&
	       m->nr_sge + req->nr_sge - joins <= limits->sge_max;
}

/* Adds @req, which lies right after @m or right before it. */
static bool try_merge(struct weir_merge *m, struct weir_req *req, bool after,
		      const struct weir_merge_limits *limits)
{
	const struct weir_req *a = after ? m->last : req, *b = after ? req : m->first;
	bool joins = weir_fragment_is_contiguous(&a->sge[a->nr_sge - 1], &b->sge[0]);

	if (!may_merge(req) || req->op != m->first->op || req->rkey != m->first->rkey ||
	    req->class != m->first->class || !wr_has_room(m, req, limits, joins))
		return false;
	if (after) {
		m->last->merge_next = req;
		req->merge_next = NULL;
		m->last = req;
	} else {
		req->merge_next = m->first;
		m->first = req;
	}
	m->bytes += (uint32_t)req->length;
	m->nr_reqs++;
	m->nr_sge += req->nr_sge - joins;
	return true;
}

/*
 * Adds a neighbour after @m, or before it, if there is one. @m must not touch the end of the
 * address space on that side.
 */
static bool add_neighbour_on(struct weir_merge *m, const struct weir_order *order,
			     const struct weir_merge_limits *limits, bool after)
{
	uint64_t byte = after ? m->last->order.last + 1 : m->first->order.first - 1;
	struct weir_order_node *node;
	int looks;

	if (!order->nr_overlapped) {
		node = weir_order_neighbour(after ? &m->last->order : &m->first->order, after);
		return node && try_merge(m, req_of(node), after, limits);
	}
	node = weir_order_covering(order, byte, NULL);
	for (looks = 0; node && looks < WEIR_MERGE_LOOKS_MAX; looks++) {
		if ((after ? node->first : node->last) == byte &&
		    try_merge(m, req_of(node), after, limits))
			return true;
		node = weir_order_covering(order, byte, node);
	}
	return false;
}

void weir_merge_grow(struct weir_merge *m, const struct weir_order *order,
		     const struct weir_merge_limits *limits)
{
	if (weir_order_is_isolated(order, &m->first->order) || !may_merge(m->first))
		return;
	while (m->last->order.last != UINT64_MAX && add_neighbour_on(m, order, limits, true))
		;
	while (m->first->order.first && add_neighbour_on(m, order, limits, false))
		;
}
