/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/client.h"
#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/deferred.h"
#include "fsd/snapshot/snapshot.h"

/*
 * By then a living client has answered FS_SHARE, and the cached entries of a silent client have
 * expired: no entry lives longer than FS_ALONE_MS after its request.
 */
#define SHARE_TIMEOUT_NS (3 * FS_ALONE_MS * 1000000ull)

static bool is_alone(const struct fsd_client *client)
{
	const struct fsd_client *other;

	TAILQ_FOREACH(other, &client->fsd->clients, entry) {
		if (other != client && other->state != FSD_NEW)
			return false;
	}
	return true;
}

struct fsd_client *fsd_client_find(const struct fsd *fsd, uint64_t id)
{
	struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (client->id == id)
			break;
	}
	return client;
}

struct wire_fs_reply fsd_client_reply(struct fsd_client *client, int status)
{
	struct wire_fs_reply reply = { .status = status };

	/* A client asked to share may cache again only after its answer. */
	reply.shared = client->asked_to_share || client->fsd->host.data || !is_alone(client);
	if (client->state == FSD_MOUNTED && !reply.shared)
		client->caches = true;
	return reply;
}

void fsd_client_answer(struct fsd_client *client, void *call, int status)
{
	struct fsd *fsd = client->fsd;
	struct wire_fs_reply reply = fsd_client_reply(client, status);

	if (call)
		fsd->host.answer(fsd->host.arg, call, &reply, sizeof(reply));
}

static void answer_mount(struct fsd_client *client)
{
	struct fsd *fsd = client->fsd;
	struct wire_fs_mounted reply = {
		.chunk_bytes = fsd->options.chunk_bytes,
		.client = client->id,
	};
	void *call = client->mount_call;

	client->state = FSD_MOUNTED;
	client->mount_call = NULL;
	reply.reply = fsd_client_reply(client, 0);
	fsd_inode_attr(fsd->root, &reply.root);
	fsd->host.answer(fsd->host.arg, call, &reply, sizeof(reply));
}

static bool someone_caches(const struct fsd_client *client)
{
	const struct fsd_client *other;

	TAILQ_FOREACH(other, &client->fsd->clients, entry) {
		if (other != client && other->caches)
			return true;
	}
	return false;
}

static void ask_to_share(struct fsd_client *client)
{
	struct fsd *fsd = client->fsd;
	struct wire_fs_head message = { .op = FS_SHARE };

	if (!client->caches || client->asked_to_share)
		return;
	client->asked_to_share = true;
	/* A client that misses this is silent, and the mount waits no longer for it. */
	(void)fsd->host.tell(fsd->host.arg, client->peer, &message, sizeof(message));
}

/* A client has stopped caching or left: answers the mounts that waited for it. */
static void answer_waiting_mounts(struct fsd *fsd)
{
	struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (client->state == FSD_MOUNTING && !someone_caches(client))
			answer_mount(client);
	}
}

int fsd_client_mount(struct fsd_client *client, void *call)
{
	struct fsd *fsd = client->fsd;
	struct fsd_client *other;

	if (client->state != FSD_NEW)
		return -EALREADY;
	client->state = FSD_MOUNTING;
	client->mount_call = call;
	client->mount_deadline_ns = fsd->host.clock_ns(fsd->host.arg) + SHARE_TIMEOUT_NS;
	TAILQ_FOREACH(other, &fsd->clients, entry) {
		if (other != client)
			ask_to_share(other);
	}
	answer_waiting_mounts(fsd);
	return 0;
}

void fsd_client_stopped_caching(struct fsd_client *client)
{
	if (!client->asked_to_share)
		return;
	client->asked_to_share = false;
	client->caches = false;
	answer_waiting_mounts(client->fsd);
}

int fsd_join(struct fsd *fsd, void *peer, struct fsd_client **client)
{
	struct fsd_client *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	new->fsd = fsd;
	new->peer = peer;
	new->id = fsd->next_client++;
	TAILQ_INIT(&new->handles);
	TAILQ_INIT(&new->waits);
	TAILQ_INSERT_TAIL(&fsd->clients, new, entry);
	*client = new;
	return 0;
}

void fsd_leave(struct fsd_client *client)
{
	struct fsd *fsd = client->fsd;

	if (client->state == FSD_MOUNTING)
		fsd_client_answer(client, client->mount_call, -ECONNRESET);
	fsd_deferred_drop(client);
	fsd_handle_drop_client(client);
	fsd_snapshot_drop(client);
	TAILQ_REMOVE(&fsd->clients, client, entry);
	free(client);
	answer_waiting_mounts(fsd);
}

uint64_t fsd_deadline_ns(const struct fsd *fsd)
{
	const struct fsd_client *client;
	uint64_t deadline = FSD_NEVER;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (client->state == FSD_MOUNTING && client->mount_deadline_ns < deadline)
			deadline = client->mount_deadline_ns;
		if (client->recall_ns && client->recall_ns < deadline)
			deadline = client->recall_ns;
	}
	return deadline;
}

/*
 * A client that was asked to share and has not answered loses the right to cache. Its next replies
 * say that it shares, until it answers FS_SHARED.
 */
static void revoke_caches(struct fsd *fsd)
{
	struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry)
		client->caches &= !client->asked_to_share;
	answer_waiting_mounts(fsd);
}

void fsd_expired(struct fsd *fsd)
{
	uint64_t now = fsd->host.clock_ns(fsd->host.arg);
	struct fsd_client *client;
	bool waited = false;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		waited |= client->state == FSD_MOUNTING && client->mount_deadline_ns <= now;
		if (client->recall_ns && client->recall_ns <= now)
			fsd_handle_recall_again(client);
	}
	if (waited)
		revoke_caches(fsd);
}
