/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that are postponed: those that want more memory than can be zeroed at once, or that
 * is in limbo and about to come back. They are tried again until they succeed or fail.
 */
#ifndef WEIR_FSD_DEFERRED_H
#define WEIR_FSD_DEFERRED_H

#include "fsd/internal.h"

/* Keeps a copy of @message; where too many wait, @call is answered with ENOSPC instead. */
void fsd_deferred_add(struct fsd_client *client, void *call, const void *message, size_t length);
void fsd_deferred_retry(struct fsd *fsd);
/* The client goes: its calls are answered. */
void fsd_deferred_drop(struct fsd_client *client);

#endif
