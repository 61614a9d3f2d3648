// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "kernel/weir/bounce.h"
#include "kernel/weir/nic.h"

#define ORDER get_order(KWEIR_BOUNCE_BYTES)

static int make_piece(struct kweir_bounce_pool *bounce)
{
	struct ib_device *device = bounce->nic->device;
	u32 number = bounce->nr;
	struct page *page = alloc_pages(GFP_KERNEL, ORDER);

	if (!page)
		return -ENOMEM;
	bounce->dma[number] =
		ib_dma_map_page(device, page, 0, KWEIR_BOUNCE_BYTES, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, bounce->dma[number])) {
		__free_pages(page, ORDER);
		return -ENOMEM;
	}
	bounce->piece[number] = page;
	bounce->free[number] = number;
	bounce->nr_free = ++bounce->nr;
	return 0;
}

int kweir_bounce_init(struct kweir_bounce_pool *bounce, struct kweir_nic *nic, u64 bytes)
{
	u32 pieces = clamp_t(u64, bytes / KWEIR_BOUNCE_BYTES, 2 * KWEIR_IO_SEGMENTS, U16_MAX);
	int rc = 0;

	spin_lock_init(&bounce->lock);
	bounce->nic = nic;
	bounce->piece = kvcalloc(pieces, sizeof(*bounce->piece), GFP_KERNEL);
	bounce->dma = kvcalloc(pieces, sizeof(*bounce->dma), GFP_KERNEL);
	bounce->free = kvcalloc(pieces, sizeof(*bounce->free), GFP_KERNEL);
	if (!bounce->piece || !bounce->dma || !bounce->free)
		rc = -ENOMEM;
	while (!rc && bounce->nr < pieces)
		rc = make_piece(bounce);
	return rc;
}

void kweir_bounce_fini(struct kweir_bounce_pool *bounce)
{
	while (bounce->nr) {
		u32 number = --bounce->nr;

		ib_dma_unmap_page(bounce->nic->device, bounce->dma[number], KWEIR_BOUNCE_BYTES,
				  DMA_BIDIRECTIONAL);
		__free_pages(bounce->piece[number], ORDER);
	}
	kvfree(bounce->piece);
	kvfree(bounce->dma);
	kvfree(bounce->free);
	*bounce = (struct kweir_bounce_pool){};
}

/* Copies between the caller's memory and the io's bounce pieces, in either direction. */
static void copy(struct kweir_bounce_pool *bounce, struct kweir_io *io, bool to_io)
{
	u32 i;

	for (i = 0; i < io->nr_copies; i++) {
		u32 number = io->copy[i], bytes = kweir_bounce_length(io->bytes, i);
		void *piece = page_address(bounce->piece[number]);
		off_t skip = (off_t)i * KWEIR_BOUNCE_BYTES;

		if (to_io) {
			ib_dma_sync_single_for_cpu(bounce->nic->device, bounce->dma[number], bytes,
						   DMA_FROM_DEVICE);
			sg_pcopy_from_buffer(io->sgl, io->nents, piece, bytes, skip);
		} else {
			sg_pcopy_to_buffer(io->sgl, io->nents, piece, bytes, skip);
			ib_dma_sync_single_for_device(bounce->nic->device, bounce->dma[number],
						      bytes, DMA_TO_DEVICE);
		}
	}
}

int kweir_bounce_take(struct kweir_bounce_pool *bounce, struct kweir_io *io, u64 bytes)
{
	u32 wanted = DIV_ROUND_UP_ULL(bytes, KWEIR_BOUNCE_BYTES), i;

	spin_lock_bh(&bounce->lock);
	if (wanted > bounce->nr_free) {
		spin_unlock_bh(&bounce->lock);
		return -ENOMEM;
	}
	for (i = 0; i < wanted; i++)
		io->copy[i] = bounce->free[--bounce->nr_free];
	spin_unlock_bh(&bounce->lock);
	io->nr_copies = wanted;
	io->bytes = bytes;
	if (io->direction == DMA_TO_DEVICE)
		copy(bounce, io, false);
	return 0;
}

void kweir_bounce_give(struct kweir_bounce_pool *bounce, struct kweir_io *io)
{
	u32 i;

	if (io->direction == DMA_FROM_DEVICE && !io->status)
		copy(bounce, io, true);
	spin_lock_bh(&bounce->lock);
	for (i = 0; i < io->nr_copies; i++)
		bounce->free[bounce->nr_free++] = io->copy[i];
	spin_unlock_bh(&bounce->lock);
}
