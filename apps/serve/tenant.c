/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/tenant.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "apps/log/log.h"
#include "lib/base/clock.h"

struct fs_client {
	TAILQ_ENTRY(fs_client) entry;
	struct weir_peer *peer;
	struct fs_tenant *tenant;
	struct fsd_client *client;
};

static int take_chunk(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory)
{
	struct fs_tenant *tenant = arg;
	struct weir_region_token token, *more;
	char line[LOG_TEXT_MAX];
	int rc;

	more = realloc(tenant->chunk, (tenant->nr_chunks + 1) * sizeof(*more));
	if (!more)
		return -ENOSPC;
	tenant->chunk = more;
	rc = weir_donor_region_create(tenant->all->donor, tenant->index, length, &token, memory);
	if (rc) {
		snprintf(line, sizeof(line), "no memory tenant=%u bytes=%llu id=W204: %s",
			 tenant->index, (unsigned long long)length, weir_strerror(rc));
		log_limited(&tenant->log, WEIR_LOG_WARNING, line);
		return -ENOSPC;
	}
	log_event(WEIR_LOG_DEBUG, "grown tenant=%u bytes=%llu", tenant->index,
		  (unsigned long long)length);
	tenant->chunk[tenant->nr_chunks++] = token;
	*chunk = (struct wire_fs_chunk){ token.addr, token.length, token.rkey, 0 };
	return 0;
}

static uint64_t donor_room(void *arg)
{
	struct fs_tenant *tenant = arg;
	struct weir_donor_info info;

	weir_donor_info(tenant->all->donor, &info, sizeof(info));
	return info.memory_bytes - info.lent_bytes;
}

static int send_message(void *arg, void *peer, const void *message, size_t length)
{
	int rc = weir_peer_send(peer, message, length);

	(void)arg;
	if (rc)
		log_event(WEIR_LOG_DEBUG, "not told client=%s: %s", weir_peer_name(peer),
			  weir_strerror(rc));
	return rc;
}

static void answer(void *arg, void *call, const void *reply, size_t length)
{
	(void)arg;
	(void)weir_reply(call, reply, length); /* a client that is gone needs no reply */
}

static void wall_clock(void *arg, struct wire_fs_time *now)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &ts);
	*now = (struct wire_fs_time){ .sec = ts.tv_sec, .nsec = (uint32_t)ts.tv_nsec };
}

static uint64_t clock_ns(void *arg)
{
	(void)arg;
	return weir_now_ns();
}

static void set_timers(struct fs_tenant *tenant);

static void run_work(void *arg)
{
	struct fs_tenant *tenant = arg;

	tenant->work_timer_set = false;
	if (!tenant->fsd)
		return;
	fsd_work(tenant->fsd);
	set_timers(tenant);
}

static void run_deadline(void *arg)
{
	struct fs_tenant *tenant = arg;

	tenant->deadline_timer_set = false;
	if (!tenant->fsd)
		return;
	fsd_expired(tenant->fsd);
	set_timers(tenant);
}

/*
 * Sets timers for the file server's pending work. If memory for a timer is missing, the next
 * request tries again.
 */
static void set_timers(struct fs_tenant *tenant)
{
	struct weir_donor *donor = tenant->all->donor;
	uint64_t now = clock_ns(NULL), deadline = fsd_deadline_ns(tenant->fsd);
	uint64_t left = deadline > now ? deadline - now : 0;

	if (!tenant->work_timer_set && fsd_has_work(tenant->fsd))
		tenant->work_timer_set = !weir_donor_after(donor, 1, run_work, tenant);
	if (!tenant->deadline_timer_set && deadline != FSD_NEVER)
		tenant->deadline_timer_set = !weir_donor_after(
			donor, (unsigned int)(left / WEIR_NS_PER_MS) + 1, run_deadline, tenant);
}

static int open_fsd(struct fs_tenant *tenant)
{
	struct fsd_host host = { take_chunk, donor_room, send_message, answer,
				 wall_clock, clock_ns,	 tenant };
	struct fsd_options options = {
		.bytes_max = tenant->all->bytes_max,
		.chunk_bytes = tenant->all->chunk_bytes,
		.uid = geteuid(),
		.gid = getegid(),
	};

	randombytes_buf(options.hash_key, sizeof(options.hash_key));
	return fsd_open(&host, &options, &tenant->fsd);
}

static struct fs_client *find_client(const struct fs_tenants *tenants, const struct weir_peer *peer)
{
	struct fs_client *fs_client;

	TAILQ_FOREACH(fs_client, &tenants->fs_clients, entry) {
		if (fs_client->peer == peer)
			break;
	}
	return fs_client;
}

static void on_join(void *arg, struct weir_peer *peer)
{
	struct fs_tenants *tenants = arg;
	struct fs_tenant *tenant = &tenants->tenant[weir_peer_tenant(peer)];
	struct fs_client *fs_client;

	pthread_mutex_lock(&tenants->opening);
	pthread_mutex_unlock(&tenants->opening);
	if (!(weir_peer_rights(peer) & WEIR_RIGHT_FILES))
		return;
	fs_client = calloc(1, sizeof(*fs_client));
	if (!fs_client || (!tenant->fsd && open_fsd(tenant)) ||
	    fsd_join(tenant->fsd, peer, &fs_client->client)) {
		log_event(WEIR_LOG_ERROR, "no file system client=%s id=W205: out of memory",
			  weir_peer_name(peer));
		free(fs_client);
		return;
	}
	fs_client->peer = peer;
	fs_client->tenant = tenant;
	TAILQ_INSERT_TAIL(&tenants->fs_clients, fs_client, entry);
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	struct fs_tenants *tenants = arg;
	struct fs_client *fs_client = find_client(tenants, peer);

	if (!fs_client)
		return;
	fsd_leave(fs_client->client);
	set_timers(fs_client->tenant);
	TAILQ_REMOVE(&tenants->fs_clients, fs_client, entry);
	free(fs_client);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	struct fs_client *fs_client = find_client(arg, peer);
	bool may = weir_peer_rights(peer) & WEIR_RIGHT_FILES;
	const struct wire_fs_reply none = { .status = may ? -ENOMEM : -EACCES };

	if (!fs_client) {
		if (call)
			(void)weir_reply(call, &none, sizeof(none));
		return;
	}
	fsd_request(fs_client->client, call, data, length);
	set_timers(fs_client->tenant);
}

/* Closes the file system, whose memory the donor zeroes. */
static void on_tenant_end(void *arg, unsigned int index)
{
	struct fs_tenants *tenants = arg;
	struct fs_tenant *tenant = &tenants->tenant[index];

	if (tenant->fsd)
		fsd_close(tenant->fsd);
	tenant->fsd = NULL;
#ifdef __GLIBC__
	malloc_trim(0); /* names and attributes lay in many small pieces */
#endif
	while (tenant->nr_chunks)
		weir_donor_region_destroy(tenants->donor, &tenant->chunk[--tenant->nr_chunks]);
	atomic_store(&tenant->has_ended, true);
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	log_line(level, line);
}

int tenants_init(struct fs_tenants *tenants, unsigned int nr, uint64_t bytes_max,
		 uint64_t chunk_bytes)
{
	*tenants = (struct fs_tenants){
		.bytes_max = bytes_max,
		.chunk_bytes = chunk_bytes,
		.nr = nr,
		.tenant = calloc(nr, sizeof(*tenants->tenant)),
	};
	if (!tenants->tenant)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr; i++) {
		tenants->tenant[i].all = tenants;
		tenants->tenant[i].index = i;
		tenants->tenant[i].log.name = "files";
	}
	TAILQ_INIT(&tenants->fs_clients);
	pthread_mutex_init(&tenants->opening, NULL);
	return 0;
}

void tenants_bind(struct fs_tenants *tenants, struct weir_donor_options *options)
{
	options->on_join = on_join;
	options->on_leave = on_leave;
	options->on_message = on_message;
	options->on_log = on_log;
	options->on_tenant_end = on_tenant_end;
	options->arg = tenants;
	pthread_mutex_lock(&tenants->opening);
}

void tenants_start(struct fs_tenants *tenants, struct weir_donor *donor)
{
	tenants->donor = donor;
	pthread_mutex_unlock(&tenants->opening);
}

void tenants_fini(struct fs_tenants *tenants)
{
	for (unsigned int i = 0; i < tenants->nr; i++) {
		if (tenants->tenant[i].fsd)
			fsd_close(tenants->tenant[i].fsd);
		free(tenants->tenant[i].chunk);
	}
	pthread_mutex_destroy(&tenants->opening);
	free(tenants->tenant);
}
