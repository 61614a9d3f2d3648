/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor: state shared by its parts.
 *
 *	donor.c		public functions
 *	donor_thread.c	the thread: events and timers
 *	donor_listen.c	opening: address, device, PDs
 *	conn_accept.c	from a REQ to a connection, or to a REJ
 *	conn.c		one connection, to the end; unproven until a client owns it
 *	keepalive.c	probes of silent clients
 *	client.c	one proven client: channels, account
 *	keyring/	keys, their tenants and rights
 *	messages.c	a client's messages
 *	control.c	a client's calls about regions
 *	unload_rx.c	a client's unloaded writes
 *	reclaim.c	requests for memory back
 *	region_table.c	regions: names, holders, accounts
 *	lent.c		one region, over arena.c
 *	memory_worker.c	the thread that populates and zeroes memory
 *
 * Any thread may send messages. The donor's thread does all other work.
 */
#ifndef WEIR_LIB_DONOR_DONOR_H
#define WEIR_LIB_DONOR_DONOR_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/donor.h>
#include "core/unload/cpu_budget.h"
#include "core/poll/idle_time.h"
#include "core/base/list.h"
#include "core/link/noise.h"
#include "lib/base/counter.h"
#include "lib/base/rate_limit.h"
#include "lib/conn/listener.h"
#include "lib/conn/places.h"
#include "lib/donor/arena.h"
#include "lib/donor/region_table.h"

#define WEIR_STRANGER_LOGS 64

/* The clients of one or more keys; @has_keys: until its end, see weir_keyring_settle_tenant(). */
struct weir_donor_tenant {
	bool has_keys;
	unsigned int nr_clients;
	struct weir_rate_limit log_limit;
};

/**
 * struct weir_donor - see <weir/donor.h>
 * @device: the only device served; @reads_max: concurrent reads and atomics of one client
 * @identity: that clients may know it by; in memory for keys
 * @secrets: the keys, of struct weir_donor_secret
 * @tenants, @keys: @nr_tenants of each, at least one
 * @lock: guards @region_table, @timers and @arena
 * @conns: all connections
 * @places: of connections without a proof
 * @versions: of the protocol
 * @stranger_logs: by a hash of the address of who has proven no key
 * @awake: connections polled now; all others are armed
 * @idle_time: idle times between clients' messages
 * @cpu_budget: limit of CPU time for unloaded writes
 * @reap_due: some connection is dead
 * @clients: proven and alive
 * @timers: of weir_donor_after(), the earliest first
 */
struct weir_donor {
	struct weir_donor_options options;
	struct ibv_context *device;
	uint8_t reads_max;
	struct weir_listener listener;
	struct ibv_comp_channel *completions;
	int wake_fd;
	uint64_t incarnation;
	struct weir_noise_pair *identity;

	struct weir_list secrets;
	struct weir_donor_tenant *tenants;
	struct weir_region_key *keys;
	unsigned int nr_tenants;

	pthread_mutex_t lock;
	struct weir_arena arena;
	struct weir_memory_worker worker;
	struct weir_region_table region_table;
	struct weir_list timers;

	pthread_t thread;
	bool stop;
	struct weir_list conns;
	struct weir_list awake;
	struct weir_places places;
	struct wire_handshake_versions versions;
	struct weir_rate_limit stranger_logs[WEIR_STRANGER_LOGS];
	struct weir_idle_time idle_time;
	struct weir_cpu_budget cpu_budget;
	bool reap_due;
	struct weir_list clients;
	uint64_t client_ids;

	uint64_t nr_clients, joins, rejects, messages;
	uint64_t unloaded, unload_refused, unload_pauses;
};

/* Sets up address, device, PDs and listener: all steps that depend on the environment. */
int weir_donor_listen(struct weir_donor *donor, struct weir_error *error);
void weir_donor_unlisten(struct weir_donor *donor);
/* Whether clients need a key; all keys may come later. */
static inline bool weir_donor_has_keys(const struct weir_donor *donor)
{
	return donor->options.nr_keys || donor->options.tenants_max;
}

/* Allocates a tenant's PDs, unless it has them. Return: 0; -ENOMEM. */
int weir_donor_tenant_open(struct weir_donor *donor, unsigned int tenant);

/* The donor's thread; ends within weir_donor_stop(). */
int weir_donor_start(struct weir_donor *donor, struct weir_error *error);
void weir_donor_stop(struct weir_donor *donor);

/* Repeats a reclaim to a returned client, which may have missed it. Context: the donor's thread. */
void weir_donor_reclaim_repeat(struct weir_peer *client);

/* One line to the application's on_log. */
void weir_donor_log(struct weir_donor *donor, enum weir_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * weir_donor_log_of() - weir_donor_log(), for a line that a peer causes, within a rate
 * @name: the peer's address
 * @tenant: the key that the peer has proven, or NULL
 *
 * Context: the donor's thread.
 */
void weir_donor_log_of(struct weir_donor *donor, struct weir_donor_tenant *tenant, const char *name,
		       enum weir_log_level level, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
