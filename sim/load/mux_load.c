/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads that send messages over a mux. Each thread has connections of its own and sends on them
 * in turn. A background load uses the mux of the first load, as other applications of a machine
 * would.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/load/load.h"
#include "sim/host/mux.h"

struct mux_load_app;

/* A message in flight, or sent and not yet seen by its thread. */
struct mux_load_job {
	struct sim_mux_message message;
	struct mux_load_app *app;
	uint64_t begin_ps;
	struct mux_load_job *next;
};

/* A thread and its @nr_conns connections, from @conns on. */
struct mux_load_app {
	struct sim_loads *loads;
	struct sim_thread thread;
	struct sim_mux_conn *conns;
	uint32_t nr_conns, turn;
	struct mux_load_job *jobs, *free_jobs, *done_jobs;
	uint32_t under_way;
	bool waits;
};

struct mux_loads {
	struct sim_loads loads;
	struct sim_mux *muxes; /* started by this load, one a client */
	uint32_t nr_muxes;
	struct sim_mux_conn *conns;
	struct mux_load_app *apps;
	uint32_t nr_apps, nr_started;
};

static bool done(struct sim_mux_message *message)
{
	struct mux_load_job *job = container_of(message, struct mux_load_job, message);
	struct mux_load_app *app = job->app;

	job->next = app->done_jobs;
	app->done_jobs = job;
	if (!app->waits)
		return false;
	sim_thread_poke(&app->thread, 0);
	if (app->thread.state != SIM_THREAD_ASLEEP)
		return false;
	sim_thread_wake(&app->thread);
	return true;
}

static void send_messages(struct mux_load_app *app)
{
	const struct sim_load_settings *s = app->loads->settings;
	struct mux_load_job *job = app->free_jobs;

	app->free_jobs = job->next;
	app->under_way++;
	job->begin_ps = app->loads->world->clock.now_ps;
	job->message.conn = &app->conns[app->turn];
	app->turn = (app->turn + 1) % app->nr_conns;
	job->message.bytes = s->size;
	job->message.done = done;
	sim_memory_in(&app->thread, s, s->size, false);
	sim_mux_send(&app->thread, &job->message);
}

static void finish_messages(struct mux_load_app *app)
{
	const struct sim_load_settings *s = app->loads->settings;

	while (app->done_jobs) {
		struct mux_load_job *job = app->done_jobs;

		app->done_jobs = job->next;
		sim_loads_count(app->loads, job->begin_ps, s->size);
		job->next = app->free_jobs;
		app->free_jobs = job;
		app->under_way--;
		sim_thread_run(&app->thread, s->handle_ps);
	}
}

static void await_message(struct mux_load_app *app)
{
	app->waits = true;
	while (!app->done_jobs) {
		if (app->loads->settings->poll == WEIR_POLL_BUSY) {
			sim_thread_spin(&app->thread, SIM_NEVER);
			continue;
		}
		sim_thread_call(&app->thread, 0);
		if (!app->done_jobs)
			sim_thread_sleep(&app->thread, SIM_NEVER);
	}
	app->waits = false;
}

static void app_main(void *arg)
{
	struct mux_load_app *app = arg;
	const struct sim_load_settings *s = app->loads->settings;
	uint32_t i;

	for (;;) {
		while (app->under_way + s->batch <= s->depth) {
			for (i = 0; i < s->batch; i++)
				send_messages(app);
			sim_thread_run(&app->thread, s->think_ps);
		}
		await_message(app);
		finish_messages(app);
	}
}

static int app_init(struct mux_loads *all, struct mux_load_app *app, struct sim_node *node)
{
	const struct sim_load_settings *s = all->loads.settings;
	uint32_t i;

	app->loads = &all->loads;
	for (i = 0; i < app->nr_conns; i++)
		sim_mux_conn_init(&app->conns[i], node->mux, (uint8_t)s->class);
	app->jobs = calloc(s->depth, sizeof(*app->jobs));
	if (!app->jobs)
		return -ENOMEM;
	for (i = 0; i < s->depth; i++) {
		app->jobs[i].app = app;
		app->jobs[i].next = app->free_jobs;
		app->free_jobs = &app->jobs[i];
	}
	if (sim_thread_init(&app->thread, &node->host, -1, app_main, app))
		return -ENOMEM;
	all->nr_started++;
	return 0;
}

static int client_init(struct mux_loads *all, uint32_t number)
{
	const struct sim_load_settings *s = all->loads.settings;
	uint32_t threads = (uint32_t)s->threads, conns = (uint32_t)s->conns, i, taken = 0;
	struct sim_node *node = &all->loads.world->nodes[number];
	int rc = 0;

	if (!node->mux) {
		node->mux = &all->muxes[number];
		all->nr_muxes = number + 1;
		rc = sim_mux_init(node->mux, all->loads.world, node, s);
	}
	for (i = 0; i < threads && !rc; i++) {
		struct mux_load_app *app = &all->apps[number * threads + i];

		app->conns = &all->conns[number * conns + taken];
		app->nr_conns = conns / threads + (i < conns % threads);
		taken += app->nr_conns;
		rc = app_init(all, app, node);
	}
	return rc;
}

static int start_load(struct sim_world *world, const struct sim_load_settings *load,
		      struct sim_loads **out)
{
	struct mux_loads *all = calloc(1, sizeof(*all));
	uint32_t clients = (uint32_t)world->settings->clients, i;
	int rc = 0;

	*out = all ? &all->loads : NULL;
	if (!all)
		return -ENOMEM;
	all->loads = (struct sim_loads){ .kind = &sim_mux_load, .settings = load, .world = world };
	all->nr_apps = (uint32_t)load->threads * clients;
	all->muxes = calloc(clients, sizeof(*all->muxes));
	all->apps = calloc(all->nr_apps, sizeof(*all->apps));
	all->conns = calloc(load->conns * clients, sizeof(*all->conns));
	if (!all->muxes || !all->apps || !all->conns)
		return -ENOMEM;
	for (i = 0; i < clients && !rc; i++)
		rc = client_init(all, i);
	return rc;
}

static void stop_load(struct sim_loads *loads)
{
	struct mux_loads *all = container_of(loads, struct mux_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_started; i++)
		sim_thread_fini(&all->apps[i].thread);
	for (i = 0; all->apps && i < all->nr_apps; i++)
		free(all->apps[i].jobs);
	for (i = 0; i < all->nr_muxes; i++)
		sim_mux_fini(&all->muxes[i]);
	free(all->muxes);
	free(all->conns);
	free(all->apps);
	free(all);
}

static void collect_tally(struct sim_loads *loads)
{
	struct mux_loads *all = container_of(loads, struct mux_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_muxes; i++) {
		loads->tally.empty_polls += all->muxes[i].poll.empty_polls;
		loads->tally.arms += all->muxes[i].poll.arms;
		loads->tally.sleeps += all->muxes[i].poll.sleeps;
	}
}

static void forget_tally(struct sim_loads *loads)
{
	struct mux_loads *all = container_of(loads, struct mux_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_muxes; i++) {
		struct weir_poll *poll = &all->muxes[i].poll;

		poll->empty_polls = poll->arms = poll->sleeps = 0;
	}
}

const struct sim_load_kind sim_mux_load = { start_load, stop_load, collect_tally, forget_tally };
