/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of this host at a moment, for weir top. Rates come from two samples. */
#ifndef WEIR_APPS_TOP_SAMPLE_H
#define WEIR_APPS_TOP_SAMPLE_H

#include "apps/inspect/session_list.h"
#include "apps/serve/donor_page.h"
#include "apps/share/snapshot.h"
#include "apps/top/section.h"
#include "lib/pool/client.h"

/**
 * struct top_sources - what to look at
 * @socket: of weir share
 * @must_share: the user has named the socket: nobody there is a failure
 * @flows: connections of the tenants, too
 * @pool: or NULL
 */
struct top_sources {
	const char *socket;
	bool must_share, flows;
	struct weir_pool_client *pool;
};

/* A session's numbers, copied while its process ran; @latency: of all kinds of requests. */
struct top_session {
	pid_t pid;
	ino_t inode;
	char comm[16];
	char peer[WEIR_STATS_SHM_TEXT], device[WEIR_STATS_SHM_TEXT];
	struct weir_counters counters;
	struct weir_histogram latency;
};

/**
 * struct top_sample - a sample; all zero: empty
 * @at_ns: when
 * @donors: of this host
 * @sessions: @nr_sessions of this host
 * @share: the tenants
 * @map: of the pool; NULL: no pool, or it could not be read, for @pool_error
 */
struct top_sample {
	uint64_t at_ns;
	struct donor_list donors;
	struct top_session *sessions;
	size_t nr_sessions;
	struct share_snapshot share;
	struct weir_pool_map *map;
	struct weir_error pool_error;
};

/* The sections, in their order on the screen. */
enum top_part { TOP_DONORS, TOP_SESSIONS, TOP_TENANTS, TOP_FLOWS, TOP_POOL, TOP_PARTS };

/* The names of parts, for options. */
extern const char *const top_part_names[TOP_PARTS];

/*
 * top_sample_take(): on failure @error says why, and @sample is empty. Return: 0, or a negative
 * errno. top_sample_fini() frees a sample.
 */
int top_sample_take(struct top_sample *sample, const struct top_sources *sources,
		    struct weir_error *error);
void top_sample_fini(struct top_sample *sample);

/* Makes the rows of a part from two samples. Return: 0 or -ENOMEM. */
int top_sample_rows(const struct top_sample *old, const struct top_sample *new, enum top_part part,
		    struct top_section *section);

/* The greatest sign of life of each part, by which it is sorted first. */
const char *top_sample_order(enum top_part part);

/* share_rows.c: the parts of weir share. */
extern const struct top_section top_tenants, top_flows;
int top_share_tenants(const struct top_sample *old, const struct top_sample *new,
		      struct top_section *section);
int top_share_flows(const struct top_sample *old, const struct top_sample *new,
		    struct top_section *section);

/* How fast a counter grew between two samples: a second. */
static inline double top_rate(const struct top_sample *old, const struct top_sample *new,
			      uint64_t before, uint64_t after)
{
	uint64_t ns = new->at_ns - old->at_ns;

	return after > before && ns ? (double)(after - before) * 1e9 / (double)ns : 0;
}

#endif
