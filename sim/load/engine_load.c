/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads over weir's core. The threads of a client share one session with each server. A thread
 * that finds another thread's completion puts the job on the owner's list and wakes the owner. A
 * polling thread is a thread that leads its poller for ever.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/load/load.h"
#include "sim/host/engine_host.h"

struct engine_load_worker;

/* A request in flight, or done and not yet seen by its worker. */
struct engine_load_job {
	struct sim_request request;
	struct engine_load_worker *worker;
	uint64_t begin_ps;
	struct engine_load_job *next;
};

struct engine_load_worker {
	struct sim_loads *loads;
	struct sim_session *session;
	struct sim_thread thread;
	struct sim_pattern pattern;
	struct engine_load_job *jobs, *free_jobs, *done_jobs;
	uint64_t job_bytes; /* local memory of each job */
	uint32_t number;
	uint32_t under_way;
	bool waits;
};

/* A polling thread. */
struct engine_load_leader {
	struct sim_engine_host *weir;
	struct sim_poller *poller;
	struct sim_thread thread;
};

struct engine_load_client {
	struct sim_engine_host weir;
	struct sim_session *sessions;
	struct engine_load_leader *leads;
};

struct engine_loads {
	struct sim_loads loads;
	struct engine_load_client *clients;
	uint32_t nr_clients, nr_sessions;
	struct engine_load_worker *workers;
	uint32_t nr_workers, nr_started;
};

/* Called with the lock held, by any thread: leaves all other work to the worker's own thread. */
static bool done(struct sim_request *request)
{
	struct engine_load_job *job = container_of(request, struct engine_load_job, request);
	struct engine_load_worker *w = job->worker;

	if (request->req.status)
		abort(); /* the model injects no errors */
	job->next = w->done_jobs;
	w->done_jobs = job;
	if (!w->waits)
		return false;
	sim_thread_poke(&w->thread, 0);
	sim_thread_wake(&w->thread);
	return w->thread.state == SIM_THREAD_ASLEEP;
}

static struct weir_req next_of_pattern(struct engine_load_worker *w)
{
	static const enum weir_op ops[] = {
		[SIM_OP_WRITE] = WEIR_OP_WRITE, [SIM_OP_READ] = WEIR_OP_READ,
		[SIM_OP_SEND] = WEIR_OP_SEND,	[SIM_OP_WRITE_IMM] = WEIR_OP_WRITE,
		[SIM_OP_CAS] = WEIR_OP_CAS,	[SIM_OP_FADD] = WEIR_OP_FADD
	};
	const struct sim_load_settings *s = w->loads->settings;
	uint64_t region, offset;

	sim_pattern_next(&w->pattern, &region, &offset);
	return (struct weir_req){ .op = ops[s->op],
				  .rkey = 1 + (uint32_t)region,
				  .remote = region * s->region_bytes + offset,
				  .length = s->size };
}

static struct weir_req next_of_trace(struct sim_request_trace *trace)
{
	const struct sim_request_record *record = sim_trace_next(trace);

	return (struct weir_req){ .op = record->is_write ? WEIR_OP_WRITE : WEIR_OP_READ,
				  .rkey = 1,
				  .remote = record->page * SIM_TRACE_PAGE,
				  .length = record->pages * SIM_TRACE_PAGE };
}

static struct weir_req next_request(struct engine_load_worker *w)
{
	return w->loads->settings->pattern == SIM_PATTERN_TRACE ? next_of_trace(&w->loads->trace) :
								  next_of_pattern(w);
}

/*
 * Warms the NIC's cache. With much memory, the cache fills only after as many requests as it has
 * pages. These requests precede the run and take none of its time.
 */
static void touch_memory(struct engine_loads *all)
{
	const struct sim_load_settings *s = all->loads.settings;
	uint64_t of_a_page = all->loads.world->settings->profile.page_bytes / s->size, i;

	for (i = 0; i < s->touched; i++) {
		struct engine_load_worker *w = &all->workers[i % all->nr_workers];
		struct weir_req req = next_request(w);

		sim_memory_cached(w->session->channels[0].qp->peer->nic, req.rkey, req.remote,
				  req.length);
		if (s->pattern == SIM_PATTERN_SEQ && of_a_page > 1)
			w->pattern.next +=
				of_a_page - 1; /* later requests of this page add no page */
	}
}

static bool is_read(const struct weir_req *req)
{
	return req->op != WEIR_OP_WRITE && req->op != WEIR_OP_SEND;
}

static void submit_requests(struct engine_load_worker *w)
{
	const struct sim_load_settings *s = w->loads->settings;
	struct engine_load_job *job = w->free_jobs;
	struct weir_req *req = &job->request.req;

	w->free_jobs = job->next;
	w->under_way++;
	job->begin_ps = w->loads->world->clock.now_ps;
	job->request.session = w->session;
	job->request.done = done;
	*req = next_request(w);
	req->deadline_ns = WEIR_NEVER;
	req->nr_sge = 1;
	req->sge[0] = (struct weir_sge){ (uint64_t)(job - w->jobs) * w->job_bytes,
					 (uint32_t)req->length, (1u << 31) + w->number };
	sim_memory_in(&w->thread, s, req->length, is_read(req));
	sim_engine_host_submit(&w->thread, &job->request);
}

static void finish_requests(struct engine_load_worker *w)
{
	while (w->done_jobs) {
		struct engine_load_job *job = w->done_jobs;

		w->done_jobs = job->next;
		sim_memory_out(&w->thread, w->loads->settings, job->request.req.length,
			       is_read(&job->request.req));
		sim_loads_count(w->loads, job->begin_ps, job->request.req.length);
		job->next = w->free_jobs;
		w->free_jobs = job;
		w->under_way--;
		sim_thread_run(&w->thread, w->loads->settings->handle_ps);
	}
}

static bool has_some(void *arg)
{
	return ((struct engine_load_worker *)arg)->done_jobs;
}

static void worker_main(void *arg)
{
	struct engine_load_worker *w = arg;
	const struct sim_load_settings *s = w->loads->settings;
	uint32_t i;

	for (;;) {
		while (w->under_way + s->batch <= s->depth) {
			for (i = 0; i < s->batch; i++)
				submit_requests(w);
			sim_thread_run(&w->thread, s->think_ps);
		}
		w->waits = true;
		sim_engine_host_await(&w->thread, w->session, has_some, w);
		w->waits = false;
		finish_requests(w);
	}
}

static int worker_init(struct engine_loads *all, struct engine_load_worker *w,
		       struct engine_load_client *client, uint32_t number)
{
	const struct sim_load_settings *s = all->loads.settings;
	uint32_t i;

	w->loads = &all->loads;
	w->number = number;
	w->job_bytes = s->pattern == SIM_PATTERN_TRACE ? all->loads.trace.most * SIM_TRACE_PAGE :
							 s->size;
	w->session = &client->sessions[number % all->nr_sessions];
	sim_pattern_init(&w->pattern, s, &all->loads.zipf, all->loads.world->settings->seed,
			 number);
	w->jobs = calloc(s->depth, sizeof(*w->jobs));
	if (!w->jobs)
		return -ENOMEM;
	for (i = 0; i < s->depth; i++) {
		w->jobs[i].worker = w;
		w->jobs[i].next = w->free_jobs;
		w->free_jobs = &w->jobs[i];
	}
	if (sim_thread_init(&w->thread, &client->weir.node->host, -1, worker_main, w))
		return -ENOMEM;
	all->nr_started++;
	return 0;
}

static void lead_for_ever(void *arg)
{
	struct engine_load_leader *lead = arg;

	sim_engine_host_lead(&lead->thread, lead->weir, lead->poller);
}

static int lead_init(struct engine_load_leader *lead, struct sim_engine_host *weir,
		     struct sim_poller *poller)
{
	lead->weir = weir;
	lead->poller = poller;
	poller->leader = &lead->thread;
	return sim_thread_init(&lead->thread, &weir->node->host, -1, lead_for_ever, lead);
}

static int client_init(struct engine_loads *all, uint32_t number)
{
	const struct sim_load_settings *s = all->loads.settings;
	struct engine_load_client *client = &all->clients[number];
	uint32_t threads = (uint32_t)s->threads, i;
	int rc = sim_engine_host_init(&client->weir, &all->loads.world->nodes[number], s,
				      s->cqs ? (uint32_t)s->cqs : all->nr_sessions);

	client->sessions = calloc(all->nr_sessions, sizeof(*client->sessions));
	client->leads = calloc(client->weir.nr_pollers, sizeof(*client->leads));
	if (!client->sessions || !client->leads)
		return -ENOMEM;
	for (i = 0; i < all->nr_sessions && !rc; i++)
		rc = sim_session_init(&client->sessions[i], &client->weir, all->loads.world);
	for (i = 0; i < client->weir.nr_pollers && s->poller && !rc; i++)
		rc = lead_init(&client->leads[i], &client->weir, &client->weir.pollers[i]);
	for (i = 0; i < threads && !rc; i++)
		rc = worker_init(all, &all->workers[number * threads + i], client,
				 number * threads + i);
	return rc;
}

static int start_load(struct sim_world *world, const struct sim_load_settings *load,
		      struct sim_loads **out)
{
	struct engine_loads *all = calloc(1, sizeof(*all));
	int rc = 0;
	uint32_t i;

	*out = all ? &all->loads : NULL;
	if (!all)
		return -ENOMEM;
	all->loads = (struct sim_loads){ .kind = &sim_engine_load,
					 .settings = load,
					 .world = world,
					 .trace = world->settings->trace };
	all->nr_clients = (uint32_t)world->settings->clients;
	all->nr_sessions =
		(uint32_t)(world->settings->both ? all->nr_clients - 1 : world->settings->servers);
	all->nr_workers = (uint32_t)load->threads * all->nr_clients;
	all->clients = calloc(all->nr_clients, sizeof(*all->clients));
	all->workers = calloc(all->nr_workers, sizeof(*all->workers));
	if (!all->clients || !all->workers)
		return -ENOMEM;
	if (load->pattern == SIM_PATTERN_ZIPF &&
	    sim_zipf_init(&all->loads.zipf, load->mrs, load->skew))
		return -ENOMEM;
	for (i = 0; i < all->nr_clients && !rc; i++)
		rc = client_init(all, i);
	if (!rc && all->nr_workers)
		touch_memory(all);
	return rc;
}

static void stop_client(const struct engine_loads *all, struct engine_load_client *client)
{
	uint32_t i;

	for (i = 0; client->leads && i < client->weir.nr_pollers; i++) {
		if (client->leads[i].thread.host)
			sim_thread_fini(&client->leads[i].thread);
	}
	for (i = 0; client->sessions && i < all->nr_sessions; i++)
		sim_session_fini(&client->sessions[i]);
	sim_engine_host_fini(&client->weir);
	free(client->sessions);
	free(client->leads);
}

static void stop_load(struct sim_loads *loads)
{
	struct engine_loads *all = container_of(loads, struct engine_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_started; i++)
		sim_thread_fini(&all->workers[i].thread);
	for (i = 0; all->workers && i < all->nr_workers; i++)
		free(all->workers[i].jobs);
	for (i = 0; all->clients && i < all->nr_clients; i++)
		stop_client(all, &all->clients[i]);
	free(all->clients);
	free(all->workers);
	free(all);
}

static void collect_tally(struct sim_loads *loads)
{
	struct engine_loads *all = container_of(loads, struct engine_loads, loads);
	struct sim_tally *tally = &loads->tally;
	uint32_t i, j;

	for (i = 0; i < all->nr_clients; i++) {
		struct engine_load_client *client = &all->clients[i];

		if (tally->peak_bytes < client->weir.peak_bytes)
			tally->peak_bytes = client->weir.peak_bytes;
		tally->takes += client->weir.lock.takes;
		tally->contended += client->weir.lock.contended;
		for (j = 0; j < client->weir.nr_pollers; j++) {
			tally->empty_polls += client->weir.pollers[j].poll.empty_polls;
			tally->arms += client->weir.pollers[j].poll.arms;
			tally->sleeps += client->weir.pollers[j].poll.sleeps;
		}
		for (j = 0; j < all->nr_sessions; j++)
			tally->window_waits += client->sessions[j].engine.waits;
	}
}

static void forget_tally(struct sim_loads *loads)
{
	struct engine_loads *all = container_of(loads, struct engine_loads, loads);
	uint32_t i, j;

	for (i = 0; i < all->nr_clients; i++) {
		struct engine_load_client *client = &all->clients[i];

		client->weir.lock.takes = client->weir.lock.contended = 0;
		client->weir.peak_bytes = 0;
		for (j = 0; j < client->weir.nr_pollers; j++) {
			struct weir_poll *poll = &client->weir.pollers[j].poll;

			poll->empty_polls = poll->arms = poll->sleeps = 0;
		}
		for (j = 0; j < all->nr_sessions; j++)
			client->sessions[j].engine.waits = 0;
	}
}

const struct sim_load_kind sim_engine_load = { start_load, stop_load, collect_tally, forget_tally };
