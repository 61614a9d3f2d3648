/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints the JSON object from integers only, so that rounding is the same on every machine. */
#include "sim/run/report.h"

/* Prints @value / @unit with @decimals, rounded down. */
static void number(FILE *out, const char *name, uint64_t value, uint64_t unit, int decimals)
{
	uint64_t scale = 1;
	int i;

	for (i = 0; i < decimals; i++)
		scale *= 10;
	fprintf(out, "\"%s\": %llu", name, (unsigned long long)(value / unit));
	if (decimals)
		fprintf(out, ".%0*llu", decimals,
			(unsigned long long)((unsigned __int128)(value % unit) * scale / unit));
}

static void count(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, ", \"%s\": %llu", name, (unsigned long long)value);
}

/* Prints @amount * @factor / @ps with 6 decimals: with the factor for a count, a rate a second. */
static void rate(FILE *out, const char *name, uint64_t amount, uint64_t ps, uint64_t factor)
{
	uint64_t millionths = (uint64_t)((unsigned __int128)amount * factor / (ps ? ps : 1));

	fprintf(out, ", ");
	number(out, name, millionths, 1000000, 6);
}

static void print_latency(FILE *out, const struct weir_histogram *h)
{
	static const struct {
		const char *name;
		uint32_t per_million;
	} points[] = { { "p50", 500000 },
		       { "p90", 900000 },
		       { "p99", 990000 },
		       { "p999", 999000 },
		       { "p9999", 999900 } };
	size_t i;

	fprintf(out, ", \"latency_us\": {");
	number(out, "mean", h->count ? h->sum / h->count : 0, SIM_PS_PER_US, 3);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		fprintf(out, ", ");
		number(out, points[i].name, weir_histogram_at(h, points[i].per_million),
		       SIM_PS_PER_US, 3);
	}
	fprintf(out, ", ");
	number(out, "max", h->max, SIM_PS_PER_US, 3);
	fprintf(out, "}");
}

static void print_tally(FILE *out, const char *name, const struct sim_tally *t, uint64_t run_ps)
{
	fprintf(out, "\"%s\": {\"ops\": %llu", name, (unsigned long long)t->ops);
	rate(out, "mops", t->ops, run_ps, SIM_PS_PER_S);
	rate(out, "gbps", t->bytes * 8, run_ps, SIM_PS_PER_S / 1000);
	rate(out, "in_flight", t->latency_ps.sum, run_ps, 1000000);
	print_latency(out, &t->latency_ps);
	count(out, "empty_polls", t->empty_polls);
	count(out, "arms", t->arms);
	count(out, "sleeps", t->sleeps);
	count(out, "lock_takes", t->takes);
	count(out, "lock_contended", t->contended);
	count(out, "window_waits", t->window_waits);
	count(out, "peak_bytes", t->peak_bytes);
	count(out, "unloaded", t->unloaded);
	count(out, "bitmap_reads", t->bitmap_reads);
	rate(out, "send_cores", t->send_work_ps, run_ps, 1000000);
	rate(out, "take_cores", t->take_work_ps, run_ps, 1000000);
	fprintf(out, "}");
}

static void print_busy(FILE *out, const struct sim_usage *before, const struct sim_usage *after,
		       uint64_t run_ps)
{
	static const char *const names[] = { "pipeline", "pcie_read", "pcie_write", "link_out",
					     "link_in" };
	int i;

	fprintf(out, ", \"busy\": {");
	number(out, "cores", (after->cpu_ps - before->cpu_ps) / after->nodes, run_ps, 3);
	rate(out, "kernel", (after->kernel_ps - before->kernel_ps) / after->nodes, run_ps, 1000000);
	for (i = 0; i < 5; i++)
		rate(out, names[i], (after->busy_ps[i] - before->busy_ps[i]) / after->nodes, run_ps,
		     1000000);
	fprintf(out, "}");
}

static void print_caches(FILE *out, const struct sim_usage *before, const struct sim_usage *after)
{
	static const char *const names[] = { "wqe", "qp", "mtt", "mpt" };
	int i;

	fprintf(out, ", \"misses\": {");
	for (i = 0; i < 4; i++) {
		uint64_t misses = after->misses[i] - before->misses[i];

		fprintf(out, "%s", i ? ", " : "");
		number(out, names[i], misses, misses + after->hits[i] - before->hits[i] ?: 1, 4);
	}
	fprintf(out, "}");
}

static void print_usage(FILE *out, const char *name, const struct sim_usage *before,
			const struct sim_usage *after, uint64_t run_ps)
{
	const struct sim_nic_counts *a = &after->counts, *b = &before->counts;

	fprintf(out, ", \"%s\": {\"wqes\": %llu", name, (unsigned long long)(a->wqes - b->wqes));
	count(out, "reads", a->reads - b->reads);
	count(out, "doorbells", a->doorbells - b->doorbells);
	count(out, "fetches", a->fetches - b->fetches);
	count(out, "cqes", a->cqes - b->cqes);
	count(out, "rnrs", a->rnrs - b->rnrs);
	count(out, "interrupts", after->interrupts - before->interrupts);
	count(out, "switches", after->switches - before->switches);
	print_busy(out, before, after, run_ps);
	print_caches(out, before, after);
	fprintf(out, "}");
}

void sim_report_print(FILE *out, const struct sim_report *r)
{
	fprintf(out, "{");
	number(out, "run_us", r->run_ps, SIM_PS_PER_US, 0);
	count(out, "events", r->events);
	count(out, "half_ops", r->half_ops);
	fprintf(out, ", ");
	print_tally(out, "load", r->load, r->run_ps);
	if (r->background) {
		fprintf(out, ", ");
		print_tally(out, "background", r->background, r->run_ps);
	}
	print_usage(out, "clients", &r->before[0], &r->after[0], r->run_ps);
	if (r->after[1].nodes)
		print_usage(out, "servers", &r->before[1], &r->after[1], r->run_ps);
	fprintf(out, "}\n");
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
