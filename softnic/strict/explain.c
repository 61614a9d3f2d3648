// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The data path knows only that an access is refused. Here the tables are read again, to say why.
 */
#include <inttypes.h>
#include <stdio.h>

#include "softnic/verbs/mr.h"
#include "softnic/verbs/nic.h"
#include "explain.h"
#include "finding.h"

struct access {
	struct mr_view view;
	uint32_t key, rights;
	uint64_t addr, length;
};

static const char *name_of(uint32_t right)
{
	switch (right) {
	case IBV_ACCESS_LOCAL_WRITE:
		return "IBV_ACCESS_LOCAL_WRITE";
	case IBV_ACCESS_REMOTE_WRITE:
		return "IBV_ACCESS_REMOTE_WRITE";
	case IBV_ACCESS_REMOTE_READ:
		return "IBV_ACCESS_REMOTE_READ";
	default:
		return "IBV_ACCESS_REMOTE_ATOMIC";
	}
}

/* Returns whether the access is refused; if so, with words. */
static bool say_why(const struct access *a, char *words, size_t size)
{
	const struct shared_mr *at = &a->view.pub->mrs[a->key >> 16];
	struct mr_place place;
	struct shared_mr mr;
	uint64_t end = a->addr + a->length;

	if (mr_translate(&a->view, a->key, a->rights, a->addr, a->length, &place))
		return false;
	if (!a->key || load_acquire(&at->key) != a->key)
		snprintf(words, size, "no region has the key 0x%x (deregistered, or never there)",
			 a->key);
	else if (!mr_read(&a->view, a->key, &mr))
		snprintf(words, size,
			 "the region of key 0x%x is of another protection domain or "
			 "queue pair",
			 a->key);
	else if ((mr.access & a->rights) != a->rights)
		snprintf(words, size, "the region of key 0x%x lacks %s", a->key,
			 name_of(a->rights));
	else if (a->addr < mr.iova)
		snprintf(words, size,
			 "0x%" PRIx64 " is %" PRIu64 " bytes before the region of key "
			 "0x%x (0x%" PRIx64 ", %" PRIu64 " bytes)",
			 a->addr, mr.iova - a->addr, a->key, mr.iova, mr.length);
	else
		snprintf(words, size,
			 "0x%" PRIx64 ", %" PRIu64 " bytes, ends %" PRIu64
			 " bytes past the region of key 0x%x (0x%" PRIx64 ", %" PRIu64 " bytes)",
			 a->addr, a->length, end - (mr.iova + mr.length), a->key, mr.iova,
			 mr.length);
	return true;
}

static void find_misuse(enum strict_rule rule, const struct strict_wr *wr, const char *words)
{
	strict_find(rule, "%s, %s 0x%x, wr_id %" PRIu64 ": %s",
		    wr->is_receive ? "ibv_post_recv()" : "ibv_post_send()", wr->qp ? "QP" : "SRQ",
		    wr_number(wr), wr->wr_id, words);
}

static void explain_local(const struct strict_wr *wr)
{
	struct access a = {
		.view = { nic.pub, NULL, wr->pd, 0 },
		.rights = wr_is_writer(wr) ? IBV_ACCESS_LOCAL_WRITE : 0,
	};
	char words[256];
	uint32_t i;

	for (i = 0; i < wr->num_sge; i++) {
		a.key = wr->sges[i].lkey;
		a.addr = wr->iovas[i];
		a.length = wr->sges[i].length;
		if (say_why(&a, words, sizeof(words))) {
			find_misuse(STRICT_LOCAL_ACCESS, wr, words);
			return;
		}
	}
	find_misuse(STRICT_LOCAL_ACCESS, wr, "registered memory is no longer mapped");
}

static uint32_t rights_at_peer(const struct strict_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_ACCESS_REMOTE_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return IBV_ACCESS_REMOTE_WRITE;
	}
}

/* The peer's table is mapped as long as the queue pair is connected to it. */
static bool say_why_remote(const struct strict_wr *wr, char *words, size_t size)
{
	struct remote_qp *r = &wr->qp->remote;
	struct access a = {
		.key = wr->rkey,
		.rights = rights_at_peer(wr),
		.addr = wr->remote_addr,
		.length = wr->room,
	};
	bool is_known = false;

	pthread_mutex_lock(&wr->qp->lock);
	if (r->shared && r->peer && !qp_names_srqs(wr->qp)) {
		a.view = (struct mr_view){ r->peer->pub, r->peer->doorbell_page,
					   load_relaxed(&r->shared->pd), wr->qp->attr.dest_qp_num };
		is_known = say_why(&a, words, size);
	}
	pthread_mutex_unlock(&wr->qp->lock);
	return is_known;
}

static void explain_remote(const struct strict_wr *wr)
{
	char words[256];

	if (!wr->qp || !say_why_remote(wr, words, sizeof(words)))
		snprintf(words, sizeof(words),
			 "the peer refuses key 0x%x at 0x%" PRIx64 ", %" PRIu64 " bytes", wr->rkey,
			 wr->remote_addr, wr->room);
	find_misuse(STRICT_REMOTE_ACCESS, wr, words);
}

static void explain_invalid(const struct strict_wr *wr)
{
	if (wr_is_send(wr->opcode))
		find_misuse(STRICT_LENGTH, wr, "the message is longer than the peer's receive");
	else if ((rights_at_peer(wr) == IBV_ACCESS_REMOTE_ATOMIC ||
		  wr->opcode == IBV_WR_ATOMIC_WRITE) &&
		 wr->remote_addr % 8)
		find_misuse(STRICT_ATOMIC, wr, "the peer refuses an atomic that is not aligned");
	else
		find_misuse(STRICT_STATE, wr,
			    "the peer's queue pair lacks the right in qp_access_flags, or "
			    "its max_dest_rd_atomic is 0");
}

void explain_error(const struct strict_wr *wr, enum ibv_wc_status status)
{
	char words[128];

	switch (status) {
	case IBV_WC_LOC_PROT_ERR:
		explain_local(wr);
		break;
	case IBV_WC_LOC_LEN_ERR:
		snprintf(words, sizeof(words),
			 "the message does not fit: the buffers have %" PRIu64 " bytes", wr->room);
		find_misuse(STRICT_LENGTH, wr, words);
		break;
	case IBV_WC_REM_ACCESS_ERR:
		explain_remote(wr);
		break;
	case IBV_WC_REM_INV_REQ_ERR:
		explain_invalid(wr);
		break;
	case IBV_WC_REM_OP_ERR:
		find_misuse(STRICT_REMOTE_ACCESS, wr,
			    "the peer's receive or memory cannot be accessed");
		break;
	case IBV_WC_LOC_QP_OP_ERR:
		find_misuse(STRICT_DEPTH, wr,
			    "the queue pair cannot execute it: max_rd_atomic is 0?");
		break;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		find_misuse(STRICT_RNR, wr,
			    "the peer posted no receive in time: rnr_retry is used up");
		break;
	default:
		break; /* flushed, or the peer has gone */
	}
}
