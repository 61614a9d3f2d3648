/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Extended completion queues have pointers of their own. */
#include "wrap.h"

struct wrapped_cq {
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
};

static int count_poll(struct ibv_cq_ex *cq, int rc)
{
	count(polls, 1);
	if (rc)
		count(empty_polls, 1);
	else if (cq->status != IBV_WC_SUCCESS)
		count_completion(cq->status, 0, 0); /* no other field is valid on failure */
	else
		count_completion(cq->status, cq->read_opcode(cq),
				 cq->read_byte_len ? cq->read_byte_len(cq) : 0);
	return rc;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const struct wrapped_cq *kept = wrapped_find(WRAPPED_CQ, cq);

	return count_poll(cq, kept->start_poll(cq, attr));
}

static int next_poll(struct ibv_cq_ex *cq)
{
	const struct wrapped_cq *kept = wrapped_find(WRAPPED_CQ, cq);

	return count_poll(cq, kept->next_poll(cq));
}

void wrap_cq(struct ibv_cq_ex *cq)
{
	struct wrapped_cq *kept;

	if (cq->start_poll == start_poll)
		return;
	kept = wrapped_get(WRAPPED_CQ, cq, sizeof(*kept));
	if (!kept)
		return;
	*kept = (struct wrapped_cq){ cq->start_poll, cq->next_poll };
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
}
