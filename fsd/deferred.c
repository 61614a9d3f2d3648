/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/client.h"
#include "fsd/deferred.h"
#include "fsd/request.h"
#include "fsd/snapshot/snapshot.h"

/* Of a client: as many as a session's calls, so that none of these is refused (weir/message.h). */
#define DEFERRED_MAX 1024
#define LIMBO_TIMEOUT_NS 1000000000u

struct fsd_deferred {
	TAILQ_ENTRY(fsd_deferred) entry;
	struct fsd_client *client;
	void *call;
	uint64_t deadline_ns;
	size_t length;
	uint8_t message[];
};

static void set_deadline(struct fsd_deferred *p)
{
	struct fsd_host *host = &p->client->fsd->host;

	p->deadline_ns = host->clock_ns(host->arg) + LIMBO_TIMEOUT_NS;
}

void fsd_deferred_add(struct fsd_client *client, void *call, const void *message, size_t length)
{
	struct fsd *fsd = client->fsd;
	struct fsd_deferred *p = NULL;

	if (client->nr_deferred < DEFERRED_MAX)
		p = malloc(sizeof(*p) + length);
	if (!p) {
		fsd_client_answer(client, call, -ENOMEM);
		return;
	}
	p->client = client;
	p->call = call;
	set_deadline(p);
	p->length = length;
	memcpy(p->message, message, length);
	client->nr_deferred++;
	TAILQ_INSERT_TAIL(&fsd->deferred, p, entry);
}

static void deferred_end(struct fsd_deferred *p)
{
	TAILQ_REMOVE(&p->client->fsd->deferred, p, entry);
	p->client->nr_deferred--;
	free(p);
}

/*
 * A deferred request waits as long as there is dirty memory to zero. For memory in limbo alone, the
 * wait is limited by the deadline.
 */
static bool is_hopeless(const struct fsd *fsd, const struct fsd_deferred *p)
{
	return !fsd->space.dirty && fsd->host.clock_ns(fsd->host.arg) >= p->deadline_ns;
}

void fsd_deferred_retry(struct fsd *fsd)
{
	struct fsd_deferred *p, *next;

	for (p = TAILQ_FIRST(&fsd->deferred); p && !fsd_snapshot_freezes(fsd); p = next) {
		next = TAILQ_NEXT(p, entry);
		if (fsd_request_must_wait(p->client, p->message, p->length)) {
			set_deadline(p); /* the wait for memory has not begun */
			continue;
		}
		if (fsd_request_try(p->client, p->call, p->message, p->length) != -EINPROGRESS) {
			deferred_end(p);
		} else if (is_hopeless(fsd, p)) {
			fsd_client_answer(p->client, p->call, -ENOSPC);
			deferred_end(p);
		}
	}
}

void fsd_deferred_thaw(struct fsd *fsd)
{
	struct fsd_deferred *p;

	TAILQ_FOREACH(p, &fsd->deferred, entry)
		set_deadline(p);
	fsd_deferred_retry(fsd);
}

void fsd_deferred_drop(struct fsd_client *client)
{
	struct fsd_deferred *p, *next;

	for (p = TAILQ_FIRST(&client->fsd->deferred); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->client != client)
			continue;
		fsd_client_answer(client, p->call, -ECONNRESET);
		deferred_end(p);
	}
}
