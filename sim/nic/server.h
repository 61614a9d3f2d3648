/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Something that serves one after the other, in the order in which it was asked: a link, a bus,
 * a pipeline. It needs no events of its own: when it will be done is known when it is asked.
 */
#ifndef WEIR_SIM_NIC_SERVER_H
#define WEIR_SIM_NIC_SERVER_H

#include <stdint.h>

/**
 * struct sim_server - one server
 * @free_ps: when it will have served all that asked
 * @busy_ps: for how long it served, and will
 */
struct sim_server {
	uint64_t free_ps;
	uint64_t busy_ps;
};

/* Asks for @ps of its time, from @now_ps on at the earliest. Return: when that is over. */
static inline uint64_t sim_server_take(struct sim_server *server, uint64_t now_ps, uint64_t ps)
{
	if (server->free_ps < now_ps)
		server->free_ps = now_ps;
	server->free_ps += ps;
	server->busy_ps += ps;
	return server->free_ps;
}

#endif
