/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * By which path a small write goes (uRDMA, section 3.2): one-sided, through the target NIC, or
 * unloaded, into a buffer that the target's CPU copies from. The NIC is faster where it has the
 * page's translation at hand, the CPU where it has not; nobody here can look into that NIC, so it
 * is guessed from how often each page is written.
 *
 * Hot pages are those that the NIC will know, as many as it is said to have room for: see core/unload/page_heat.h.
 * Pages of 2 MiB are counted beside those of 4 KiB, for who asks what they would change.
 *
 * Whether the unload path pays at all depends on devices and CPUs. WEIR_PATH_POLICY_MEASURED tries both with
 * what is cold, WEIR_PATH_PROBES writes in all, and compares each with each: unless unloading is
 * faster in most pairs, all is offloaded, and it asks again ever more seldom.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_PATH_H
#define WEIR_CORE_UNLOAD_PATH_H

#include "core/unload/page_heat.h"
#include "core/base/platform.h"

#define WEIR_PATH_PAGE_SHIFT 12
#define WEIR_PATH_HUGE_SHIFT 21
#define WEIR_PATH_COUNTERS_MIN WEIR_PAGE_HEAT_COUNTERS_MIN
#define WEIR_PATH_COUNTERS_MAX WEIR_PAGE_HEAT_COUNTERS_MAX
#define WEIR_PATH_HUGE_COUNTERS 4096u
/* What a host gives for @nr counters. */
#define WEIR_PATH_BYTES(nr) \
	(WEIR_PAGE_HEAT_BYTES(nr) + WEIR_PAGE_HEAT_BYTES(WEIR_PATH_HUGE_COUNTERS))
#define WEIR_PATH_PROBES 64 /* writes that one trial takes, half of them by each path */
#define WEIR_PATH_REST_MIN 1024 /* cold writes between two trials, at first */
#define WEIR_PATH_REST_MAX (1u << 20)

enum weir_path_policy {
	WEIR_PATH_POLICY_OFFLOAD, /* nothing is unloaded */
	WEIR_PATH_POLICY_UNLOAD, /* all that is small */
	WEIR_PATH_POLICY_HINTS, /* what is said to be cold */
	WEIR_PATH_POLICY_FREQUENCY, /* what is written seldom */
	WEIR_PATH_POLICY_MEASURED, /* the same, where it pays */
};

/* What a user knows of a page. It decides for all policies that would unload something. */
enum weir_path_hint {
	WEIR_PATH_HINT_NONE,
	WEIR_PATH_HINT_HOT, /* written often: the NIC will know it */
	WEIR_PATH_HINT_COLD,
};

/* How one write goes. WEIR_PATH_PROBE comes on top: how long it takes is to be told. */
enum weir_path {
	WEIR_PATH_UNDECIDED = 0,
	WEIR_PATH_OFFLOAD = 1,
	WEIR_PATH_UNLOAD = 2,
	WEIR_PATH_PROBE = 4,
};

/**
 * struct weir_path_config - the host's settings
 * @policy: which
 * @bytes_max: longer writes are never unloaded; at least 1
 * @hot_pages: that the target's NIC has room for; at least 1
 * @nr_counters: a power of two, WEIR_PATH_COUNTERS_MIN to MAX. With as many as the regions have
 *	pages nothing is shared. Only for policies that count
 */
struct weir_path_config {
	enum weir_path_policy policy;
	uint32_t bytes_max;
	uint32_t hot_pages;
	uint32_t nr_counters;
};

/**
 * struct weir_path_trial - how both paths are compared
 * @pays: the last verdict
 * @to_send: writes that have yet to be tried; @out: tried, and not over
 * @rest: cold writes until the next trial; @rest_next: how many those will be after it
 * @taken: of each path, completion times in @ns: [0] offload, [1] unload
 * @trials: so far
 */
struct weir_path_trial {
	bool pays;
	uint32_t to_send;
	uint32_t out;
	uint32_t rest;
	uint32_t rest_next;
	uint32_t taken[2];
	uint32_t ns[2][WEIR_PATH_PROBES / 2];
	uint64_t trials;
};

/**
 * struct weir_path_selector - one session's choice of path
 * @config: copied
 * @pages: of 4 KiB; @huge: of 2 MiB, of some of the writes; for policies that count
 * @draw: which writes those are
 * @paused_ns: until then nothing is unloaded
 * @trial: WEIR_PATH_POLICY_MEASURED's
 * @decided, @hot, @unloaded: small writes so far; those to hot pages; those to be unloaded
 */
struct weir_path_selector {
	struct weir_path_config config;
	struct weir_page_heat pages;
	struct weir_page_heat huge;
	uint32_t draw;
	uint64_t paused_ns;
	struct weir_path_trial trial;
	uint64_t decided, hot, unloaded;
};

/**
 * weir_path_init() - nothing is known yet
 * @r: to be initialised
 * @config: copied
 * @counters: *kept*; WEIR_PATH_BYTES(config->nr_counters), zeroed, at a multiple of 8; NULL for
 *	policies that do not count
 *
 * Return: 0, or -EINVAL: a setting out of its range, or no counters for a policy that counts.
 */
int weir_path_init(struct weir_path_selector *r, const struct weir_path_config *config,
		   uint8_t *counters);

/* Whether a policy wants counters. */
static inline bool weir_path_policy_counts(enum weir_path_policy policy)
{
	return policy == WEIR_PATH_POLICY_FREQUENCY || policy == WEIR_PATH_POLICY_MEASURED;
}

/**
 * weir_path_decide() - how a small write is to go
 * @r: the route
 * @remote: where it goes
 * @hint: what its user knows
 * @is_told: how long it takes will be known: it may be a probe
 * @now_ns: the time
 *
 * Return: WEIR_PATH_OFFLOAD or WEIR_PATH_UNLOAD, and perhaps WEIR_PATH_PROBE on top: then a
 *	weir_path_completed() or weir_path_abandon_probe() is owed.
 */
unsigned int weir_path_decide(struct weir_path_selector *r, uint64_t remote,
			      enum weir_path_hint hint, bool is_told, uint64_t now_ns);

/**
 * weir_path_completed() - a write with WEIR_PATH_PROBE has succeeded
 * @r: the route
 * @path: as decided
 * @took_ns: from when it was posted
 */
void weir_path_completed(struct weir_path_selector *r, unsigned int path, uint64_t took_ns);

/* A write with WEIR_PATH_PROBE has failed, or went by another path than it was to. */
void weir_path_abandon_probe(struct weir_path_selector *r);

/**
 * weir_path_pause() - the target's CPU has no time
 * @r: the route
 * @until_ns: before that nothing is unloaded
 */
static inline void weir_path_pause(struct weir_path_selector *r, uint64_t until_ns)
{
	r->paused_ns = until_ns > r->paused_ns ? until_ns : r->paused_ns;
}

#endif
