/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clients: their coming and going, and whether they may cache names.
 *
 * A client that is told that it is alone may cache names and attributes. Before another one's
 * mount is answered, it is asked to share, and the answer waits until it has.
 */
#ifndef WEIR_FSD_CLIENT_H
#define WEIR_FSD_CLIENT_H

#include "fsd/internal.h"

/* The head of an answer to a client. */
struct wire_fs_reply fsd_client_reply(struct fsd_client *client, int status);

/* Answers with nothing but a status. @call may be NULL. */
void fsd_client_answer(struct fsd_client *client, void *call, int status);

/* Return: 0, and the call is answered now or later; -EALREADY it has mounted. */
int fsd_client_mount(struct fsd_client *client, void *call);

/* It caches no more. */
void fsd_client_stopped_caching(struct fsd_client *client);

#endif
