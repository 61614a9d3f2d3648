/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_wr_*: an extended queue pair has pointers of its own. Nothing is posted before wr_complete(),
 * so WRs under construction are noted until then. The device serialises from wr_start() to
 * wr_complete().
 */
#include "wrap.h"

struct wrapped_qp {
	struct ibv_qp_ex was; /* original pointers */
	struct posted_wrs built;
	enum wr_kind last; /* kind of the WR whose bytes follow */
};

static struct wrapped_qp *kept_of(struct ibv_qp_ex *qp)
{
	return wrapped_find(WRAPPED_QP, qp);
}

static struct wrapped_qp *note_wr(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	struct wrapped_qp *kept = kept_of(qp);

	kept->last = wr_kind_of(opcode);
	kept->built.wrs[kept->last]++;
	return kept;
}

static struct wrapped_qp *add_bytes(struct ibv_qp_ex *qp, uint64_t bytes)
{
	struct wrapped_qp *kept = kept_of(qp);

	kept->built.bytes[kept->last] += bytes;
	return kept;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	note_wr(qp, IBV_WR_ATOMIC_CMP_AND_SWP)
		->was.wr_atomic_cmp_swp(qp, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				uint64_t addend)
{
	note_wr(qp, IBV_WR_ATOMIC_FETCH_AND_ADD)
		->was.wr_atomic_fetch_add(qp, rkey, remote_addr, addend);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			    const void *word)
{
	note_wr(qp, IBV_WR_ATOMIC_WRITE)->was.wr_atomic_write(qp, rkey, remote_addr, word);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	note_wr(qp, IBV_WR_BIND_MW)->was.wr_bind_mw(qp, mw, rkey, info);
}

#ifdef HAVE_WR_FLUSH
static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t type, uint8_t level)
{
	note_wr(qp, IBV_WR_FLUSH)->was.wr_flush(qp, rkey, remote_addr, length, type, level);
}
#endif

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	note_wr(qp, IBV_WR_LOCAL_INV)->was.wr_local_inv(qp, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	note_wr(qp, IBV_WR_RDMA_READ)->was.wr_rdma_read(qp, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	note_wr(qp, IBV_WR_RDMA_WRITE)->was.wr_rdma_write(qp, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	note_wr(qp, IBV_WR_RDMA_WRITE_WITH_IMM)->was.wr_rdma_write_imm(qp, rkey, remote_addr, imm);
}

static void wr_send(struct ibv_qp_ex *qp)
{
	note_wr(qp, IBV_WR_SEND)->was.wr_send(qp);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	note_wr(qp, IBV_WR_SEND_WITH_IMM)->was.wr_send_imm(qp, imm);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	note_wr(qp, IBV_WR_SEND_WITH_INV)->was.wr_send_inv(qp, rkey);
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *header, uint16_t header_length, uint16_t mss)
{
	note_wr(qp, IBV_WR_TSO)->was.wr_send_tso(qp, header, header_length, mss);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	add_bytes(qp, length)->was.wr_set_inline_data(qp, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t nr,
				    const struct ibv_data_buf *list)
{
	struct wrapped_qp *kept = kept_of(qp);
	size_t i;

	for (i = 0; i < nr; i++)
		add_bytes(qp, list[i].length);
	kept->was.wr_set_inline_data_list(qp, nr, list);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	add_bytes(qp, length)->was.wr_set_sge(qp, lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t nr, const struct ibv_sge *list)
{
	struct wrapped_qp *kept = kept_of(qp);
	size_t i;

	for (i = 0; i < nr; i++)
		add_bytes(qp, list[i].length);
	kept->was.wr_set_sge_list(qp, nr, list);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct wrapped_qp *kept = kept_of(qp);

	kept->was.wr_start(qp);
	kept->built = (struct posted_wrs){ 0 };
}

/* Reads the notes first: the device releases its lock, and another thread may start. */
static int wr_complete(struct ibv_qp_ex *qp)
{
	struct wrapped_qp *kept = kept_of(qp);
	struct posted_wrs built = kept->built;
	int rc = kept->was.wr_complete(qp);

	if (rc)
		built = (struct posted_wrs){ 0 };
	count_posted(&built);
	return rc;
}

#define WRAP(name)                       \
	do {                             \
		if (qp->name)            \
			qp->name = name; \
	} while (0)

void wrap_qp(struct ibv_qp_ex *qp)
{
	struct wrapped_qp *kept;

	if (qp->wr_start == wr_start)
		return;
	kept = wrapped_get(WRAPPED_QP, qp, sizeof(*kept));
	if (!kept)
		return;
	kept->was = *qp;
	WRAP(wr_atomic_cmp_swp);
	WRAP(wr_atomic_fetch_add);
	WRAP(wr_atomic_write);
	WRAP(wr_bind_mw);
#ifdef HAVE_WR_FLUSH
	WRAP(wr_flush);
#endif
	WRAP(wr_local_inv);
	WRAP(wr_rdma_read);
	WRAP(wr_rdma_write);
	WRAP(wr_rdma_write_imm);
	WRAP(wr_send);
	WRAP(wr_send_imm);
	WRAP(wr_send_inv);
	WRAP(wr_send_tso);
	WRAP(wr_set_inline_data);
	WRAP(wr_set_inline_data_list);
	WRAP(wr_set_sge);
	WRAP(wr_set_sge_list);
	WRAP(wr_start);
	WRAP(wr_complete);
}
