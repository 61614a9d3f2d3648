/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The path of a small write (uRDMA, section 3.2). An offloaded write is one-sided, through the
 * target's NIC. An unloaded write goes to a buffer, and the target's CPU copies the data. The NIC
 * is faster with the page's translation cached, else the CPU. The initiator guesses the cache's
 * contents from write frequency.
 *
 * Hot pages are assumed cached, up to a configured number: see core/unload/page_heat.h. Pages of 2
 * MiB are counted too, to show the effect of huge pages.
 *
 * Whether unloading pays depends on devices and CPUs. WEIR_PATH_POLICY_MEASURED sends
 * WEIR_PATH_PROBES cold writes by both paths and compares all pairs. Unless unloading is faster in
 * most pairs, all writes are offloaded, and trials become rarer.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_PATH_H
#define WEIR_CORE_UNLOAD_PATH_H

#include "core/unload/page_heat.h"
#include "core/base/platform.h"

#define WEIR_PATH_PAGE_SHIFT 12
#define WEIR_PATH_HUGE_SHIFT 21
#define WEIR_PATH_COUNTERS_MIN WEIR_PAGE_HEAT_COUNTERS_MIN
#define WEIR_PATH_COUNTERS_MAX WEIR_PAGE_HEAT_COUNTERS_MAX
#define WEIR_PATH_COUNTERS_DEFAULT (1u << 20) /* the pages of 4 GiB */
#define WEIR_PATH_HOT_PAGES_DEFAULT 4096u
#define WEIR_PATH_HUGE_COUNTERS 4096u
/* Memory that a host provides for @nr counters. */
#define WEIR_PATH_BYTES(nr) \
	(WEIR_PAGE_HEAT_BYTES(nr) + WEIR_PAGE_HEAT_BYTES(WEIR_PATH_HUGE_COUNTERS))
#define WEIR_PATH_PROBES 64 /* writes in one trial, half by each path */
#define WEIR_PATH_REST_MIN 1024 /* cold writes between two trials, at first */
#define WEIR_PATH_REST_MAX (1u << 20)

enum weir_path_policy {
	WEIR_PATH_POLICY_OFFLOAD, /* unload nothing */
	WEIR_PATH_POLICY_UNLOAD, /* unload all small writes */
	WEIR_PATH_POLICY_HINTS, /* unload writes with a COLD hint */
	WEIR_PATH_POLICY_FREQUENCY, /* unload writes to rarely written pages */
	WEIR_PATH_POLICY_MEASURED, /* the same, if trials show a benefit */
};

/* The user's knowledge of a page. Overrides every policy that unloads. */
enum weir_path_hint {
	WEIR_PATH_HINT_NONE,
	WEIR_PATH_HINT_HOT, /* written often: the NIC will have the translation */
	WEIR_PATH_HINT_COLD,
};

/* The path of one write. WEIR_PATH_PROBE is added if the host must report the completion time. */
enum weir_path {
	WEIR_PATH_UNDECIDED = 0,
	WEIR_PATH_OFFLOAD = 1,
	WEIR_PATH_UNLOAD = 2,
	WEIR_PATH_PROBE = 4,
};

/**
 * struct weir_path_config - the host's settings
 * @policy: an enum weir_path_policy
 * @bytes_max: longer writes are never unloaded; at least 1
 * @hot_pages: translations that the target's NIC can cache; at least 1
 * @nr_counters: a power of two, WEIR_PATH_COUNTERS_MIN to MAX, for policies that count. Pages share
 *	no counters if the regions have no more pages
 */
struct weir_path_config {
	enum weir_path_policy policy;
	uint32_t bytes_max;
	uint32_t hot_pages;
	uint32_t nr_counters;
};

/**
 * struct weir_path_trial - the comparison of both paths
 * @pays: the last verdict
 * @to_send: probes still to send in this trial
 * @out: probes in flight
 * @rest: cold writes until the next trial
 * @rest_next: cold writes between the next trial and the one after
 * @taken: completion times collected in @ns for each path
 * @ns: completion times, [0] offload, [1] unload
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
 * @pages: heat of 4 KiB pages, for policies that count
 * @huge: heat of 2 MiB pages, from a sample of the writes
 * @draw: random state of the sample
 * @paused_ns: nothing is unloaded before this time
 * @trial: state of WEIR_PATH_POLICY_MEASURED
 * @decided: small writes so far
 * @hot: small writes to hot pages
 * @unloaded: small writes to be unloaded
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
 * weir_path_init() - start without history
 * @r: to be initialised
 * @config: copied
 * @counters: *kept*; WEIR_PATH_BYTES(config->nr_counters), zeroed, aligned to 8; NULL for policies
 *	that do not count
 *
 * Return: 0, or -EINVAL: a setting out of its range, or no counters for a policy that counts.
 */
int weir_path_init(struct weir_path_selector *r, const struct weir_path_config *config,
		   uint8_t *counters);

/* Whether a policy needs counters. */
static inline bool weir_path_policy_counts(enum weir_path_policy policy)
{
	return policy == WEIR_PATH_POLICY_FREQUENCY || policy == WEIR_PATH_POLICY_MEASURED;
}

/**
 * weir_path_decide() - choose the path of a small write
 * @r: the selector
 * @remote: remote address of the write
 * @hint: the user's hint
 * @is_timed: the host can report the completion time, so the write may be a probe
 * @now_ns: the time
 *
 * Return: WEIR_PATH_OFFLOAD or WEIR_PATH_UNLOAD, possibly with WEIR_PATH_PROBE. For a probe the
 *	caller owes a weir_path_completed() or weir_path_abandon_probe().
 */
unsigned int weir_path_decide(struct weir_path_selector *r, uint64_t remote,
			      enum weir_path_hint hint, bool is_timed, uint64_t now_ns);

/**
 * weir_path_completed() - a probe has succeeded
 * @r: the selector
 * @path: as decided
 * @took_ns: time since the post
 */
void weir_path_completed(struct weir_path_selector *r, unsigned int path, uint64_t took_ns);

/* A probe has failed, or has taken another path than decided. */
void weir_path_abandon_probe(struct weir_path_selector *r);

/**
 * weir_path_pause() - the target's CPU is over its budget
 * @r: the selector
 * @until_ns: nothing is unloaded before this time
 */
static inline void weir_path_pause(struct weir_path_selector *r, uint64_t until_ns)
{
	r->paused_ns = until_ns > r->paused_ns ? until_ns : r->paused_ns;
}

#endif
