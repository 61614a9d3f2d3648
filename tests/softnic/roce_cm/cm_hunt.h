/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The world of the connection manager's hunt: two hosts, their programs, a network and a stranger.
 */
#ifndef WEIR_TESTS_SOFTNIC_ROCE_CM_CM_HUNT_H
#define WEIR_TESTS_SOFTNIC_ROCE_CM_CM_HUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/event/rng.h"
#include "softnic/roce_cm/cm.h"

enum {
	HOSTS = 2,
	STRANGER = HOSTS,
	CONNS = 6,
	CALLS_MAX = 256, /* connections asked for in one run */
	LETTERS = 512, /* in flight */
	PLANS_MAX = 64, /* of the programs */
	QPNS = 64, /* of a host; few, so that they are used again */
	TIMEOUT = 10,
	WAIT = 11,
	RETRIES = 4,
};

#define TIMEOUT_NS (4096ull << TIMEOUT)

/**
 * struct call - what has happened to a connection, or to a question for a service's queue pair
 * @may_end: a program or a host did something that ends the connection
 * @is_rejected: by a program
 * @is_confirmed: by the client's program
 * @is_crowded: its request came to a full table
 * @is_second_use: its queue pair number had another use before
 */
struct call {
	uint32_t requests, live_servers;
	bool is_sidr, may_end, is_rejected, is_confirmed, is_crowded, is_second_use;
};

struct cm_hunt_letter {
	uint64_t due_ns;
	uint8_t bytes[ROCE_MAD_BYTES];
	uint8_t from, to;
	bool is_used;
};

/* A connection in the eyes of a host's program. */
struct view {
	struct roce_cm_conn *conn;
	uint32_t call;
	bool is_client, is_established, has_reply, has_ended;
};

struct planned_act {
	uint64_t due_ns;
	uint32_t host, view, incarnation;
	bool is_used;
};

struct cm_hunt_host {
	struct roce_cm cm;
	struct roce_cm_conn conns[CONNS];
	struct view views[CONNS];
	uint32_t incarnation;
	bool has_used[QPNS + 1];
};

struct cm_hunt {
	struct sim_rng rng;
	uint64_t seed, now_ns, faithful_since_ns;
	bool is_faithful;
	uint32_t loss, repeat, stranger; /* per mille */
	struct cm_hunt_host hosts[HOSTS];
	struct cm_hunt_letter letters[LETTERS];
	struct planned_act plans[PLANS_MAX];
	struct call calls[CALLS_MAX];
	uint32_t nr_calls;
	bool is_broken;
};

uint32_t draw(struct cm_hunt *h, uint32_t below);
bool chance(struct cm_hunt *h, uint32_t per_mille);

__attribute__((format(printf, 3, 4))) void expect(struct cm_hunt *h, bool holds,
						  const char *promise, ...);

/* cm_hunt_net.c */
/* From each host, and from the stranger. */
extern const struct roce_cm_path paths[HOSTS + 1];

/* The call that a message with private data belongs to. */
uint32_t call_of(const struct roce_mad *m);
void set_call(struct roce_mad *m, uint32_t call);

/* True while a message may arrive that names @qpn as one of @host. */
bool is_on_the_way(const struct cm_hunt *h, uint32_t host, uint32_t qpn);
void send_all(struct cm_hunt *h, uint8_t host);
void arrive(struct cm_hunt *h, struct cm_hunt_letter *letter);

/* cm_hunt_program.c */
void connect_one(struct cm_hunt *h, uint32_t host);
void act(struct cm_hunt *h, const struct planned_act *plan);
void hear(struct cm_hunt *h, uint32_t host);

#endif
