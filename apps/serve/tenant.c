/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/tenant.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "apps/serve/log.h"
#include "apps/serve/prefault.h"

#define NS_PER_MS 1000000u

struct guest {
	TAILQ_ENTRY(guest) entry;
	struct weir_peer *peer;
	struct tenant *tenant;
	struct fsd_client *client;
};

static int take_chunk(void *arg, uint64_t length, struct fs_chunk *chunk, void **memory)
{
	struct tenant *tenant = arg;
	struct weir_region_token token;
	int err =
		weir_donor_region_create(tenant->all->donor, tenant->index, length, &token, memory);

	if (err) {
		log_event(WEIR_LOG_WARNING, "no memory tenant=%u bytes=%llu: %s", tenant->index,
			  (unsigned long long)length, weir_strerror(err));
		return -ENOSPC;
	}
	log_event(WEIR_LOG_DEBUG, "grown tenant=%u bytes=%llu", tenant->index,
		  (unsigned long long)length);
	touch_ahead(tenant->all->touch, *memory, length);
	*chunk = (struct fs_chunk){ token.addr, token.length, token.rkey, 0 };
	return 0;
}

static uint64_t room(void *arg)
{
	struct tenant *tenant = arg;
	struct weir_donor_info info;

	weir_donor_info(tenant->all->donor, &info);
	return info.memory_bytes - info.lent_bytes;
}

static void tell(void *arg, void *peer, const void *message, size_t length)
{
	int err = weir_peer_send(peer, message, length);

	(void)arg;
	/* One that reads too slowly keeps its extents in limbo until it is gone. */
	if (err)
		log_event(WEIR_LOG_WARNING, "not told client=%s: %s", weir_peer_name(peer),
			  weir_strerror(err));
}

static void answer(void *arg, void *call, const void *reply, size_t length)
{
	(void)arg;
	(void)weir_reply(call, reply, length); /* a client that is gone needs no answer */
}

static void wall(void *arg, struct fs_time *now)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &ts);
	*now = (struct fs_time){ .sec = ts.tv_sec, .nsec = (uint32_t)ts.tv_nsec };
}

static uint64_t clock_ns(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void schedule(struct tenant *tenant);

static void work(void *arg)
{
	struct tenant *tenant = arg;

	tenant->works = false;
	fsd_work(tenant->fsd);
	schedule(tenant);
}

static void expire(void *arg)
{
	struct tenant *tenant = arg;

	tenant->waits = false;
	fsd_expired(tenant->fsd);
	schedule(tenant);
}

/* Sets timers for what the file system wants done later. If there is no memory for one, the
 * next request tries again. */
static void schedule(struct tenant *tenant)
{
	struct weir_donor *donor = tenant->all->donor;
	uint64_t now = clock_ns(NULL), deadline = fsd_deadline_ns(tenant->fsd);
	uint64_t left = deadline > now ? deadline - now : 0;

	if (!tenant->works && fsd_has_work(tenant->fsd))
		tenant->works = !weir_donor_after(donor, 1, work, tenant);
	if (!tenant->waits && deadline != FSD_NEVER)
		tenant->waits = !weir_donor_after(donor, (unsigned int)(left / NS_PER_MS) + 1,
						  expire, tenant);
}

static int open_fsd(struct tenant *tenant)
{
	struct fsd_host host = { take_chunk, room, tell, answer, wall, clock_ns, tenant };
	struct fsd_options options = {
		.bytes_max = tenant->all->bytes_max,
		.chunk_bytes = tenant->all->chunk_bytes,
		.uid = geteuid(),
		.gid = getegid(),
	};

	randombytes_buf(options.hash_key, sizeof(options.hash_key));
	return fsd_open(&host, &options, &tenant->fsd);
}

static struct guest *find(const struct tenants *tenants, const struct weir_peer *peer)
{
	struct guest *guest;

	TAILQ_FOREACH(guest, &tenants->guests, entry) {
		if (guest->peer == peer)
			break;
	}
	return guest;
}

static void on_join(void *arg, struct weir_peer *peer)
{
	struct tenants *tenants = arg;
	struct tenant *tenant = &tenants->tenant[weir_peer_tenant(peer)];
	struct guest *guest = calloc(1, sizeof(*guest));

	pthread_mutex_lock(&tenants->opening);
	pthread_mutex_unlock(&tenants->opening);
	if (!guest || (!tenant->fsd && open_fsd(tenant)) ||
	    fsd_join(tenant->fsd, peer, &guest->client)) {
		log_event(WEIR_LOG_ERROR, "no file system client=%s: out of memory",
			  weir_peer_name(peer));
		free(guest);
		return;
	}
	guest->peer = peer;
	guest->tenant = tenant;
	TAILQ_INSERT_TAIL(&tenants->guests, guest, entry);
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	struct tenants *tenants = arg;
	struct guest *guest = find(tenants, peer);

	if (!guest)
		return;
	fsd_leave(guest->client);
	schedule(guest->tenant);
	TAILQ_REMOVE(&tenants->guests, guest, entry);
	free(guest);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	struct guest *guest = find(arg, peer);

	if (!guest) {
		if (call)
			(void)weir_reply(call, NULL, 0);
		return;
	}
	fsd_request(guest->client, call, data, length);
	schedule(guest->tenant);
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	log_line(level, line);
}

int tenants_init(struct tenants *tenants, unsigned int nr, uint64_t bytes_max, uint64_t chunk_bytes)
{
	*tenants = (struct tenants){
		.bytes_max = bytes_max,
		.chunk_bytes = chunk_bytes,
		.nr = nr,
		.tenant = calloc(nr, sizeof(*tenants->tenant)),
	};
	if (!tenants->tenant || touch_start(&tenants->touch)) {
		free(tenants->tenant);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < nr; i++) {
		tenants->tenant[i].all = tenants;
		tenants->tenant[i].index = i;
	}
	TAILQ_INIT(&tenants->guests);
	pthread_mutex_init(&tenants->opening, NULL);
	return 0;
}

void tenants_bind(struct tenants *tenants, struct weir_donor_options *options)
{
	options->on_join = on_join;
	options->on_leave = on_leave;
	options->on_message = on_message;
	options->on_log = on_log;
	options->arg = tenants;
	pthread_mutex_lock(&tenants->opening);
}

void tenants_start(struct tenants *tenants, struct weir_donor *donor)
{
	tenants->donor = donor;
	pthread_mutex_unlock(&tenants->opening);
}

void tenants_stop(struct tenants *tenants)
{
	touch_stop(tenants->touch);
}

void tenants_fini(struct tenants *tenants)
{
	for (unsigned int i = 0; i < tenants->nr; i++) {
		if (tenants->tenant[i].fsd)
			fsd_close(tenants->tenant[i].fsd);
	}
	touch_free(tenants->touch);
	pthread_mutex_destroy(&tenants->opening);
	free(tenants->tenant);
}
