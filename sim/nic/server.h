/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A resource that serves requests in order of arrival: a link, a bus, a pipeline. A server needs no
 * events, because the end of each service is known at its request.
 */
#ifndef WEIR_SIM_NIC_SERVER_H
#define WEIR_SIM_NIC_SERVER_H

#include <stdint.h>

/**
 * struct sim_server - one server
 * @free_ps: end of all services requested so far
 * @busy_ps: total service time requested so far
 */
struct sim_server {
	uint64_t free_ps;
	uint64_t busy_ps;
};

/* Requests @ps of service, not before @now_ps. Return: the end of the service. */
static inline uint64_t sim_server_take(struct sim_server *server, uint64_t now_ps, uint64_t ps)
{
	if (server->free_ps < now_ps)
		server->free_ps = now_ps;
	server->free_ps += ps;
	server->busy_ps += ps;
	return server->free_ps;
}

#endif
