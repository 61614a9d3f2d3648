/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Changes that a client has completed by itself: FS_RESERVE, FS_NAME and FS_BATCH. */
#ifndef WEIR_FSD_BATCH_BATCH_H
#define WEIR_FSD_BATCH_BATCH_H

#include "fsd/op.h"

int fsd_batch_reserve(struct fsd_request *r);
int fsd_batch_name(struct fsd_request *r);
int fsd_batch(struct fsd_request *r);

#endif
