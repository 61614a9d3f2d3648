/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a tenant and weir share say to each other, over a Unix socket that keeps messages apart
 * (SOCK_SEQPACKET) and in memory that both map. A tenant asks, in any order, and each of its
 * questions is answered once, under its number; descriptors come along with answers. The
 * daemon believes nothing of what a tenant says or writes; a tenant believes the daemon.
 *
 * A connection's bytes and doors are in a slab (lib/mux/local/ring_slab.c). That there is news of a
 * connection is said on the board: a bit for each, and a bit for 64 of them; and if the
 * daemon's usher sleeps, by a byte to its bell, which is a socket of its own.
 */
#ifndef WEIR_LIB_MUX_PROXY_IPC_H
#define WEIR_LIB_MUX_PROXY_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/mux.h>

#define WEIR_MUX_IPC_SOCKET "/run/weir/share.sock"
#define WEIR_MUX_IPC_VERSION 6
#define WEIR_MUX_IPC_CONNS_MAX 4096 /* of a tenant */
#define WEIR_MUX_IPC_SERVICES_MAX 64
#define WEIR_MUX_IPC_FDS_MAX 2 /* with an answer */
#define WEIR_MUX_IPC_HELLO_S 30 /* within which both HELLO and its answer come */

enum weir_mux_ipc_op {
	WEIR_MUX_IPC_HELLO = 1, /* @value the version; answered with the board and the bell */
	WEIR_MUX_IPC_CONNECT, /* @peer, @service, @class_nr, @weight, @length of its rings; a
			     * connection */
	WEIR_MUX_IPC_LISTEN, /* @service, @value the backlog; an offer, and its descriptor */
	WEIR_MUX_IPC_ACCEPT, /* @nr an offer; a connection */
	WEIR_MUX_IPC_UNLISTEN, /* @nr an offer */
	WEIR_MUX_IPC_CLOSE, /* @nr a connection */
	WEIR_MUX_IPC_FD, /* @nr a connection, @value 1: of its ring out; a descriptor */
	WEIR_MUX_IPC_RING_SLAB, /* @nr a slab; its memory, @ring_bytes a ring */
	WEIR_MUX_IPC_DRAIN, /* answered when what was closed has been sent */
	WEIR_MUX_IPC_INFO, /* of the daemon's mux */
	WEIR_MUX_IPC_TENANT, /* the first whose number is above @nr; -ENOENT there is none */
	WEIR_MUX_IPC_REGION, /* @length bytes; a region, and its memory */
	WEIR_MUX_IPC_UNREGION, /* @nr a region */
	WEIR_MUX_IPC_GRANT, /* on connection @nr, of region @value @length from @at, rights @weight */
	WEIR_MUX_IPC_WITHDRAW, /* on connection @nr, handle @value */
	WEIR_MUX_IPC_FLOW, /* of tenant @nr the first connection from @value on; -ENOENT */
	WEIR_MUX_IPC_WEIGH, /* connection @nr, @weight */
};

/* What may be asked without being a tenant, that is without HELLO: by who looks. */
static inline bool weir_mux_ipc_is_query(uint32_t what)
{
	return what == WEIR_MUX_IPC_TENANT || what == WEIR_MUX_IPC_FLOW;
}

#define WEIR_MUX_IPC_CLASS_DEFAULT UINT32_MAX

struct weir_mux_ipc_request {
	uint32_t what, number, nr, service, value, class_nr, weight;
	uint64_t at, length;
	char peer[256];
};

/*
 * A tenant as weir top shows it. Texts are printable, and end. What it writes by handles is sent,
 * what it reads so received; of what others do so with its memory nothing is counted here.
 */
struct weir_mux_ipc_tenant {
	uint32_t nr, pid, uid, weight, connections, connections_max;
	uint64_t party; /* @weight is of all of it */
	uint64_t memory_bytes, bytes_sent, bytes_received, rate_bytes_s;
	uint64_t turns, waited_ns; /* of the scheduler's, and for them, all together */
	char name[64], cgroup[64]; /* the end of it; "": the party is a user's */
};

/* A connection of a tenant's. What it says is queued may be more than can be, or wrong. */
struct weir_mux_ipc_flow {
	uint32_t nr, class_nr, weight;
	uint64_t bytes_sent, bytes_received, queued_bytes;
	char peer[64]; /* the other host's mux */
};

struct weir_mux_ipc_reply {
	uint32_t number;
	int32_t status;
	uint32_t nr, slab, slot, ring_bytes;
	union {
		char text[sizeof(((struct weir_error *)0)->text)]; /* with a bad status */
		struct weir_mux_info info;
		struct weir_mux_ipc_tenant tenant;
		struct weir_mux_ipc_flow flow;
	};
};

/**
 * struct weir_mux_ipc_doorbells - where there is news
 * @asleep: 1: whoever puts something on the board rings the bell, and makes it 0
 * @groups: bit i: something is in news[i]
 * @news: bit j of news[i]: of connection 64 i + j
 */
struct weir_mux_ipc_doorbells {
	_Alignas(64) uint32_t asleep;
	_Alignas(64) uint64_t groups;
	uint64_t news[WEIR_MUX_IPC_CONNS_MAX / 64];
};

/*
 * One message with descriptors. weir_mux_ipc_send(): -errno. weir_mux_ipc_recv(): all of @length, or
 * -ECONNRESET, or -ETIMEDOUT; @fds receives WEIR_MUX_IPC_FDS_MAX, -1 where none came; NULL: none is
 * wanted.
 */
int weir_mux_ipc_send(int socket, const void *data, size_t length, const int *fds, unsigned int nr);
int weir_mux_ipc_recv(int socket, void *data, size_t length, int *fds);
/* How long weir_mux_ipc_recv() waits from now on; 0: for ever, as at first. */
void weir_mux_ipc_set_timeout(int socket, unsigned int seconds);

/* Connects to the daemon's socket. Return: it, or a negative errno. */
int weir_mux_ipc_connect(const char *path, struct weir_error *error);

#endif
