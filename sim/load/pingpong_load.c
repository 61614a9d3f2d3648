/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Round trips of small writes, as uRDMA times them (section 4). A thread writes to the other side.
 * A thread there waits for the write, and writes back a word that the first thread waits for.
 * core/unload/path chooses the path of each write. An offloaded write is seen in memory. An
 * unloaded write goes, with immediate, to a buffer that stays the same. The other thread takes its
 * completion, posts a receive, checks (modelled by handle_ns), and copies.
 *
 * The NIC completes an unloaded write before the copy. The paper leaves parity open. With parity,
 * the other thread sends an empty message after the copy and before its answer: this is the
 * completion.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/unload/path.h"
#include "sim/load/load.h"

#define ANSWER_BYTES 4
#define HEAD_BYTES 8 /* header of a slot: target of the data */
#define ANSWER_RKEY (1u << 30) /* like the buffer's, never out of the caches for long */
#define BUFFER_RKEY (ANSWER_RKEY + 1)

struct pingpong_loads;

/* One end of a round trip, and its waiting thread. */
struct pingpong_side {
	struct pingpong *trip;
	struct sim_node *node;
	struct sim_thread thread;
	bool has_thread;
	struct sim_qp *qp;
	struct sim_cq send_cq;
	struct sim_sge sge;
	uint64_t landed; /* writes that took effect in this side's memory */
	uint64_t seen;
	uint8_t op; /* of the last write */
};

struct pingpong {
	struct sim_loads *loads;
	struct pingpong_side here, there;
	struct sim_cq slots; /* unloaded writes, at the far side */
	struct sim_cq returns; /* copied writes, at the near side */
	struct sim_pattern pattern;
	struct weir_path_selector *route;
};

/* A client has one path selector for all its queue pairs, as a session has. */
struct pingpong_loads {
	struct sim_loads loads;
	struct pingpong *trips;
	uint32_t count;
	struct weir_path_selector routes[SIM_CLIENTS_MAX];
	uint8_t *counters[SIM_CLIENTS_MAX];
};

static void unloaded_lands(void *arg, const struct sim_wr *wr)
{
	struct pingpong_side *side = arg;

	if (wr->op == SIM_OP_SEND)
		return;
	side->landed++;
	side->op = wr->op;
	sim_thread_poke(&side->thread, 0);
}

/* Polls memory until a write has landed. */
static void await_memory(struct pingpong_side *side)
{
	while (side->landed == side->seen)
		sim_thread_spin(&side->thread, SIM_NEVER);
	side->seen++;
	sim_thread_run(&side->thread, side->node->host.profile->poll_empty_ps);
}

/* Posts one write. Polls the previous completion first, so that the queue never fills. */
static void post_write(struct pingpong_side *side, struct sim_wr *wr)
{
	struct sim_wc wc;

	if (side->send_cq.count)
		sim_poll_cq(&side->thread, &side->send_cq, &wc, 1);
	wr->sge = &side->sge;
	wr->nr_sge = 1;
	wr->is_inline = wr->bytes <= side->node->host.profile->inline_max;
	side->sge.length = wr->bytes;
	if (sim_post_send(&side->thread, &side->node->device, side->qp, wr, 1) != 1)
		abort(); /* the queue is deeper than a round trip needs */
}

static void await_one(struct pingpong_side *side, struct sim_cq *cq)
{
	struct sim_wc wc;

	while (!cq->count)
		sim_await_cq(&side->thread, cq, SIM_NEVER);
	sim_poll_cq(&side->thread, cq, &wc, 1);
}

static bool is_returned(const struct pingpong *trip, unsigned int path)
{
	return trip->loads->settings->parity && path & WEIR_PATH_UNLOAD;
}

/* Waits until the write on @path is complete. */
static void await_completion(struct pingpong *trip, unsigned int path)
{
	struct pingpong_side *here = &trip->here;

	if (!is_returned(trip, path)) {
		await_one(here, &here->send_cq);
		return;
	}
	await_one(here, &trip->returns);
	sim_post_recv(&here->thread, trip->there.qp->peer, 1);
}

static enum weir_path_hint hint_of(const struct pingpong *trip, uint64_t region)
{
	if (trip->route->config.policy != WEIR_PATH_POLICY_HINTS)
		return WEIR_PATH_HINT_NONE;
	return region < trip->route->config.hot_pages ? WEIR_PATH_HINT_HOT : WEIR_PATH_HINT_COLD;
}

/* Low regions are written most, as Zipf's law is used here. @is_timed: it may be a probe. */
static unsigned int next_write(struct pingpong *trip, struct sim_wr *wr, bool is_timed)
{
	uint64_t region, offset, now_ns = trip->loads->world->clock.now_ps / SIM_PS_PER_NS;
	unsigned int path;

	sim_pattern_next(&trip->pattern, &region, &offset);
	*wr = (struct sim_wr){ .op = SIM_OP_WRITE,
			       .rkey = 1 + (uint32_t)region,
			       .remote = offset,
			       .bytes = (uint32_t)trip->loads->settings->size };
	path = weir_path_decide(trip->route, region * trip->loads->settings->region_bytes + offset,
				hint_of(trip, region), is_timed, now_ns);
	if (path & WEIR_PATH_UNLOAD) {
		wr->op = SIM_OP_WRITE_IMM;
		wr->rkey = BUFFER_RKEY;
		wr->remote = 0;
		wr->bytes += HEAD_BYTES;
	}
	return path;
}

static void client_main(void *arg)
{
	struct pingpong *trip = arg;
	struct pingpong_side *here = &trip->here;
	struct sim_clock *clock = &trip->loads->world->clock;
	bool is_until_answer = trip->loads->settings->until == SIM_UNTIL_ANSWER;

	for (;;) {
		uint64_t begin_ps = clock->now_ps, done_ps;
		struct sim_wr wr;
		unsigned int path;

		if (weir_path_policy_counts(trip->route->config.policy))
			sim_thread_run(&here->thread, trip->loads->settings->core_ps);
		path = next_write(trip, &wr, true);
		post_write(here, &wr);
		if (is_until_answer)
			await_memory(here);
		else
			await_completion(trip, path);
		done_ps = clock->now_ps;
		sim_loads_count(trip->loads, begin_ps, trip->loads->settings->size);
		if (path & WEIR_PATH_PROBE)
			weir_path_completed(trip->route, path,
					    (done_ps - begin_ps) / SIM_PS_PER_NS);
		if (!is_until_answer)
			await_memory(here);
		else if (is_returned(trip, path))
			await_completion(trip, path);
	}
}

/* Checks and copies an unloaded write; with parity, notifies the sender. */
static void copy_unloaded(struct pingpong *trip)
{
	const struct sim_load_settings *s = trip->loads->settings;
	struct pingpong_side *there = &trip->there;
	struct sim_wr wr = { .op = SIM_OP_SEND };
	struct sim_wc wc;

	sim_poll_cq(&there->thread, &trip->slots, &wc, 1);
	sim_post_recv(&there->thread, wc.qp, 1);
	sim_thread_run(&there->thread, s->handle_ps);
	sim_copy(&there->thread, s->size);
	if (s->parity)
		post_write(there, &wr);
}

static void server_main(void *arg)
{
	struct pingpong *trip = arg;
	struct pingpong_side *there = &trip->there;

	for (;;) {
		struct sim_wr wr = { .op = SIM_OP_WRITE,
				     .rkey = ANSWER_RKEY,
				     .bytes = ANSWER_BYTES };

		await_memory(there);
		if (there->op == SIM_OP_WRITE_IMM)
			copy_unloaded(trip);
		post_write(there, &wr);
	}
}

/* Connects @from's queue pair; its writes land at @to. */
static int connect_sides(struct pingpong *trip, struct pingpong_side *from,
			 struct pingpong_side *to)
{
	struct sim_load_settings settings = *trip->loads->settings;

	settings.op = SIM_OP_WRITE;
	if (sim_cq_init(&from->send_cq, NULL, 8))
		return -ENOMEM;
	from->trip = trip;
	from->qp = sim_world_connect(trip->loads->world, from->node, to->node, &from->send_cq,
				     &settings, 8);
	if (!from->qp)
		return -ENOMEM;
	from->qp->peer->execute = unloaded_lands;
	from->qp->peer->arg = to;
	return 0;
}

/* Path selector of the client that owns these first round trips. */
static int route_init(struct pingpong *trip, uint8_t **counters)
{
	const struct sim_load_settings *s = trip->loads->settings;
	const struct weir_path_config config = {
		.policy = (enum weir_path_policy)s->unload,
		.bytes_max = (uint32_t)s->size,
		.hot_pages = (uint32_t)s->hot,
		.nr_counters = WEIR_PATH_COUNTERS_DEFAULT,
	};
	struct sim_wr wr;
	uint64_t i;
	int rc;

	*counters = calloc(WEIR_PATH_BYTES(WEIR_PATH_COUNTERS_DEFAULT), 1);
	if (!*counters)
		return -ENOMEM;
	rc = weir_path_init(trip->route, &config, *counters);
	/* Writes before the run take no time, so they are no probes. */
	for (i = 0; !rc && i < s->learn; i++)
		next_write(trip, &wr, false);
	return rc;
}

static int side_start(struct pingpong_side *side, void (*run)(void *arg))
{
	int rc = sim_thread_init(&side->thread, &side->node->host, -1, run, side->trip);

	side->has_thread = !rc;
	return rc;
}

static int trip_init(struct pingpong_loads *all, struct pingpong *trip, uint32_t number)
{
	struct sim_world *world = all->loads.world;
	uint32_t client = number % (uint32_t)world->settings->clients;
	int rc;

	trip->loads = &all->loads;
	trip->route = &all->routes[client];
	trip->here.node = &world->nodes[client];
	trip->there.node = sim_world_next_peer(world, trip->here.node);
	sim_pattern_init(&trip->pattern, all->loads.settings, &all->loads.zipf,
			 world->settings->seed, number);
	rc = connect_sides(trip, &trip->here, &trip->there);
	if (!rc)
		rc = connect_sides(trip, &trip->there, &trip->here);
	if (!rc)
		rc = sim_cq_init(&trip->slots, NULL, 8) || sim_cq_init(&trip->returns, NULL, 8) ?
			     -ENOMEM :
			     0;
	if (!rc && !all->counters[client])
		rc = route_init(trip, &all->counters[client]);
	if (rc)
		return rc;
	trip->here.qp->peer->recv_cq = &trip->slots;
	trip->here.qp->peer->recvs = SIM_RECVS;
	trip->there.qp->peer->recv_cq = &trip->returns;
	trip->there.qp->peer->recvs = SIM_RECVS;
	rc = side_start(&trip->there, server_main);
	return rc ? rc : side_start(&trip->here, client_main);
}

static int start_load(struct sim_world *world, const struct sim_load_settings *load,
		      struct sim_loads **out)
{
	struct pingpong_loads *all = calloc(1, sizeof(*all));
	uint32_t i;
	int rc = 0;

	*out = all ? &all->loads : NULL;
	if (!all)
		return -ENOMEM;
	all->loads =
		(struct sim_loads){ .kind = &sim_pingpong_load, .settings = load, .world = world };
	all->count = (uint32_t)(load->threads * world->settings->clients);
	all->trips = calloc(all->count, sizeof(*all->trips));
	if (!all->trips)
		return -ENOMEM;
	if (load->pattern == SIM_PATTERN_ZIPF &&
	    sim_zipf_init(&all->loads.zipf, load->mrs, load->skew))
		return -ENOMEM;
	for (i = 0; !rc && i < all->count; i++)
		rc = trip_init(all, &all->trips[i], i);
	return rc;
}

static void side_fini(struct pingpong_side *side)
{
	if (side->has_thread)
		sim_thread_fini(&side->thread);
	sim_cq_fini(&side->send_cq);
}

static void stop_load(struct sim_loads *loads)
{
	struct pingpong_loads *all = container_of(loads, struct pingpong_loads, loads);
	uint32_t i;

	for (i = 0; all->trips && i < all->count; i++) {
		side_fini(&all->trips[i].here);
		side_fini(&all->trips[i].there);
		sim_cq_fini(&all->trips[i].slots);
		sim_cq_fini(&all->trips[i].returns);
	}
	for (i = 0; i < SIM_CLIENTS_MAX; i++)
		free(all->counters[i]);
	free(all->trips);
	free(all);
}

static void collect_tally(struct sim_loads *loads)
{
	struct pingpong_loads *all = container_of(loads, struct pingpong_loads, loads);
	uint32_t i;

	for (i = 0; i < SIM_CLIENTS_MAX; i++)
		loads->tally.unloaded += all->routes[i].unloaded;
}

static void forget_tally(struct sim_loads *loads)
{
	struct pingpong_loads *all = container_of(loads, struct pingpong_loads, loads);
	uint32_t i;

	for (i = 0; i < SIM_CLIENTS_MAX; i++)
		all->routes[i].unloaded = 0;
}

const struct sim_load_kind sim_pingpong_load = { start_load, stop_load, collect_tally,
						 forget_tally };
