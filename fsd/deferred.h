/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deferred requests: requests for more memory than can be zeroed at once, or for memory that is in
 * limbo and about to come back; changes while a directory is copied; and requests that wait until
 * another client shares. The server retries them until they succeed or fail.
 */
#ifndef WEIR_FSD_DEFERRED_H
#define WEIR_FSD_DEFERRED_H

#include "fsd/internal.h"

/*
 * Queues a copy of @message. Without memory, and if the client has more requests queued than a
 * session has calls, answers @call with -ENOMEM instead.
 */
void fsd_deferred_add(struct fsd_client *client, void *call, const void *message, size_t length);
void fsd_deferred_retry(struct fsd *fsd);
/* A copy has ended: retries all, in order, before a later request can overtake one. */
void fsd_deferred_thaw(struct fsd *fsd);
/* The client leaves: answers its queued calls. */
void fsd_deferred_drop(struct fsd_client *client);

#endif
