/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The load on the clients. Each thread keeps a number of requests in flight, over plain verbs
 * (verbs_load.c) or over weir's core (engine_load.c), and each request is timed. Other loads: round
 * trips of writes, offloaded or unloaded (pingpong_load.c); messages on connections that share
 * queue pairs (mux_load.c); messages through slots known to both ends (exchange_load.c).
 */
#ifndef WEIR_SIM_LOAD_LOAD_H
#define WEIR_SIM_LOAD_LOAD_H

#include "core/poll/poll.h"
#include "core/base/histogram.h"
#include "sim/load/pattern.h"
#include "sim/host/world.h"

/**
 * struct sim_tally - results; starts as zeroes
 * @ops, @bytes: completed requests and their bytes
 * @latency_ps: per request, from before the submission until the completion was seen
 * @empty_polls, @arms, @sleeps: of poll modes that may sleep
 * @contended, @takes: of locks shared by threads
 * @window_waits: weir: times that the window was full
 * @peak_bytes: weir: the most bytes that a client had in flight
 * @unloaded: trip: unloaded writes
 * @bitmap_reads: exchange: reads of the peer's bitmap
 * @send_work_ps, @take_work_ps: exchange: work of the senders' and of the receivers' threads
 */
struct sim_tally {
	uint64_t ops, bytes;
	struct weir_histogram latency_ps;
	uint64_t empty_polls, arms, sleeps;
	uint64_t contended, takes;
	uint64_t window_waits, peak_bytes;
	uint64_t unloaded;
	uint64_t bitmap_reads;
	uint64_t send_work_ps, take_work_ps;
};

struct sim_loads;

/**
 * struct sim_load_kind - operations of a driver
 * @start, @stop, @collect, @forget: implement the calls below; @stop also undoes a failed @start
 *
 * @start returns a struct that begins with a struct sim_loads.
 */
struct sim_load_kind {
	int (*start)(struct sim_world *world, const struct sim_load_settings *load,
		     struct sim_loads **loads);
	void (*stop)(struct sim_loads *loads);
	void (*collect)(struct sim_loads *loads);
	void (*forget)(struct sim_loads *loads);
};

/**
 * struct sim_loads - a load on all clients
 * @kind: the driver
 * @settings, @world: *kept*
 * @zipf: for patterns by Zipf's law
 * @trace: for the trace pattern: the settings' records, with a position of its own
 * @tally: results; sim_loads_tally() adds the counters of pollers and locks
 */
struct sim_loads {
	const struct sim_load_kind *kind;
	const struct sim_load_settings *settings;
	struct sim_world *world;
	struct sim_zipf zipf;
	struct sim_request_trace trace;
	struct sim_tally tally;
};

extern const struct sim_load_kind sim_verbs_load;
extern const struct sim_load_kind sim_engine_load;
extern const struct sim_load_kind sim_pingpong_load;
extern const struct sim_load_kind sim_mux_load;
extern const struct sim_load_kind sim_exchange_load;

/**
 * sim_loads_start() - start a load on all clients
 * @world: the machines
 * @load: *kept*; describes the load
 * @loads: receives the load, for sim_loads_stop()
 *
 * Return: 0, or -ENOMEM.
 */
int sim_loads_start(struct sim_world *world, const struct sim_load_settings *load,
		    struct sim_loads **loads);

/* Frees the load; the clock must not run afterwards. @loads may be NULL. */
void sim_loads_stop(struct sim_loads *loads);

/* Results since the start, or since the last sim_loads_forget(). */
const struct sim_tally *sim_loads_tally(struct sim_loads *loads);

/* Resets the results. */
void sim_loads_forget(struct sim_loads *loads);

/* Counts a completed request of @bytes that began at @begin_ps. */
void sim_loads_count(struct sim_loads *loads, uint64_t begin_ps, uint64_t bytes);

/*
 * Memory cost of a request of @bytes to its thread: sim_memory_in() before the submission,
 * sim_memory_out() at completion. @is_read: the request brings data back.
 */
void sim_memory_in(struct sim_thread *self, const struct sim_load_settings *load, uint64_t bytes,
		   bool is_read);
void sim_memory_out(struct sim_thread *self, const struct sim_load_settings *load, uint64_t bytes,
		    bool is_read);

/* Whether the requests of @load bring data back. */
static inline bool sim_load_is_read(const struct sim_load_settings *load)
{
	return load->op == SIM_OP_READ || load->op > SIM_OP_WRITE_IMM;
}

#endif
