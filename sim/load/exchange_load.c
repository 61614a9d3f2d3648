/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages through exchanges, as HiPower times them: from each client to each server. A client's
 * thread sends to all servers in turn, whenever slots are free; a server's thread takes messages
 * from all clients. Both threads poll all the time. The counted work excludes polls that find
 * nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/host/exchange.h"
#include "sim/load/load.h"

struct exchange_loads;

/* A thread of a machine and its exchange ends: @count ends, @step apart. */
struct exchange_load_side {
	struct exchange_loads *all;
	struct sim_exchange *first;
	uint32_t count, step;
	struct sim_thread thread;
	bool has_thread;
	uint32_t *turn; /* sender: index of the next length, by exchange */
	uint64_t work_ps;
};

struct exchange_loads {
	struct sim_loads loads;
	struct sim_exchange *exchanges; /* by client, then by server */
	uint32_t nr_clients, nr_servers, nr_exchanges;
	struct exchange_load_side *senders, *receivers;
};

static struct sim_exchange *exchange_of(const struct exchange_load_side *side, uint32_t i)
{
	return &side->first[i * side->step];
}

static uint64_t now_ps(const struct exchange_load_side *side)
{
	return side->all->loads.world->clock.now_ps;
}

static uint32_t length_of(const struct exchange_load_side *side, uint32_t turn)
{
	const struct sim_sizes *sizes = &side->all->loads.world->settings->sizes;

	return sizes->count ? sizes->bytes[turn % sizes->count] :
			      (uint32_t)side->all->loads.settings->size;
}

/* Sends up to a batch of messages into the free slots. Return: whether any were sent. */
static bool put_messages(struct exchange_load_side *side, uint32_t i)
{
	const struct sim_load_settings *s = side->all->loads.settings;
	struct sim_exchange *x = exchange_of(side, i);
	uint32_t bytes[SIM_EXCHANGE_CHAIN], n, most = (uint32_t)s->batch;

	if (most > x->out.free)
		most = x->out.free;
	for (n = 0; n < most; n++) {
		bytes[n] = length_of(side, side->turn[i] + n);
		sim_memory_in(&side->thread, s, bytes[n], false);
	}
	n = most ? sim_exchange_put(&side->thread, x, bytes, most) : 0;
	side->turn[i] += n;
	return n;
}

/*
 * Waits until a message comes or a bitmap read may be due. With a single exchange, the CQ to wait
 * on is known, and one event replaces thousands of empty polls.
 */
static void idle_until_event(struct exchange_load_side *side, struct sim_cq *cq)
{
	uint64_t ps = side->thread.host->profile->poll_empty_ps;

	if (side->count == 1 && cq)
		sim_await_cq(&side->thread, cq, 20 * ps);
	else
		sim_thread_run(&side->thread, ps);
}

static void sender_main(void *arg)
{
	struct exchange_load_side *side = arg;
	uint32_t i;

	for (;;) {
		uint64_t begin_ps = now_ps(side);
		bool any = false;

		for (i = 0; i < side->count; i++) {
			any |= sim_exchange_hear(&side->thread, exchange_of(side, i));
			any |= put_messages(side, i);
		}
		side->work_ps += now_ps(side) - begin_ps;
		if (!any)
			idle_until_event(side, side->first->is_imm ? &side->first->sender.recv_cq :
								     &side->first->sender.send_cq);
	}
}

static void take_all(struct exchange_load_side *side, struct sim_exchange *x)
{
	const struct sim_load_settings *s = side->all->loads.settings;

	while (x->nr_taken) {
		uint32_t slot = sim_exchange_take(x);

		sim_memory_out(&side->thread, s, x->bytes[slot], true);
		sim_thread_run(&side->thread, s->handle_ps);
		sim_loads_count(&side->all->loads, x->begin_ps[slot], x->bytes[slot]);
		sim_exchange_release(&side->thread, x, slot);
	}
}

static void receiver_main(void *arg)
{
	struct exchange_load_side *side = arg;
	uint32_t i;

	for (;;) {
		uint64_t begin_ps = now_ps(side);
		bool any = false;

		for (i = 0; i < side->count; i++) {
			struct sim_exchange *x = exchange_of(side, i);
			uint64_t bitmap_reads = x->bitmap_reads;

			any |= sim_exchange_look(&side->thread, x) ||
			       bitmap_reads != x->bitmap_reads;
			take_all(side, x);
		}
		side->work_ps += now_ps(side) - begin_ps;
		if (!any)
			idle_until_event(side, sim_exchange_awaited(side->first));
	}
}

static int side_start(struct exchange_load_side *side, struct exchange_loads *all,
		      struct sim_node *node, void (*run)(void *arg))
{
	int rc;

	side->all = all;
	side->turn = calloc(side->count, sizeof(*side->turn));
	if (!side->turn)
		return -ENOMEM;
	rc = sim_thread_init(&side->thread, &node->host, -1, run, side);
	side->has_thread = !rc;
	return rc;
}

static int sides_start(struct exchange_loads *all)
{
	struct sim_node *nodes = all->loads.world->nodes;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < all->nr_clients && !rc; i++) {
		all->senders[i].first = &all->exchanges[i * all->nr_servers];
		all->senders[i].count = all->nr_servers;
		all->senders[i].step = 1;
		rc = side_start(&all->senders[i], all, &nodes[i], sender_main);
	}
	for (i = 0; i < all->nr_servers && !rc; i++) {
		all->receivers[i].first = &all->exchanges[i];
		all->receivers[i].count = all->nr_clients;
		all->receivers[i].step = all->nr_servers;
		rc = side_start(&all->receivers[i], all, &nodes[all->nr_clients + i],
				receiver_main);
	}
	return rc;
}

static int exchanges_init(struct exchange_loads *all)
{
	struct sim_world *world = all->loads.world;
	uint32_t i, j;
	int rc = 0;

	for (i = 0; i < all->nr_clients; i++) {
		for (j = 0; j < all->nr_servers && !rc; j++, all->nr_exchanges++)
			rc = sim_exchange_init(&all->exchanges[all->nr_exchanges], world,
					       &world->nodes[i], &world->nodes[all->nr_clients + j],
					       all->loads.settings);
	}
	return rc;
}

static int start_load(struct sim_world *world, const struct sim_load_settings *load,
		      struct sim_loads **out)
{
	struct exchange_loads *all = calloc(1, sizeof(*all));
	int rc;

	*out = all ? &all->loads : NULL;
	if (!all)
		return -ENOMEM;
	all->loads =
		(struct sim_loads){ .kind = &sim_exchange_load, .settings = load, .world = world };
	all->nr_clients = (uint32_t)world->settings->clients;
	all->nr_servers = (uint32_t)world->settings->servers;
	all->exchanges = calloc(all->nr_clients * all->nr_servers, sizeof(*all->exchanges));
	all->senders = calloc(all->nr_clients, sizeof(*all->senders));
	all->receivers = calloc(all->nr_servers, sizeof(*all->receivers));
	if (!all->exchanges || !all->senders || !all->receivers)
		return -ENOMEM;
	rc = exchanges_init(all);
	return rc ? rc : sides_start(all);
}

static void sides_stop(struct exchange_load_side *sides, uint32_t count)
{
	uint32_t i;

	for (i = 0; sides && i < count; i++) {
		if (sides[i].has_thread)
			sim_thread_fini(&sides[i].thread);
		free(sides[i].turn);
	}
	free(sides);
}

static void stop_load(struct sim_loads *loads)
{
	struct exchange_loads *all = container_of(loads, struct exchange_loads, loads);
	uint32_t i;

	sides_stop(all->senders, all->nr_clients);
	sides_stop(all->receivers, all->nr_servers);
	for (i = 0; i < all->nr_exchanges; i++)
		sim_exchange_fini(&all->exchanges[i]);
	free(all->exchanges);
	free(all);
}

static void collect_tally(struct sim_loads *loads)
{
	struct exchange_loads *all = container_of(loads, struct exchange_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_clients; i++)
		loads->tally.send_work_ps += all->senders[i].work_ps;
	for (i = 0; i < all->nr_servers; i++)
		loads->tally.take_work_ps += all->receivers[i].work_ps;
	for (i = 0; i < all->nr_exchanges; i++)
		loads->tally.bitmap_reads += all->exchanges[i].bitmap_reads;
}

static void forget_tally(struct sim_loads *loads)
{
	struct exchange_loads *all = container_of(loads, struct exchange_loads, loads);
	uint32_t i;

	for (i = 0; i < all->nr_clients; i++)
		all->senders[i].work_ps = 0;
	for (i = 0; i < all->nr_servers; i++)
		all->receivers[i].work_ps = 0;
	for (i = 0; i < all->nr_exchanges; i++)
		all->exchanges[i].bitmap_reads = 0;
}

const struct sim_load_kind sim_exchange_load = { start_load, stop_load, collect_tally,
						 forget_tally };
