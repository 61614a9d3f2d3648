// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "kernel/weir/bounce.h"
#include "kernel/weir/nic.h"

#define ORDER get_order(WEIR_COPY_BYTES)

static int make_piece(struct weir_copies *copies)
{
	struct ib_device *device = copies->nic->device;
	u32 number = copies->nr;
	struct page *page = alloc_pages(GFP_KERNEL, ORDER);

	if (!page)
		return -ENOMEM;
	copies->dma[number] = ib_dma_map_page(device, page, 0, WEIR_COPY_BYTES, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, copies->dma[number])) {
		__free_pages(page, ORDER);
		return -ENOMEM;
	}
	copies->piece[number] = page;
	copies->free[number] = number;
	copies->nr_free = ++copies->nr;
	return 0;
}

int weir_copies_init(struct weir_copies *copies, struct weir_nic *nic, u64 bytes)
{
	u32 pieces = clamp_t(u64, bytes / WEIR_COPY_BYTES, 2 * WEIR_IO_SEGMENTS, U16_MAX);
	int rc = 0;

	spin_lock_init(&copies->lock);
	copies->nic = nic;
	copies->piece = kvcalloc(pieces, sizeof(*copies->piece), GFP_KERNEL);
	copies->dma = kvcalloc(pieces, sizeof(*copies->dma), GFP_KERNEL);
	copies->free = kvcalloc(pieces, sizeof(*copies->free), GFP_KERNEL);
	if (!copies->piece || !copies->dma || !copies->free)
		rc = -ENOMEM;
	while (!rc && copies->nr < pieces)
		rc = make_piece(copies);
	return rc;
}

void weir_copies_fini(struct weir_copies *copies)
{
	while (copies->nr) {
		u32 number = --copies->nr;

		ib_dma_unmap_page(copies->nic->device, copies->dma[number], WEIR_COPY_BYTES,
				  DMA_BIDIRECTIONAL);
		__free_pages(copies->piece[number], ORDER);
	}
	kvfree(copies->piece);
	kvfree(copies->dma);
	kvfree(copies->free);
	*copies = (struct weir_copies){ };
}

/* Between the io's own memory and its pieces, either way. */
static void copy(struct weir_copies *copies, struct weir_io *io, bool to_io)
{
	u32 i;

	for (i = 0; i < io->nr_copies; i++) {
		u32 number = io->copy[i], bytes = weir_copies_length(io->bytes, i);
		void *piece = page_address(copies->piece[number]);
		off_t skip = (off_t)i * WEIR_COPY_BYTES;

		if (to_io) {
			ib_dma_sync_single_for_cpu(copies->nic->device, copies->dma[number], bytes,
						   DMA_FROM_DEVICE);
			sg_pcopy_from_buffer(io->sgl, io->nents, piece, bytes, skip);
		} else {
			sg_pcopy_to_buffer(io->sgl, io->nents, piece, bytes, skip);
			ib_dma_sync_single_for_device(copies->nic->device, copies->dma[number],
						      bytes, DMA_TO_DEVICE);
		}
	}
}

int weir_copies_take(struct weir_copies *copies, struct weir_io *io, u64 bytes)
{
	u32 wanted = DIV_ROUND_UP_ULL(bytes, WEIR_COPY_BYTES), i;

	spin_lock_bh(&copies->lock);
	if (wanted > copies->nr_free) {
		spin_unlock_bh(&copies->lock);
		return -ENOMEM;
	}
	for (i = 0; i < wanted; i++)
		io->copy[i] = copies->free[--copies->nr_free];
	spin_unlock_bh(&copies->lock);
	io->nr_copies = wanted;
	io->bytes = bytes;
	if (io->direction == DMA_TO_DEVICE)
		copy(copies, io, false);
	return 0;
}

void weir_copies_give(struct weir_copies *copies, struct weir_io *io)
{
	u32 i;

	if (io->direction == DMA_FROM_DEVICE && !io->status)
		copy(copies, io, true);
	spin_lock_bh(&copies->lock);
	for (i = 0; i < io->nr_copies; i++)
		copies->free[copies->nr_free++] = io->copy[i];
	spin_unlock_bh(&copies->lock);
}
