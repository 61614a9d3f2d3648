/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of a memfd, or of a dma-buf whose pages process_vm_readv can read (ibv_reg_dmabuf_mr).
 * Others give EOPNOTSUPP. softnic maps the range while the region is registered; the program need
 * not.
 */
#ifndef WEIR_SOFTNIC_REGION_DMABUF_H
#define WEIR_SOFTNIC_REGION_DMABUF_H

struct mr;

/** dmabuf_unmap() - unmap the buffer of a region, if any, after the last copy */
void dmabuf_unmap(const struct mr *mr);

#endif
