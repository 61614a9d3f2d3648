/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the threads of clients do: each keeps so many requests under way, over plain verbs
 * (verbsload.c) or over weir's core (weirload.c), and each request's time is taken. Or what it
 * does is round trips, by one path or another (tripload.c), messages on connections that share
 * queue pairs (muxload.c), or messages through slots that both ends know (exchangeload.c).
 */
#ifndef WEIR_SIM_LOAD_LOAD_H
#define WEIR_SIM_LOAD_LOAD_H

#include "core/poll/poll.h"
#include "sim/event/histogram.h"
#include "sim/load/pattern.h"
#include "sim/host/world.h"

/**
 * struct sim_tally - what has been done; begins as zeroes
 * @ops, @bytes: that completed
 * @latency_ps: each one's, from before it was submitted until its completion was seen
 * @empty_polls, @arms, @sleeps: of poll modes that may sleep
 * @contended, @takes: of locks that threads share
 * @window_waits: weir: how often the window was full
 * @peak_bytes: weir: the most that a client had in flight
 * @unloaded: trip: how many were
 * @looks: exchange: at the other end's bits
 * @send_work_ps, @take_work_ps: exchange: what the threads of senders, and of receivers, worked
 */
struct sim_tally {
	uint64_t ops, bytes;
	struct sim_histogram latency_ps;
	uint64_t empty_polls, arms, sleeps;
	uint64_t contended, takes;
	uint64_t window_waits, peak_bytes;
	uint64_t unloaded;
	uint64_t looks;
	uint64_t send_work_ps, take_work_ps;
};

struct sim_loads;

/**
 * struct sim_load_kind - how requests are made
 * @start, @stop, @collect, @forget: as the calls below; @stop takes what @start left half done
 *
 * The start gives a struct that begins with its struct sim_loads.
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
 * @kind: how its requests are made
 * @settings, @world: kept
 * @zipf: for the patterns, when they want it
 * @trace: for the patterns, when they want it: that of the settings, with a place in it of its own
 * @tally: what it has done; the counters that pollers and locks keep come at sim_loads_tally()
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
 * sim_loads_start() - begin one load on all clients
 * @world: the machines
 * @load: *kept*; what to do
 * @loads: receives it, for sim_loads_stop()
 *
 * Return: 0, or -ENOMEM.
 */
int sim_loads_start(struct sim_world *world, const struct sim_load_settings *load,
		    struct sim_loads **loads);

/* Frees it, when the clock runs no more; NULL is fine. */
void sim_loads_stop(struct sim_loads *loads);

/* What it has done since it began, or since it was told to forget. */
const struct sim_tally *sim_loads_tally(struct sim_loads *loads);

/* Counts from now on. */
void sim_loads_forget(struct sim_loads *loads);

/* A request of @bytes that began at @begin_ps has been seen to be done. */
void sim_loads_count(struct sim_loads *loads, uint64_t begin_ps, uint64_t bytes);

/*
 * What the memory of a request of @bytes costs its thread before it is submitted, and when it is
 * done; @is_read: it brings data back.
 */
void sim_memory_in(struct sim_thread *self, const struct sim_load_settings *load, uint64_t bytes,
		   bool is_read);
void sim_memory_out(struct sim_thread *self, const struct sim_load_settings *load, uint64_t bytes,
		    bool is_read);

/* Whether all requests of @load bring data back. */
static inline bool sim_load_is_read(const struct sim_load_settings *load)
{
	return load->op == SIM_OP_READ || load->op > SIM_OP_WRITE_IMM;
}

#endif
