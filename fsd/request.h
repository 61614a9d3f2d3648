/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_FSD_REQUEST_H
#define WEIR_FSD_REQUEST_H

#include "fsd/op.h"

/* Handles and answers a message. Returns -EINPROGRESS if the message must be retried. */
int fsd_request_try(struct fsd_client *client, void *call, const void *message, size_t length);

/* Whether a message must wait until another client shares, which is then asked to. */
bool fsd_request_must_wait(struct fsd_client *client, const void *message, size_t length);

/*
 * Decodes, checks and runs a message. @r: without the message's own fields. Return: the status, or
 * -EINPROGRESS.
 */
int fsd_request_handle(struct fsd_request *r, const void *message, size_t length);

#endif
