/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of a dma-buf, or of another file, which the CPU can map (ibv_reg_dmabuf_mr). softnic maps
 * the range for as long as the region is registered; the program need not map it.
 */
#ifndef WEIR_SOFTNIC_REGION_DMABUF_H
#define WEIR_SOFTNIC_REGION_DMABUF_H

struct mr;

/** dmabuf_unmap() - unmap the buffer of a region, if it has one, after the last copy */
void dmabuf_unmap(const struct mr *mr);

#endif
