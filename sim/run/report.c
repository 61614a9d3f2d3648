/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes numbers from integers only, so that rounding is the same on every machine. */
#include "sim/run/report.h"

#include <json-c/json.h>

/* Adds @value / @unit with @decimals, rounded down. */
static void number(struct json_object *to, const char *name, uint64_t value, uint64_t unit,
		   int decimals)
{
	uint64_t scale = 1;
	char text[48];
	int i;

	for (i = 0; i < decimals; i++)
		scale *= 10;
	snprintf(text, sizeof(text), "%llu.%0*llu", (unsigned long long)(value / unit), decimals,
		 (unsigned long long)((unsigned __int128)(value % unit) * scale / unit));
	json_object_object_add(to, name, json_object_new_double_s(0, text));
}

static void count(struct json_object *to, const char *name, uint64_t value)
{
	json_object_object_add(to, name, json_object_new_uint64(value));
}

/* Adds @amount * @factor / @ps with 6 decimals: with the factor for a count, a rate a second. */
static void rate(struct json_object *to, const char *name, uint64_t amount, uint64_t ps,
		 uint64_t factor)
{
	uint64_t millionths = (uint64_t)((unsigned __int128)amount * factor / (ps ? ps : 1));

	number(to, name, millionths, 1000000, 6);
}

static struct json_object *add_object(struct json_object *to, const char *name)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(to, name, object);
	return object;
}

static void add_latency(struct json_object *to, const struct weir_histogram *h)
{
	static const struct {
		const char *name;
		uint32_t per_million;
	} points[] = { { "p50", 500000 },
		       { "p90", 900000 },
		       { "p99", 990000 },
		       { "p999", 999000 },
		       { "p9999", 999900 } };
	struct json_object *latency = add_object(to, "latency_us");
	size_t i;

	number(latency, "mean", h->count ? h->sum / h->count : 0, SIM_PS_PER_US, 3);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		number(latency, points[i].name, weir_histogram_at(h, points[i].per_million),
		       SIM_PS_PER_US, 3);
	number(latency, "max", h->max, SIM_PS_PER_US, 3);
}

static void add_tally(struct json_object *to, const char *name, const struct sim_tally *t,
		      uint64_t run_ps)
{
	struct json_object *tally = add_object(to, name);

	count(tally, "ops", t->ops);
	rate(tally, "mops", t->ops, run_ps, SIM_PS_PER_S);
	rate(tally, "gbps", t->bytes * 8, run_ps, SIM_PS_PER_S / 1000);
	rate(tally, "in_flight", t->latency_ps.sum, run_ps, 1000000);
	add_latency(tally, &t->latency_ps);
	count(tally, "empty_polls", t->empty_polls);
	count(tally, "arms", t->arms);
	count(tally, "sleeps", t->sleeps);
	count(tally, "lock_takes", t->takes);
	count(tally, "lock_contended", t->contended);
	count(tally, "window_waits", t->window_waits);
	count(tally, "peak_bytes", t->peak_bytes);
	count(tally, "unloaded", t->unloaded);
	count(tally, "bitmap_reads", t->bitmap_reads);
	rate(tally, "send_cores", t->send_work_ps, run_ps, 1000000);
	rate(tally, "take_cores", t->take_work_ps, run_ps, 1000000);
}

static void add_busy(struct json_object *to, const struct sim_usage *before,
		     const struct sim_usage *after, uint64_t run_ps)
{
	static const char *const names[] = { "pipeline", "pcie_read", "pcie_write", "link_out",
					     "link_in" };
	struct json_object *busy = add_object(to, "busy");
	int i;

	number(busy, "cores", (after->cpu_ps - before->cpu_ps) / after->nodes, run_ps, 3);
	rate(busy, "kernel", (after->kernel_ps - before->kernel_ps) / after->nodes, run_ps,
	     1000000);
	for (i = 0; i < 5; i++)
		rate(busy, names[i], (after->busy_ps[i] - before->busy_ps[i]) / after->nodes,
		     run_ps, 1000000);
}

static void add_misses(struct json_object *to, const struct sim_usage *before,
		       const struct sim_usage *after)
{
	static const char *const names[] = { "wqe", "qp", "mtt", "mpt" };
	struct json_object *shares = add_object(to, "misses");
	int i;

	for (i = 0; i < 4; i++) {
		uint64_t misses = after->misses[i] - before->misses[i];

		number(shares, names[i], misses, misses + after->hits[i] - before->hits[i] ?: 1, 4);
	}
}

static void add_usage(struct json_object *to, const char *name, const struct sim_usage *before,
		      const struct sim_usage *after, uint64_t run_ps)
{
	const struct sim_nic_counts *a = &after->counts, *b = &before->counts;
	struct json_object *usage = add_object(to, name);

	count(usage, "wqes", a->wqes - b->wqes);
	count(usage, "reads", a->reads - b->reads);
	count(usage, "doorbells", a->doorbells - b->doorbells);
	count(usage, "fetches", a->fetches - b->fetches);
	count(usage, "cqes", a->cqes - b->cqes);
	count(usage, "rnrs", a->rnrs - b->rnrs);
	count(usage, "interrupts", after->interrupts - before->interrupts);
	count(usage, "switches", after->switches - before->switches);
	add_busy(usage, before, after, run_ps);
	add_misses(usage, before, after);
}

void sim_report_print(FILE *out, const struct sim_report *r)
{
	struct json_object *report = json_object_new_object();

	count(report, "run_us", r->run_ps / SIM_PS_PER_US);
	count(report, "events", r->events);
	count(report, "half_ops", r->half_ops);
	add_tally(report, "load", r->load, r->run_ps);
	if (r->background)
		add_tally(report, "background", r->background, r->run_ps);
	add_usage(report, "clients", &r->before[0], &r->after[0], r->run_ps);
	if (r->after[1].nodes)
		add_usage(report, "servers", &r->before[1], &r->after[1], r->run_ps);
	fprintf(out, "%s\n", json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN));
	json_object_put(report);
}

static void add_node(struct sim_usage *u, const struct sim_node *node)
{
	const struct sim_nic *nic = &node->nic;
	const struct sim_cache *caches[] = { &nic->wqes, &nic->qpcs, &nic->mtts, &nic->mpts };
	const struct sim_server *servers[] = { &nic->pipe, &nic->pcie_read, &nic->pcie_write,
					       &nic->port_out, &nic->port_in };
	uint32_t i;

	u->counts.wqes += nic->counts.wqes;
	u->counts.reads += nic->counts.reads;
	u->counts.doorbells += nic->counts.doorbells;
	u->counts.fetches += nic->counts.fetches;
	u->counts.cqes += nic->counts.cqes;
	u->counts.rnrs += nic->counts.rnrs;
	for (i = 0; i < 4; i++) {
		u->hits[i] += caches[i]->hits;
		u->misses[i] += caches[i]->misses;
	}
	for (i = 0; i < 5; i++)
		u->busy_ps[i] += servers[i]->busy_ps;
	u->cpu_ps += sim_host_busy_ps(&node->host);
	u->kernel_ps += node->host.kernel_ps;
	for (i = 0; i < node->host.nr_cores; i++) {
		u->interrupts += node->host.cores[i].interrupts;
		u->switches += node->host.cores[i].switches;
	}
}

void sim_usage_take(struct sim_usage *usage, const struct sim_world *world, uint32_t first,
		    uint32_t nodes)
{
	uint32_t i;

	*usage = (struct sim_usage){ .nodes = nodes };
	for (i = first; i < first + nodes; i++)
		add_node(usage, &world->nodes[i]);
}
