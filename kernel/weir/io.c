// SPDX-License-Identifier: GPL-2.0-only
/*
 * The paper's dynMR, in a current kernel. Nothing is registered: the PD has one key for all local
 * memory. The pages of an io are mapped for the device at submit and unmapped at completion;
 * sessions with bounce memory copy instead (bounce.h). An engine request has at most WEIR_SGE_MAX
 * pieces, so a longer io becomes several adjacent requests. The engine merges adjacent requests
 * into one WR where the device accepts more pieces.
 */
#include <linux/ktime.h>
#include <linux/module.h>

#include "kernel/weir/io.h"

#define RETRIES 3

/* Starts the next part of @io, at @remote. */
static struct weir_req *part_begin(struct kweir_io *io, const struct kweir_region *region,
				   u64 remote, enum weir_op op)
{
	struct kweir_part *part = &io->part[io->nr_parts++];

	part->io = io;
	part->req.op = op;
	part->req.retries = RETRIES;
	part->req.exclusive = true;
	part->req.rkey = region->rkey;
	part->req.remote = remote;
	part->req.length = 0;
	part->req.nr_sge = 0;
	return &part->req;
}

/* Appends a piece of local memory to the pieces before. */
static void add_sge(struct kweir_io *io, const struct kweir_region *region, u64 *remote,
		    enum weir_op op, const struct weir_sge *sge)
{
	struct weir_req *req = io->nr_parts ? &io->part[io->nr_parts - 1].req : NULL;

	if (!req || req->nr_sge == WEIR_SGE_MAX)
		req = part_begin(io, region, *remote, op);
	req->sge[req->nr_sge++] = *sge;
	req->length += sge->length;
	*remote += sge->length;
}

static void cut_pages(struct kweir_io *io, const struct kweir_region *region, u64 remote,
		      enum weir_op op, unsigned int mapped)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sg(io->sgl, sg, mapped, i)
	{
		const struct weir_sge sge = {
			.addr = sg_dma_address(sg),
			.length = sg_dma_len(sg),
			.lkey = io->session->nic->pd->local_dma_lkey,
		};

		add_sge(io, region, &remote, op, &sge);
	}
}

static void cut_copies(struct kweir_io *io, const struct kweir_region *region, u64 remote,
		       enum weir_op op)
{
	unsigned int i;

	for (i = 0; i < io->nr_copies; i++) {
		const struct weir_sge sge = {
			.addr = io->session->bounce.dma[io->copy[i]],
			.length = kweir_bounce_length(io->bytes, i),
			.lkey = io->session->nic->pd->local_dma_lkey,
		};

		add_sge(io, region, &remote, op, &sge);
	}
}

static u64 sg_bytes(struct scatterlist *sgl, unsigned int nents)
{
	struct scatterlist *sg;
	u64 bytes = 0;
	unsigned int i;

	for_each_sg(sgl, sg, nents, i) bytes += sg->length;
	return bytes;
}

/* Maps the memory of @io for the device. Return: 0; -ENOMEM. */
static int map_for_device(struct kweir_io *io, const struct kweir_region *region, u64 remote,
			  enum weir_op op, u64 bytes)
{
	struct kweir_session *session = io->session;
	int mapped, rc;

	io->nr_parts = 0;
	if (session->options.mr == KWEIR_MR_PRE) {
		rc = kweir_bounce_take(&session->bounce, io, bytes);
		if (!rc)
			cut_copies(io, region, remote, op);
		return rc;
	}
	mapped = ib_dma_map_sg(session->nic->device, io->sgl, io->nents, io->direction);
	if (!mapped)
		return -ENOMEM;
	cut_pages(io, region, remote, op, mapped);
	return 0;
}

/* Does the request exceed the capacity of an io? */
static bool is_too_long(const struct kweir_session *session, u64 bytes, unsigned int nents)
{
	return nents > KWEIR_IO_SEGMENTS || (session->options.mr == KWEIR_MR_PRE &&
					     bytes > KWEIR_IO_SEGMENTS * KWEIR_BOUNCE_BYTES);
}

int kweir_io_prepare(struct kweir_io *io, struct kweir_region *region, u64 offset, enum weir_op op,
		     struct scatterlist *sgl, unsigned int nents)
{
	u64 bytes = sg_bytes(sgl, nents);
	int rc;

	if (!bytes || is_too_long(region->session, bytes, nents) || offset > region->length ||
	    bytes > region->length - offset || op > WEIR_OP_WRITE)
		return -EINVAL;
	io->status = 0;
	io->session = region->session;
	io->sgl = sgl;
	io->nents = nents;
	io->direction = op == WEIR_OP_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	if (!kweir_session_enter(io->session))
		return -ENODEV;
	rc = map_for_device(io, region, region->remote + offset, op, bytes);
	if (rc)
		kweir_session_leave(io->session);
	return rc;
}
EXPORT_SYMBOL_GPL(kweir_io_prepare);

void kweir_io_forget(struct kweir_io *io)
{
	if (io->nents && io->session->options.mr == KWEIR_MR_PRE)
		kweir_bounce_give(&io->session->bounce, io);
	else if (io->nents)
		ib_dma_unmap_sg(io->session->nic->device, io->sgl, io->nents, io->direction);
	kweir_session_leave(io->session);
}
EXPORT_SYMBOL_GPL(kweir_io_forget);

void kweir_io_push(struct kweir_io *io)
{
	u64 deadline_ns = ktime_get_ns() + io->session->timeout_ns;
	unsigned int i;

	for (i = 0; i < io->nr_parts; i++)
		io->part[i].req.deadline_ns = deadline_ns;
	io->parts_left = io->nr_parts;
	kweir_nic_push(io->session->nic, io);
}
EXPORT_SYMBOL_GPL(kweir_io_push);

void kweir_io_submit(struct kweir_io *io)
{
	struct kweir_nic *nic = io->session->nic;

	kweir_io_push(io);
	kweir_nic_serve(nic);
}
EXPORT_SYMBOL_GPL(kweir_io_submit);

void kweir_io_part_done(struct kweir_part *part)
{
	struct kweir_io *io = part->io;

	if (part->req.status && !io->status)
		io->status = part->req.status;
	if (part->req.op != WEIR_OP_SEND)
		io->session->stat.retries += RETRIES - part->req.retries;
	if (--io->parts_left)
		return;
	weir_list_init(&io->link);
	weir_list_add_tail(&io->session->nic->done, &io->link);
}

void kweir_io_admit(struct kweir_io *io)
{
	struct kweir_session *session = io->session;
	unsigned int i, nr_parts = io->nr_parts;
	u64 now_ns = ktime_get_ns();
	int rc;

	session->stat.ios++;
	session->stat.requests += nr_parts;
	for (i = 0; i < nr_parts; i++) {
		struct kweir_part *part = &io->part[i];

		rc = weir_engine_submit(&session->engine, &part->req, now_ns);
		if (rc) {
			part->req.status = rc;
			kweir_io_part_done(part);
		}
	}
	kweir_session_schedule(session);
}

void kweir_io_complete(struct kweir_io *io)
{
	kweir_io_forget(io);
	io->done(io);
}
