// SPDX-License-Identifier: GPL-2.0-only
/*
 * The paper's dynMR in a kernel of today: nothing is registered, for the PD has one key for all of
 * local memory; an io's pages are mapped for the device when it comes and unmapped when it is
 * done. What the engine calls a request has WEIR_SGE_MAX pieces at most, so an io of more is
 * several; being neighbours they share WRs again where the device takes more.
 */
#include <linux/ktime.h>
#include <linux/module.h>

#include "kernel/weir/io.h"

#define RETRIES 3

/* The next part of @io begins at @remote. */
static struct weir_req *part_begin(struct weir_io *io, const struct weir_region *region, u64 remote,
				   enum weir_op op)
{
	struct weir_part *part = &io->part[io->nr_parts++];

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

static void cut(struct weir_io *io, const struct weir_region *region, u64 remote, enum weir_op op,
		unsigned int mapped)
{
	u32 lkey = io->session->nic->pd->local_dma_lkey;
	struct weir_req *req = NULL;
	struct scatterlist *sg;
	unsigned int i;

	io->nr_parts = 0;
	for_each_sg(io->sgl, sg, mapped, i) {
		if (!req || req->nr_sge == WEIR_SGE_MAX)
			req = part_begin(io, region, remote, op);
		req->sge[req->nr_sge++] = (struct weir_sge){
			.addr = sg_dma_address(sg),
			.length = sg_dma_len(sg),
			.lkey = lkey,
		};
		req->length += sg_dma_len(sg);
		remote += sg_dma_len(sg);
	}
}

static u64 sg_bytes(struct scatterlist *sgl, unsigned int nents)
{
	struct scatterlist *sg;
	u64 bytes = 0;
	unsigned int i;

	for_each_sg(sgl, sg, nents, i)
		bytes += sg->length;
	return bytes;
}

int weir_io_prepare(struct weir_io *io, struct weir_region *region, u64 offset, enum weir_op op,
		    struct scatterlist *sgl, unsigned int nents)
{
	u64 bytes = sg_bytes(sgl, nents);
	int mapped;

	if (!bytes || nents > WEIR_IO_SEGMENTS || offset > region->length ||
	    bytes > region->length - offset || op > WEIR_OP_WRITE)
		return -EINVAL;
	io->status = 0;
	io->session = region->session;
	io->sgl = sgl;
	io->nents = nents;
	io->direction = op == WEIR_OP_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	if (!weir_session_enter(io->session))
		return -ENODEV;
	mapped = ib_dma_map_sg(io->session->nic->device, sgl, nents, io->direction);
	if (!mapped) {
		weir_session_leave(io->session);
		return -ENOMEM;
	}
	cut(io, region, region->remote + offset, op, mapped);
	return 0;
}
EXPORT_SYMBOL_GPL(weir_io_prepare);

void weir_io_forget(struct weir_io *io)
{
	if (io->nents)
		ib_dma_unmap_sg(io->session->nic->device, io->sgl, io->nents, io->direction);
	weir_session_leave(io->session);
}
EXPORT_SYMBOL_GPL(weir_io_forget);

void weir_io_push(struct weir_io *io)
{
	u64 deadline_ns = ktime_get_ns() + io->session->timeout_ns;
	unsigned int i;

	for (i = 0; i < io->nr_parts; i++)
		io->part[i].req.deadline_ns = deadline_ns;
	io->parts_left = io->nr_parts;
	weir_nic_push(io->session->nic, io);
}
EXPORT_SYMBOL_GPL(weir_io_push);

void weir_io_submit(struct weir_io *io)
{
	struct weir_nic *nic = io->session->nic;

	weir_io_push(io);
	weir_nic_serve(nic);
}
EXPORT_SYMBOL_GPL(weir_io_submit);

void weir_io_part_done(struct weir_part *part)
{
	struct weir_io *io = part->io;

	if (part->req.status && !io->status)
		io->status = part->req.status;
	if (part->req.op != WEIR_OP_SEND)
		io->session->stat.retries += RETRIES - part->req.retries;
	if (--io->parts_left)
		return;
	weir_list_init(&io->link);
	weir_list_add_tail(&io->session->nic->done, &io->link);
}

void weir_io_admit(struct weir_io *io)
{
	struct weir_session *session = io->session;
	unsigned int i, nr_parts = io->nr_parts;
	u64 now_ns = ktime_get_ns();
	int rc;

	session->stat.ios++;
	session->stat.requests += nr_parts;
	for (i = 0; i < nr_parts; i++) {
		struct weir_part *part = &io->part[i];

		rc = weir_engine_submit(&session->engine, &part->req, now_ns);
		if (rc) {
			part->req.status = rc;
			weir_io_part_done(part);
		}
	}
	weir_session_feed(session);
}

void weir_io_tell(struct weir_io *io)
{
	weir_io_forget(io);
	io->done(io);
}
