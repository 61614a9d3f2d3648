/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a tenant and weir share say to each other, over a Unix socket that keeps messages apart
 * (SOCK_SEQPACKET) and in memory that both map. A tenant asks, in any order, and each of its
 * questions is answered once, under its number; descriptors come along with answers. The
 * daemon believes nothing of what a tenant says or writes; a tenant believes the daemon.
 *
 * A connection's bytes and doors are in a chunk (lib/mux/local/ring_slab.c). That there is news of a
 * connection is said on the board: a bit for each, and a bit for 64 of them; and if the
 * daemon's usher sleeps, by a byte to its bell, which is a socket of its own.
 */
#ifndef WEIR_LIB_MUX_PROXY_IPC_H
#define WEIR_LIB_MUX_PROXY_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/mux.h>

#define WEIR_SHARE_SOCKET "/run/weir/share.sock"
#define WEIR_SHARE_VERSION 6
#define WEIR_SHARE_CONNS_MAX 4096 /* of a tenant */
#define WEIR_SHARE_OFFERS_MAX 64
#define WEIR_SHARE_FDS_MAX 2 /* with an answer */
#define WEIR_SHARE_HELLO_S 30 /* within which both HELLO and its answer come */

enum weir_share_what {
	WEIR_SHARE_HELLO = 1, /* @value the version; answered with the board and the bell */
	WEIR_SHARE_CONNECT, /* @peer, @service, @class_nr, @weight, @length of its rings; a
			     * connection */
	WEIR_SHARE_LISTEN, /* @service, @value the backlog; an offer, and its descriptor */
	WEIR_SHARE_ACCEPT, /* @nr an offer; a connection */
	WEIR_SHARE_UNLISTEN, /* @nr an offer */
	WEIR_SHARE_CLOSE, /* @nr a connection */
	WEIR_SHARE_FD, /* @nr a connection, @value 1: of its ring out; a descriptor */
	WEIR_SHARE_CHUNK, /* @nr a chunk; its memory, @ring_bytes a ring */
	WEIR_SHARE_DRAIN, /* answered when what was closed has been sent */
	WEIR_SHARE_INFO, /* of the daemon's mux */
	WEIR_SHARE_TENANT, /* the first whose number is above @nr; -ENOENT there is none */
	WEIR_SHARE_REGION, /* @length bytes; a region, and its memory */
	WEIR_SHARE_UNREGION, /* @nr a region */
	WEIR_SHARE_GRANT, /* on connection @nr, of region @value @length from @at, rights @weight */
	WEIR_SHARE_WITHDRAW, /* on connection @nr, handle @value */
	WEIR_SHARE_FLOW, /* of tenant @nr the first connection from @value on; -ENOENT */
	WEIR_SHARE_WEIGH, /* connection @nr, @weight */
};

/* What may be asked without being a tenant, that is without HELLO: by who looks. */
static inline bool weir_share_is_look(uint32_t what)
{
	return what == WEIR_SHARE_TENANT || what == WEIR_SHARE_FLOW;
}

#define WEIR_SHARE_CLASS_DEFAULT UINT32_MAX

struct weir_share_ask {
	uint32_t what, number, nr, service, value, class_nr, weight;
	uint64_t at, length;
	char peer[256];
};

/*
 * A tenant as weir top shows it. Texts are printable, and end. What it writes by handles is sent,
 * what it reads so received; of what others do so with its memory nothing is counted here.
 */
struct weir_share_tenant {
	uint32_t nr, pid, uid, weight, connections, connections_max;
	uint64_t party; /* @weight is of all of it */
	uint64_t memory_bytes, bytes_sent, bytes_received, rate_bytes_s;
	uint64_t turns, waited_ns; /* of the scheduler's, and for them, all together */
	char name[64], cgroup[64]; /* the end of it; "": the party is a user's */
};

/* A connection of a tenant's. What it says is queued may be more than can be, or wrong. */
struct weir_share_flow {
	uint32_t nr, class_nr, weight;
	uint64_t bytes_sent, bytes_received, queued_bytes;
	char peer[64]; /* the other host's mux */
};

struct weir_share_answer {
	uint32_t number;
	int32_t status;
	uint32_t nr, chunk, slot, ring_bytes;
	union {
		char text[sizeof(((struct weir_error *)0)->text)]; /* with a bad status */
		struct weir_mux_info info;
		struct weir_share_tenant tenant;
		struct weir_share_flow flow;
	};
};

/**
 * struct weir_share_board - where there is news
 * @asleep: 1: whoever puts something on the board rings the bell, and makes it 0
 * @groups: bit i: something is in news[i]
 * @news: bit j of news[i]: of connection 64 i + j
 */
struct weir_share_board {
	_Alignas(64) uint32_t asleep;
	_Alignas(64) uint64_t groups;
	uint64_t news[WEIR_SHARE_CONNS_MAX / 64];
};

/*
 * One message with descriptors. weir_share_send(): -errno. weir_share_recv(): all of @length, or
 * -ECONNRESET, or -ETIMEDOUT; @fds receives WEIR_SHARE_FDS_MAX, -1 where none came; NULL: none is
 * wanted.
 */
int weir_share_send(int socket, const void *data, size_t length, const int *fds, unsigned int nr);
int weir_share_recv(int socket, void *data, size_t length, int *fds);
/* How long weir_share_recv() waits from now on; 0: for ever, as at first. */
void weir_share_patience(int socket, unsigned int seconds);

/* Connects to the daemon's socket. Return: it, or a negative errno. */
int weir_share_dial(const char *path, struct weir_error *error);

#endif
