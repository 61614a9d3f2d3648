/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/client.h"
#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/deferred.h"
#include "fsd/op.h"
#include "fsd/snapshot/snapshot.h"

/*
 * By then a living client has answered FS_SHARE, and the cached entries of a silent client have
 * expired: no entry lives longer than FS_ALONE_MS after its request.
 */
#define SHARE_TIMEOUT_NS (3 * FS_ALONE_MS * 1000000ull)
#define QUIET_NS (FS_QUIET_MS * 1000000ull)

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

/*
 * Whether nothing of a client is in the way of another's lease. A client with a file open reaches
 * the file's bytes without a request.
 */
static bool is_quiet(const struct fsd_client *client, uint64_t now_ns)
{
	if (client->state == FSD_NEW)
		return true;
	return client->state == FSD_MOUNTED && !client->caches && TAILQ_EMPTY(&client->handles) &&
	       TAILQ_EMPTY(&client->waits) && client->active_ns + QUIET_NS <= now_ns;
}

static bool may_have_lease(const struct fsd_client *client)
{
	struct fsd *fsd = client->fsd;
	const struct fsd_client *other;
	uint64_t now_ns;

	if (client->state != FSD_MOUNTED || !client->has_leases)
		return false;
	if (client->caches)
		return true;
	if (!TAILQ_EMPTY(&fsd->deferred) || fsd->snapshot)
		return false;
	now_ns = fsd->host.clock_ns(fsd->host.arg);
	TAILQ_FOREACH(other, &fsd->clients, entry) {
		if (other != client && !is_quiet(other, now_ns))
			return false;
	}
	return true;
}

static enum wire_fs_sharing sharing_of(const struct fsd_client *client)
{
	/* A client asked to share may cache again only after its answer. */
	if (client->asked_to_share || client->fsd->host.data)
		return FS_REPLY_SHARED;
	if (is_alone(client))
		return FS_REPLY_ALONE;
	return may_have_lease(client) ? FS_REPLY_LEASED : FS_REPLY_SHARED;
}

struct wire_fs_reply fsd_client_reply(struct fsd_client *client, int status)
{
	struct wire_fs_reply reply = { .status = status, .shared = sharing_of(client) };

	if (client->state == FSD_MOUNTED && reply.shared != FS_REPLY_SHARED)
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
	client->active_ns = fsd->host.clock_ns(fsd->host.arg);
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

/* A client that misses this is silent, and others wait no longer than for another silent one. */
static void tell_to_share(struct fsd_client *client)
{
	struct wire_fs_head message = { .op = FS_SHARE };
	struct fsd_host *host = &client->fsd->host;

	client->is_told = !host->tell(host->arg, client->peer, &message, sizeof(message));
}

static void ask_to_share(struct fsd_client *client)
{
	struct fsd *fsd = client->fsd;

	if (!client->caches || client->asked_to_share)
		return;
	client->asked_to_share = true;
	client->share_deadline_ns = fsd->host.clock_ns(fsd->host.arg) + SHARE_TIMEOUT_NS;
	tell_to_share(client);
}

static void ask_others_to_share(struct fsd_client *client)
{
	struct fsd_client *other;

	TAILQ_FOREACH(other, &client->fsd->clients, entry) {
		if (other != client)
			ask_to_share(other);
	}
}

/* A client has stopped caching or left: answers those that waited for it. */
static void answer_waiting(struct fsd *fsd)
{
	struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (client->state == FSD_MOUNTING && !someone_caches(client))
			answer_mount(client);
	}
	fsd_deferred_retry(fsd);
}

int fsd_client_mount(struct fsd_client *client, void *call, bool has_leases)
{
	if (client->state != FSD_NEW)
		return -EALREADY;
	client->state = FSD_MOUNTING;
	client->has_leases = has_leases;
	client->mount_call = call;
	ask_others_to_share(client);
	if (!someone_caches(client))
		answer_mount(client);
	return 0;
}

void fsd_client_note_request(struct fsd_client *client, unsigned int flags)
{
	struct fsd *fsd = client->fsd;

	if (!(flags & FSD_OP_APART))
		client->active_ns = fsd->host.clock_ns(fsd->host.arg);
	if (client->asked_to_share && !client->is_told) /* not silent, then */
		tell_to_share(client);
}

bool fsd_client_must_wait(struct fsd_client *client, unsigned int flags)
{
	if (client->state != FSD_MOUNTED || flags & FSD_OP_APART || !someone_caches(client))
		return false;
	ask_others_to_share(client);
	return true;
}

void fsd_client_stopped_caching(struct fsd_client *client)
{
	if (!client->asked_to_share)
		return;
	client->asked_to_share = false;
	client->caches = false;
	answer_waiting(client->fsd);
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
	answer_waiting(fsd);
}

/* Whether requests of others may wait for this client. */
static bool is_awaited(const struct fsd_client *client)
{
	return client->caches && client->asked_to_share;
}

uint64_t fsd_deadline_ns(const struct fsd *fsd)
{
	const struct fsd_client *client;
	uint64_t deadline = FSD_NEVER;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (is_awaited(client) && client->share_deadline_ns < deadline)
			deadline = client->share_deadline_ns;
		if (client->recall_ns && client->recall_ns < deadline)
			deadline = client->recall_ns;
	}
	return deadline;
}

void fsd_expired(struct fsd *fsd)
{
	uint64_t now = fsd->host.clock_ns(fsd->host.arg);
	struct fsd_client *client;
	bool revoked = false;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		/* Its next replies say that it shares, until it answers FS_SHARED. */
		if (is_awaited(client) && client->share_deadline_ns <= now) {
			client->caches = false;
			revoked = true;
		}
		if (client->recall_ns && client->recall_ns <= now)
			fsd_handle_recall_again(client);
	}
	if (revoked)
		answer_waiting(fsd);
}
