/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clients: joining, leaving, and permission to cache names.
 *
 * A client that is alone may cache names and attributes; so may one with the lease, while all
 * others are quiet. At most one client has the right. Before a mount or request of another client
 * is answered, the server asks the caching client to share, and the request waits for the client's
 * answer, at most until everything cached has expired.
 */
#ifndef WEIR_FSD_CLIENT_H
#define WEIR_FSD_CLIENT_H

#include "fsd/internal.h"

/* Returns the head of a reply to a client. */
struct wire_fs_reply fsd_client_reply(struct fsd_client *client, int status);

/* Sends a reply with a status only. @call may be NULL. */
void fsd_client_answer(struct fsd_client *client, void *call, int status);

/* Return: 0 (the call is answered now or later), or -EALREADY if the client is mounted already. */
int fsd_client_mount(struct fsd_client *client, void *call, bool has_leases);

/*
 * A request is about to be handled: notes which clients are quiet. @flags: of the operation,
 * FSD_OP_*
 */
void fsd_client_note_request(struct fsd_client *client, unsigned int flags);
/* Whether the request must wait until another client shares, which is then asked to. */
bool fsd_client_must_wait(struct fsd_client *client, unsigned int flags);

/* Return: the client of this number, or NULL. */
struct fsd_client *fsd_client_find(const struct fsd *fsd, uint64_t id);

/* The client has stopped caching. */
void fsd_client_stopped_caching(struct fsd_client *client);

#endif
