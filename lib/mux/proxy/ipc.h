/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protocol between a tenant and weir share, over a SOCK_SEQPACKET Unix socket and shared memory.
 * A tenant may have several requests outstanding; each gets one reply with the request's number,
 * and descriptors come with replies. The daemon trusts nothing that a tenant says or writes; a
 * tenant trusts the daemon.
 *
 * A connection's rings and control block lie in a slab (lib/mux/local/ring_slab.c). A tenant
 * announces news of a connection on the doorbell page: a bit per connection, and a bit per group
 * of 64. If the daemon's doorbell poller sleeps, the tenant signals the bell, an eventfd, through
 * which no descriptor can pass.
 */
#ifndef WEIR_LIB_MUX_PROXY_IPC_H
#define WEIR_LIB_MUX_PROXY_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/mux.h>

#define WEIR_MUX_IPC_SOCKET "/run/weir/share.sock"
#define WEIR_MUX_IPC_VERSION 8
#define WEIR_MUX_IPC_CONNS_MAX 4096 /* per tenant */
#define WEIR_MUX_IPC_SERVICES_MAX 64
#define WEIR_MUX_IPC_FDS_MAX 2 /* per reply */
#define WEIR_MUX_IPC_HELLO_S 30 /* limit for HELLO and its reply */

enum weir_mux_ipc_op {
	WEIR_MUX_IPC_HELLO = 1, /* @value: version; replies with the doorbell page and the bell */
	WEIR_MUX_IPC_CONNECT, /* @peer, @service, @class_nr, @weight, ring @length; a connection */
	WEIR_MUX_IPC_LISTEN, /* @service, @value: backlog; gives a service and its descriptor */
	WEIR_MUX_IPC_ACCEPT, /* @nr: a service; gives a connection */
	WEIR_MUX_IPC_UNLISTEN, /* @nr: a service */
	WEIR_MUX_IPC_CLOSE, /* @nr: a connection */
	WEIR_MUX_IPC_FD, /* @nr: a connection, @value 1: of its ring out; gives a descriptor */
	WEIR_MUX_IPC_RING_SLAB, /* @nr: a slab; gives its memory, @ring_bytes per ring */
	WEIR_MUX_IPC_DRAIN, /* replied to when closed connections have sent all */
	WEIR_MUX_IPC_INFO, /* about the daemon's mux */
	WEIR_MUX_IPC_TENANT, /* the first tenant with a number above @nr, or -ENOENT */
	WEIR_MUX_IPC_REGION, /* @length in bytes; gives a region and its memory */
	WEIR_MUX_IPC_UNREGION, /* @nr: a region */
	WEIR_MUX_IPC_GRANT, /* connection @nr, region @value, @length from @at, rights @weight */
	WEIR_MUX_IPC_WITHDRAW, /* connection @nr, handle @value */
	WEIR_MUX_IPC_FLOW, /* tenant @nr's first connection from @value on, or -ENOENT */
	WEIR_MUX_IPC_WEIGH, /* connection @nr, @weight */
	WEIR_MUX_IPC_CLASS, /* tenant @nr's class @value; -ENOENT: there is no such class */
};

/* Requests allowed without HELLO, for observers. */
static inline bool weir_mux_ipc_is_query(uint32_t what)
{
	return what == WEIR_MUX_IPC_TENANT || what == WEIR_MUX_IPC_FLOW ||
	       what == WEIR_MUX_IPC_CLASS;
}

#define WEIR_MUX_IPC_CLASS_DEFAULT UINT32_MAX

struct weir_mux_ipc_request {
	uint32_t what, number, nr, service, value, class_nr, weight;
	uint64_t at, length;
	char peer[256];
};

/*
 * A tenant as weir top shows it. Texts are printable and terminated. RDMA writes count as sent,
 * RDMA reads as received, for the issuing tenant only.
 */
struct weir_mux_ipc_tenant {
	uint32_t nr, pid, uid, weight, connections, connections_max;
	uint64_t group_id; /* @weight is the whole party's */
	uint64_t memory_bytes, bytes_sent, bytes_received, rate_bytes_s;
	uint64_t turns, waited_ns; /* scheduler turns, and the time waited for them */
	char name[64], cgroup[64]; /* last part of the path; "": the party is a user */
};

/* A connection of a tenant. @queued_bytes comes from the tenant and may be wrong. */
struct weir_mux_ipc_flow {
	uint32_t nr, class_nr, weight;
	uint64_t bytes_sent, bytes_received, queued_bytes;
	char peer[64]; /* the other host's mux */
};

/* Traffic of a tenant's connections in one class, those of the past included. */
struct weir_mux_ipc_class {
	uint64_t turns, waited_ns, bytes_sent, bytes_received;
	uint64_t connections; /* open now */
};

struct weir_mux_ipc_reply {
	uint32_t number;
	int32_t status;
	uint32_t nr, slab, slot, ring_bytes;
	union {
		char text[sizeof(((struct weir_error *)0)->text)]; /* for an error status */
		struct weir_mux_info info;
		struct weir_mux_ipc_tenant tenant;
		struct weir_mux_ipc_flow flow;
		struct weir_mux_ipc_class of_class;
	};
};

/**
 * struct weir_mux_ipc_doorbells - the doorbell page: connections with news
 * @asleep: 1: the next tenant thread with news clears it and rings the bell
 * @groups: bit i: some bit of news[i] is set
 * @news: bit j of news[i]: connection 64 i + j
 */
struct weir_mux_ipc_doorbells {
	_Alignas(64) uint32_t asleep;
	_Alignas(64) uint64_t groups;
	uint64_t news[WEIR_MUX_IPC_CONNS_MAX / 64];
};

/*
 * Send or receive a message with descriptors. @fds: weir_mux_ipc_recv() fills
 * WEIR_MUX_IPC_FDS_MAX, with -1 for missing ones; NULL: closes all.
 * Return: 0; a negative errno; weir_mux_ipc_recv(): -ETIMEDOUT, or -ECONNRESET unless all
 * @length bytes came.
 */
int weir_mux_ipc_send(int socket, const void *data, size_t length, const int *fds, unsigned int nr);
int weir_mux_ipc_recv(int socket, void *data, size_t length, int *fds);
/* Sets the timeout of weir_mux_ipc_recv(); 0: for ever, the default. */
void weir_mux_ipc_set_timeout(int socket, unsigned int seconds);

/* Connects to the daemon's socket. Return: the descriptor, or a negative errno. */
int weir_mux_ipc_connect(const char *path, struct weir_error *error);

#endif
