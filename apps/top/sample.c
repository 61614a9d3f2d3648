/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/top/sample.h"

#include "apps/pool/pool.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const top_part_names[TOP_PARTS] = { "donors", "sessions", "tenants", "flows", "pool" };

static void copy_session(struct top_session *to, const struct found_session *found)
{
	static struct weir_histogram latency;
	struct weir_stats_shm_window window;

	to->pid = found->pid;
	to->inode = found->inode;
	memcpy(to->comm, found->comm, sizeof(to->comm));
	memcpy(to->peer, found->view.peer, sizeof(to->peer));
	memcpy(to->device, found->view.device, sizeof(to->device));
	stats_view_counters(&found->view, &to->counters, &window);
	for (int kind = 0; kind < WEIR_STATS_SHM_KINDS; kind++) {
		stats_view_latency(&found->view, (enum weir_stats_shm_kind)kind, &latency);
		weir_histogram_merge(&to->latency, &latency);
	}
}

static int take_sessions(struct top_sample *sample)
{
	struct session_list find = { 0 };
	int rc = session_list_add_all(&find);

	if (!rc) {
		sample->sessions = calloc(find.count + 1, sizeof(*sample->sessions));
		rc = sample->sessions ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !rc && i < find.count; i++)
		copy_session(&sample->sessions[sample->nr_sessions++], &find.found[i]);
	session_list_free(&find);
	return rc;
}

static int take_share(struct top_sample *sample, const struct top_sources *sources,
		      struct weir_error *error)
{
	struct weir_error why;
	int rc = share_snapshot_take(&sample->share, sources->socket, sources->flows, &why);

	if (!rc)
		return 0;
	sample->share = (struct share_snapshot){ 0 };
	if (!sources->must_share && rc != -ENOMEM)
		return 0; /* no weir share on this host */
	*error = why;
	return rc;
}

/* A pool may be out of reach for a while: then the reason is shown. */
static void take_pool(struct top_sample *sample, struct weir_pool_client *pool)
{
	if (!pool)
		return;
	sample->map = calloc(1, sizeof(*sample->map));
	if (!sample->map)
		weir_error_set(&sample->pool_error, -ENOMEM, "out of memory");
	else if (weir_pool_client_read(pool, sample->map, &sample->pool_error)) {
		free(sample->map);
		sample->map = NULL;
	}
}

int top_sample_take(struct top_sample *sample, const struct top_sources *sources,
		    struct weir_error *error)
{
	int rc;

	*sample = (struct top_sample){ .at_ns = weir_now_ns() };
	rc = donor_list_add(&sample->donors, 0);
	if (!rc)
		rc = take_sessions(sample);
	if (rc)
		weir_error_set(error, rc, "cannot query the processes of this host: %s",
			       weir_strerror(rc));
	else
		rc = take_share(sample, sources, error);
	if (rc)
		top_sample_fini(sample);
	else
		take_pool(sample, sources->pool);
	return rc;
}

void top_sample_fini(struct top_sample *sample)
{
	donor_list_free(&sample->donors);
	free(sample->sessions);
	share_snapshot_fini(&sample->share);
	free(sample->map);
	*sample = (struct top_sample){ 0 };
}

static const struct top_column of_donors[] = {
	{ "address", "address", TOP_TEXT },	{ "pid", "pid", TOP_NUMBER },
	{ "lent", "lent_bytes", TOP_BYTES },	{ "limit", "limit_bytes", TOP_BYTES },
	{ "clients", "clients", TOP_NUMBER },	{ "regions", "regions", TOP_NUMBER },
	{ "messages", "messages_s", TOP_RATE }, { "unloaded", "unloaded_writes_s", TOP_RATE },
	{ "rejected", "rejected", TOP_NUMBER }, { "device", "device", TOP_TEXT },
	{ NULL, "memory_bytes", TOP_BYTES },	{ NULL, NULL, TOP_TEXT },
};

static const struct top_section top_donors = { "donors", "donors", of_donors, NULL, 0 };

static const struct donor_found *find_donor(const struct top_sample *sample, pid_t pid)
{
	for (size_t i = 0; i < sample->donors.count; i++)
		if (sample->donors.found[i].pid == pid)
			return &sample->donors.found[i];
	return NULL;
}

static int donor_rows(const struct top_sample *old, const struct top_sample *new,
		      struct top_section *section)
{
	for (size_t i = 0; i < new->donors.count; i++) {
		const struct donor_found *donor = &new->donors.found[i];
		const struct donor_found *before = find_donor(old, donor->pid);
		const struct donor_page *is = &donor->page, *was = before ? &before->page : is;
		struct top_row *row = top_section_add(section);
		unsigned int at = 0;

		if (!row)
			return -ENOMEM;
		top_row_text(row, &at, is->address);
		top_row_number(row, &at, donor->pid);
		top_row_number(row, &at, (double)is->lent_bytes);
		top_row_number(row, &at, (double)is->limit_bytes);
		top_row_number(row, &at, (double)is->clients);
		top_row_number(row, &at, (double)is->regions);
		top_row_number(row, &at, top_rate(old, new, was->messages, is->messages));
		top_row_number(row, &at, top_rate(old, new, was->unloaded, is->unloaded));
		top_row_number(row, &at, (double)is->rejects);
		top_row_text(row, &at, is->device);
		top_row_number(row, &at, (double)is->start_bytes);
	}
	return 0;
}

static const struct top_column of_sessions[] = {
	{ "process", "process", TOP_TEXT },
	{ "pid", "pid", TOP_NUMBER },
	{ "donor", "donor", TOP_TEXT },
	{ "requests", "requests_s", TOP_RATE },
	{ "written", "written_bytes_s", TOP_BYTES_S },
	{ "read", "read_bytes_s", TOP_BYTES_S },
	{ "p99", "p99_us", TOP_MICROSECONDS },
	{ "p50", "p50_us", TOP_MICROSECONDS },
	{ "doorbells", "doorbells_s", TOP_RATE },
	{ "waits", "window_waits_s", TOP_RATE },
	{ "retries", "retries", TOP_NUMBER },
	{ "errors", "errors", TOP_NUMBER },
	{ "device", "device", TOP_TEXT },
	{ NULL, NULL, TOP_TEXT },
};

static const struct top_section top_sessions = { "sessions", "sessions", of_sessions, NULL, 0 };

static const struct top_session *find_session(const struct top_sample *sample, ino_t inode)
{
	for (size_t i = 0; i < sample->nr_sessions; i++)
		if (sample->sessions[i].inode == inode)
			return &sample->sessions[i];
	return NULL;
}

/* Of the requests that were timed between the samples; less than 0: none was. */
static double quantile_us(const struct top_session *was, const struct top_session *is,
			  uint32_t per_million)
{
	static struct weir_histogram since;

	since = is->latency;
	if (was) {
		for (size_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
			since.buckets[i] -= was->latency.buckets[i];
		since.count -= was->latency.count;
	}
	return since.count ? (double)weir_histogram_at(&since, per_million) / 1e3 : -1;
}

static int session_rows(const struct top_sample *old, const struct top_sample *new,
			struct top_section *section)
{
	static const struct weir_counters nothing;

	for (size_t i = 0; i < new->nr_sessions; i++) {
		const struct top_session *is = &new->sessions[i];
		const struct top_session *was = find_session(old, is->inode);
		const struct weir_counters *c = &is->counters, *o = was ? &was->counters : &nothing;
		struct top_row *row = top_section_add(section);
		unsigned int at = 0;

		if (!row)
			return -ENOMEM;
		top_row_text(row, &at, is->comm);
		top_row_number(row, &at, is->pid);
		top_row_text(row, &at, is->peer);
		top_row_number(row, &at, top_rate(old, new, o->requests, c->requests));
		top_row_number(row, &at, top_rate(old, new, o->bytes_written, c->bytes_written));
		top_row_number(row, &at, top_rate(old, new, o->bytes_read, c->bytes_read));
		top_row_number(row, &at, quantile_us(was, is, 990000));
		top_row_number(row, &at, quantile_us(was, is, 500000));
		top_row_number(row, &at, top_rate(old, new, o->doorbells, c->doorbells));
		top_row_number(row, &at, top_rate(old, new, o->window_waits, c->window_waits));
		top_row_number(row, &at, (double)c->retries);
		top_row_number(row, &at, (double)c->errors);
		top_row_text(row, &at, is->device);
	}
	return 0;
}

static const struct top_column of_pool[] = {
	{ "donor", "donor", TOP_TEXT },	      { "state", "state", TOP_TEXT },
	{ "domain", "domain", TOP_TEXT },     { "memory", "bytes", TOP_BYTES },
	{ "serving", "serving", TOP_NUMBER }, { "syncing", "syncing", TOP_NUMBER },
	{ "out", "out", TOP_NUMBER },	      { NULL, NULL, TOP_TEXT },
};

static const struct top_section top_pool = { "pool", "pool", of_pool, NULL, 0 };

static int pool_rows(const struct top_sample *new, struct top_section *section)
{
	const struct weir_pool_map *map = new->map;

	for (uint16_t i = 0; map && i < map->nr_donors; i++) {
		struct pool_places places = pool_count_places(map, i);
		struct top_row *row = top_section_add(section);
		unsigned int at = 0;

		if (!row)
			return -ENOMEM;
		top_row_text(row, &at, map->donor[i].id);
		top_row_text(row, &at, pool_donor_state(map, i));
		top_row_text(row, &at, map->donor[i].domain);
		top_row_number(row, &at, (double)map->donor[i].bytes);
		for (unsigned int state = 0; state < 3; state++)
			top_row_number(row, &at, places.of[state]);
	}
	return 0;
}

int top_sample_rows(const struct top_sample *old, const struct top_sample *new, enum top_part part,
		    struct top_section *section)
{
	switch (part) {
	case TOP_DONORS:
		*section = top_donors;
		return donor_rows(old, new, section);
	case TOP_SESSIONS:
		*section = top_sessions;
		return session_rows(old, new, section);
	case TOP_TENANTS:
		*section = top_tenants;
		return top_share_tenants(old, new, section);
	case TOP_FLOWS:
		*section = top_flows;
		return top_share_flows(old, new, section);
	default:
		*section = top_pool;
		return pool_rows(new, section);
	}
}

const char *top_sample_order(enum top_part part)
{
	static const char *const orders[TOP_PARTS] = { "lent", "requests", "sends", "sends",
						       "donor" };

	return orders[part];
}
