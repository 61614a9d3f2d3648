// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The posting interface of struct ibv_qp_ex. The ibv_wr_* calls build a WR piece by piece. When
 * the next WR begins, the built one is appended as ibv_post_send() would do. The send queue is
 * locked from ibv_wr_start() to the end. After an error, ibv_wr_complete() posts nothing and
 * returns the error.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/strict/strict.h"
#include "softnic/verbs/nic.h"
#include "softnic/xrc/xrc.h"
#include "post.h"
#include "qp.h"
#include "qp_ex.h"

/* State from ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort(); under post_lock. */
struct wr_builder {
	struct post_batch posting;
	post_fn *append;
	struct ibv_send_wr wr;
	bool has_wr; /* begun, not yet appended */
	int rc;
	struct ibv_sge sges[SHARED_SGES_MAX];
	uint8_t inlined[SOFTNIC_INLINE_MAX];
};

static struct wr_builder *builder_of(struct ibv_qp_ex *ex)
{
	return to_qp(&ex->qp_base)->wr_builder;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct wr_builder *c = builder_of(ex);

	c->rc = post_begin(to_qp(&ex->qp_base), &c->posting);
	c->has_wr = false;
}

static void append_wr(struct ibv_qp_ex *ex)
{
	struct wr_builder *c = builder_of(ex);

	if (c->has_wr && !c->rc)
		c->rc = c->append(to_qp(&ex->qp_base), &c->posting, &c->wr);
	c->has_wr = false;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&to_qp(&ex->qp_base)->post_lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct wr_builder *c = builder_of(ex);
	int rc;

	append_wr(ex);
	rc = c->rc;
	if (rc)
		wr_abort(ex);
	else
		post_end(to_qp(&ex->qp_base), &c->posting);
	return rc;
}

static struct ibv_send_wr *begin_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct wr_builder *c = builder_of(ex);

	append_wr(ex);
	c->has_wr = true;
	c->wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.opcode = opcode,
		.send_flags = ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE,
		.sg_list = c->sges,
	};
	return &c->wr;
}

static struct ibv_send_wr *begin_rdma_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
					 uint32_t rkey, uint64_t remote_addr)
{
	struct ibv_send_wr *wr = begin_wr(ex, opcode);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
	return wr;
}

static void rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma_wr(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma_wr(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	begin_rdma_wr(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_data = imm;
}

static void atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
		   uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin_wr(ex, opcode);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
		    uint64_t swap)
{
	atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

/* Inline, whatever the queue pair's max_inline_data: the program may reuse its 8 bytes at once. */
static void atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			 const void *value)
{
	struct ibv_send_wr *wr = begin_rdma_wr(ex, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	struct wr_builder *c = builder_of(ex);

	memcpy(c->inlined, value, sizeof(uint64_t));
	c->sges[0] = (struct ibv_sge){ (uintptr_t)c->inlined, sizeof(uint64_t), 0 };
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_INLINE;
}

static void send_plain(struct ibv_qp_ex *ex)
{
	begin_wr(ex, IBV_WR_SEND);
}

static void send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin_wr(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin_wr(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin_wr(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		    const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin_wr(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = &builder_of(ex)->wr;

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	builder_of(ex)->wr.qp_type.xrc.remote_srqn = remote_srqn;
}

static void set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sges)
{
	struct wr_builder *c = builder_of(ex);

	if (num_sge > SHARED_SGES_MAX) {
		c->rc = EINVAL;
		return;
	}
	memcpy(c->sges, sges, num_sge * sizeof(*sges));
	c->wr.num_sge = num_sge;
}

static void set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { addr, length, lkey };

	set_sge_list(ex, 1, &sge);
}

/* Copies now, because the program may reuse its buffers at once. */
static void set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				 const struct ibv_data_buf *bufs)
{
	struct wr_builder *c = builder_of(ex);
	size_t i, length = 0;

	for (i = 0; i < num_buf; i++) {
		if (bufs[i].length > sizeof(c->inlined) - length) {
			c->rc = EINVAL;
			return;
		}
		memcpy(c->inlined + length, bufs[i].addr, bufs[i].length);
		length += bufs[i].length;
	}
	c->sges[0] = (struct ibv_sge){ (uintptr_t)c->inlined, length, 0 };
	c->wr.num_sge = length ? 1 : 0;
	c->wr.send_flags |= IBV_SEND_INLINE;
}

static void set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { addr, length };

	set_inline_data_list(ex, 1, &buf);
}
static void flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
		  uint8_t type, uint8_t level)
{
	struct ibv_send_wr *wr = begin_wr(ex, FLUSH_OP);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = length;
	wr->wr.atomic.swap = type | (uint64_t)level << 8;
	wr->wr.atomic.rkey = rkey;
}

static uint64_t supported_ops(enum ibv_qp_type type)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	const uint64_t reads = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	const uint64_t of_rc = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
			       IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE |
			       FLUSH_OPS;

	switch (type) {
	case IBV_QPT_RC:
		return sends | writes | reads | of_rc;
	case IBV_QPT_XRC_SEND:
		return sends | writes | reads;
	case IBV_QPT_UC:
		return sends | writes;
	case IBV_QPT_UD:
		return sends;
	default:
		return 0;
	}
}

/* An operation that the program did not request stays NULL, as with hardware. */
#define IF(flag, fn) (ops & IBV_QP_EX_WITH_##flag ? fn : NULL)

static void set_flush(struct ibv_qp_ex *ex, uint64_t ops)
{
	struct flush_qp_ex *with_flush = (struct flush_qp_ex *)ex;

#ifdef HAVE_WR_FLUSH
	with_flush->ex.wr_flush = ops & FLUSH_OPS ? flush : NULL;
#else
	with_flush->wr_flush = ops & FLUSH_OPS ? flush : NULL;
#endif
}

static void init_operations(struct ibv_qp_ex *ex, uint64_t ops)
{
	set_flush(ex, ops);
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_rdma_read = IF(RDMA_READ, rdma_read);
	ex->wr_rdma_write = IF(RDMA_WRITE, rdma_write);
	ex->wr_rdma_write_imm = IF(RDMA_WRITE_WITH_IMM, rdma_write_imm);
	ex->wr_send = IF(SEND, send_plain);
	ex->wr_send_imm = IF(SEND_WITH_IMM, send_imm);
	ex->wr_atomic_cmp_swp = IF(ATOMIC_CMP_AND_SWP, cmp_swp);
	ex->wr_atomic_fetch_add = IF(ATOMIC_FETCH_AND_ADD, fetch_add);
	ex->wr_atomic_write = IF(ATOMIC_WRITE, atomic_write);
	ex->wr_send_inv = IF(SEND_WITH_INV, send_inv);
	ex->wr_local_inv = IF(LOCAL_INV, local_inv);
	ex->wr_bind_mw = IF(BIND_MW, bind_mw);
	ex->wr_set_ud_addr = set_ud_addr;
	ex->wr_set_xrc_srqn = set_xrc_srqn;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline_data;
	ex->wr_set_inline_data_list = set_inline_data_list;
}

/* The supported creation flags. */
static uint32_t create_flags(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
}

struct ibv_qp *qp_ex_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_XRCD;
	const bool composes = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint64_t ops = composes ? init->send_ops_flags : 0;
	struct wr_builder *c = NULL;
	uint32_t flags = 0;
	struct ibv_qp *ibv;

	(void)context;
	if (init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		flags = init->create_flags;
	if ((flags & ~create_flags(init->qp_type)) || (init->comp_mask & ~known) ||
	    (ops & ~supported_ops(init->qp_type))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (init->qp_type == IBV_QPT_XRC_RECV && (init->comp_mask & IBV_QP_INIT_ATTR_XRCD))
		return xrc_create_receiver(init);
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if (composes) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		c->append = strict_post_append();
	}
	/* Both structures begin with the same fields. */
	ibv = qp_create(init->pd, (struct ibv_qp_init_attr *)init);
	if (!ibv) {
		free(c);
		return NULL;
	}
	to_qp(ibv)->wr_builder = c;
	to_qp(ibv)->blocks_own = flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	init_operations(&to_qp(ibv)->ex, ops);
	return ibv;
}

void qp_ex_fini(struct qp *qp)
{
	free(qp->wr_builder);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return to_qp(qp)->wr_builder ? &to_qp(qp)->ex : NULL;
}
