/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plain verbs. A port holds QPs and their CQ. A port belongs to one thread, or several threads
 * share it behind a lock. A thread that polls another thread's completion notifies the owner.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/load/load.h"

#define WCS_MAX 256
#define WAKE_NS 5000 /* cost of a wake-up, until idle times were measured */

struct verbs_loads;
struct verbs_load_worker;

/* A request in flight. */
struct verbs_load_job {
	struct verbs_load_worker *worker;
	uint64_t begin_ps;
	struct verbs_load_job *next;
};

struct verbs_load_port {
	struct sim_qp **qps;
	uint32_t nr_qps;
	struct sim_cq cq;
	struct sim_channel channel;
	struct sim_lock post_lock, poll_lock;
	bool is_shared;
};

struct verbs_load_worker {
	struct sim_loads *loads;
	struct sim_node *node;
	struct sim_thread thread;
	struct verbs_load_port *port;
	struct sim_pattern pattern;
	struct sim_rng choice;
	struct sim_sge sge;
	struct verbs_load_job *jobs, *free_jobs;
	struct sim_wr *wrs;
	uint32_t under_way;
	uint32_t turn;
	struct weir_poll poll;
	struct weir_idle_time idle_time;
	enum weir_poll_verdict verdict;
};

struct verbs_loads {
	struct sim_loads loads;
	struct verbs_load_port *ports;
	uint32_t nr_ports;
	struct verbs_load_worker *workers;
	uint32_t nr_workers, nr_started;
};

static uint64_t now_ps(const struct verbs_load_worker *w)
{
	return w->loads->world->clock.now_ps;
}

static uint64_t now_ns(const struct verbs_load_worker *w)
{
	return now_ps(w) / SIM_PS_PER_NS;
}

static void fill_wr(struct verbs_load_worker *w, struct sim_wr *wr)
{
	const struct sim_load_settings *s = w->loads->settings;
	const struct sim_profile *p = w->node->host.profile;
	struct verbs_load_job *job = w->free_jobs;
	uint64_t region;

	w->free_jobs = job->next;
	job->begin_ps = now_ps(w);
	*wr = (struct sim_wr){ .id = (uintptr_t)job,
			       .op = (uint8_t)s->op,
			       .nr_sge = 1,
			       .sge = &w->sge,
			       .bytes = (uint32_t)s->size };
	wr->is_inline = !(s->op == SIM_OP_READ || s->op > SIM_OP_WRITE_IMM) &&
			s->size <= p->inline_max;
	sim_pattern_next(&w->pattern, &region, &wr->remote);
	wr->rkey = 1 + (uint32_t)region;
}

/* The QP is chosen as the target is: in turn, or at random. */
static struct sim_qp *next_qp(struct verbs_load_worker *w)
{
	struct verbs_load_port *port = w->port;

	if (w->loads->settings->pattern == SIM_PATTERN_SEQ)
		return port->qps[w->turn++ % port->nr_qps];
	return port->qps[sim_rng_below(&w->choice, port->nr_qps)];
}

/* Posts with one doorbell. */
static void post_wrs(struct verbs_load_worker *w, uint32_t count)
{
	const struct sim_load_settings *s = w->loads->settings;
	struct verbs_load_port *port = w->port;
	uint32_t i;

	for (i = 0; i < count; i++) {
		fill_wr(w, &w->wrs[i]);
		sim_memory_in(&w->thread, s, s->size, sim_load_is_read(s));
	}
	w->under_way += count;
	if (port->is_shared && s->hold == SIM_HOLD_POST)
		sim_lock_take(&port->post_lock, &w->thread);
	if (sim_post_send(&w->thread, &w->node->device, next_qp(w), w->wrs, count) != count)
		abort(); /* the queue has room for all requests of its users */
	if (port->is_shared && s->hold == SIM_HOLD_POST)
		sim_lock_give(&port->post_lock, &w->thread);
}

static void submit_requests(struct verbs_load_worker *w)
{
	const struct sim_load_settings *s = w->loads->settings;
	uint32_t left = (uint32_t)s->batch, chain = (uint32_t)s->chain;

	for (; left > chain; left -= chain)
		post_wrs(w, chain);
	post_wrs(w, left);
	sim_thread_run(&w->thread, s->think_ps);
}

static void finish_request(struct verbs_load_worker *w, const struct sim_wc *wc)
{
	const struct sim_load_settings *s = w->loads->settings;
	struct verbs_load_job *job = (struct verbs_load_job *)(uintptr_t)wc->id;

	sim_memory_out(&w->thread, s, s->size, sim_load_is_read(s));
	sim_loads_count(w->loads, job->begin_ps, s->size);
	job->next = job->worker->free_jobs;
	job->worker->free_jobs = job;
	job->worker->under_way--;
	if (job->worker != w)
		sim_thread_poke(&job->worker->thread, 0);
	sim_thread_run(&w->thread, s->handle_ps);
}

static uint32_t poll(struct verbs_load_worker *w)
{
	struct sim_wc wcs[WCS_MAX];
	struct verbs_load_port *port = w->port;
	uint32_t i, taken;

	if (port->is_shared)
		sim_lock_take(&port->poll_lock, &w->thread);
	taken = sim_poll_cq(&w->thread, &port->cq, wcs, (uint32_t)w->loads->settings->poll_wcs);
	if (port->is_shared)
		sim_lock_give(&port->poll_lock, &w->thread);
	for (i = 0; i < taken; i++)
		finish_request(w, &wcs[i]);
	return taken;
}

/* Waits until a poll finds a completion, or another thread has found one for this thread. */
static void await_completion(struct verbs_load_worker *w)
{
	uint32_t taken = 0;

	if (w->loads->settings->poll == WEIR_POLL_BUSY) {
		sim_await_cq(&w->thread, &w->port->cq, SIM_NEVER);
		if (w->port->cq.count)
			poll(w);
		return;
	}
	while (!taken) {
		if (w->verdict == WEIR_POLL_ARM)
			sim_req_notify_cq(&w->thread, &w->port->cq);
		if (w->verdict == WEIR_POLL_SLEEP) {
			sim_get_cq_event(&w->thread, &w->port->channel);
			w->verdict = weir_poll_woken(&w->poll, now_ns(w));
			continue;
		}
		taken = poll(w);
		w->verdict = weir_poll_polled(&w->poll, taken, now_ns(w));
	}
}

static void worker_main(void *arg)
{
	struct verbs_load_worker *w = arg;
	const struct sim_load_settings *s = w->loads->settings;

	for (;;) {
		if (s->hold == SIM_HOLD_OP)
			sim_lock_take(&w->port->post_lock, &w->thread);
		while (w->under_way + s->batch <= s->depth)
			submit_requests(w);
		await_completion(w);
		if (s->hold == SIM_HOLD_OP)
			sim_lock_give(&w->port->post_lock, &w->thread);
	}
}

static int port_init(struct verbs_loads *all, struct verbs_load_port *port, struct sim_node *node,
		     uint32_t number, uint32_t users)
{
	const struct sim_load_settings *s = all->loads.settings;
	uint32_t depth = (uint32_t)s->depth * users, i;

	port->is_shared = s->share;
	port->nr_qps = s->share ? 1 : (uint32_t)s->qps;
	sim_lock_init(&port->post_lock, s->lock == SIM_LOCK_MUTEX);
	sim_lock_init(&port->poll_lock, false);
	sim_channel_init(&port->channel, &node->host.cores[number % node->host.nr_cores]);
	port->qps = calloc(port->nr_qps, sizeof(*port->qps));
	if (!port->qps || sim_cq_init(&port->cq, &port->channel, depth))
		return -ENOMEM;
	for (i = 0; i < port->nr_qps; i++) {
		port->qps[i] = sim_world_connect(all->loads.world, node,
						 sim_world_next_peer(all->loads.world, node),
						 &port->cq, s, depth);
		if (!port->qps[i])
			return -ENOMEM;
	}
	return 0;
}

static int worker_init(struct verbs_loads *all, struct verbs_load_worker *w, struct sim_node *node,
		       struct verbs_load_port *port, uint32_t number)
{
	const struct sim_load_settings *s = all->loads.settings;
	const struct weir_poll_config config = { (enum weir_poll_mode)s->poll,
						 (uint32_t)s->poll_wcs, (uint32_t)s->poll_retries,
						 100 };
	uint32_t i;

	w->loads = &all->loads;
	w->node = node;
	w->port = port;
	w->turn = number;
	w->sge = (struct sim_sge){ 0, (uint32_t)s->size, (1u << 31) + number };
	sim_pattern_init(&w->pattern, s, &all->loads.zipf, all->loads.world->settings->seed,
			 number);
	sim_rng_init(&w->choice, all->loads.world->settings->seed, "qp", number);
	w->wrs = calloc(s->batch, sizeof(*w->wrs));
	w->jobs = calloc(s->depth, sizeof(*w->jobs));
	if (!w->wrs || !w->jobs)
		return -ENOMEM;
	for (i = 0; i < s->depth; i++) {
		w->jobs[i] = (struct verbs_load_job){ w, 0, w->free_jobs };
		w->free_jobs = &w->jobs[i];
	}
	weir_idle_time_init(&w->idle_time, WAKE_NS, WAKE_NS);
	weir_poll_init(&w->poll, &config, &w->idle_time, now_ns(w));
	w->verdict = weir_poll_woken(&w->poll, now_ns(w));
	if (sim_thread_init(&w->thread, &node->host, -1, worker_main, w))
		return -ENOMEM;
	all->nr_started++;
	return 0;
}

/* Sets up the ports and threads of client @number. */
static int client_init(struct verbs_loads *all, uint32_t number)
{
	uint32_t threads = (uint32_t)all->loads.settings->threads, ports = all->nr_ports, i;
	struct sim_node *node = &all->loads.world->nodes[number];
	struct verbs_load_port *port = &all->ports[number * ports];

	for (i = 0; i < ports; i++) {
		if (port_init(all, &port[i], node, i, (threads + ports - 1) / ports))
			return -ENOMEM;
	}
	for (i = 0; i < threads; i++) {
		uint32_t at = number * threads + i;

		if (worker_init(all, &all->workers[at], node, &port[i % ports], at))
			return -ENOMEM;
	}
	return 0;
}

static int start_load(struct sim_world *world, const struct sim_load_settings *load,
		      struct sim_loads **out)
{
	struct verbs_loads *all = calloc(1, sizeof(*all));
	uint32_t clients = (uint32_t)world->settings->clients, i;

	*out = all ? &all->loads : NULL;
	if (!all)
		return -ENOMEM;
	all->loads =
		(struct sim_loads){ .kind = &sim_verbs_load, .settings = load, .world = world };
	all->nr_ports = (uint32_t)(load->share ? load->share : load->threads);
	all->nr_workers = (uint32_t)load->threads * clients;
	all->ports = calloc(all->nr_ports * clients, sizeof(*all->ports));
	all->workers = calloc(all->nr_workers, sizeof(*all->workers));
	if (!all->ports || !all->workers)
		return -ENOMEM;
	if (load->pattern == SIM_PATTERN_ZIPF &&
	    sim_zipf_init(&all->loads.zipf, load->mrs, load->skew))
		return -ENOMEM;
	for (i = 0; i < clients; i++) {
		if (client_init(all, i))
			return -ENOMEM;
	}
	return 0;
}

static uint32_t count_ports(const struct verbs_loads *all)
{
	return all->nr_ports * (uint32_t)all->loads.world->settings->clients;
}

static void stop_load(struct sim_loads *loads)
{
	struct verbs_loads *all = container_of(loads, struct verbs_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_started; i++)
		sim_thread_fini(&all->workers[i].thread);
	for (i = 0; all->workers && i < all->nr_workers; i++) {
		free(all->workers[i].wrs);
		free(all->workers[i].jobs);
	}
	for (i = 0; all->ports && i < count_ports(all); i++) {
		free(all->ports[i].qps);
		sim_cq_fini(&all->ports[i].cq);
	}
	free(all->ports);
	free(all->workers);
	free(all);
}

static void collect_tally(struct sim_loads *loads)
{
	struct verbs_loads *all = container_of(loads, struct verbs_loads, loads);
	struct sim_tally *tally = &loads->tally;
	uint32_t i;

	for (i = 0; i < all->nr_workers; i++) {
		tally->empty_polls += all->workers[i].poll.empty_polls;
		tally->arms += all->workers[i].poll.arms;
		tally->sleeps += all->workers[i].poll.sleeps;
	}
	for (i = 0; i < count_ports(all); i++) {
		tally->takes += all->ports[i].post_lock.takes;
		tally->contended += all->ports[i].post_lock.contended;
	}
}

static void forget_tally(struct sim_loads *loads)
{
	struct verbs_loads *all = container_of(loads, struct verbs_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_workers; i++) {
		struct weir_poll *poll = &all->workers[i].poll;

		poll->empty_polls = poll->arms = poll->sleeps = 0;
	}
	for (i = 0; i < count_ports(all); i++)
		all->ports[i].post_lock.takes = all->ports[i].post_lock.contended = 0;
}

const struct sim_load_kind sim_verbs_load = { start_load, stop_load, collect_tally, forget_tally };
