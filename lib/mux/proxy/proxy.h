/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mux of a tenant: weir share does the work. A single thread, the reader, receives replies
 * and notices the daemon's end. Callers' threads do all else.
 */
#ifndef WEIR_LIB_MUX_PROXY_PROXY_H
#define WEIR_LIB_MUX_PROXY_PROXY_H

#include <pthread.h>

#include "core/base/list.h"
#include "lib/mux/handle.h"
#include "lib/mux/proxy/ipc.h"

/* A slab's memory as mapped here. */
struct weir_mux_proxy_slab {
	struct weir_list link;
	uint32_t number, ring_bytes;
	char *base;
	size_t length;
};

/**
 * struct weir_mux_proxy - a mux
 * @fds: held while a descriptor is requested: each is given once
 * @lock: guards the fields that follow
 * @answered: broadcast when a reply has come or the daemon is lost
 * @calls: requests without a reply
 * @conns: all connections
 * @slabs: kept until the mux closes
 * @is_lost: the daemon is gone
 * @doorbells, @wakeup: doorbells to the daemon; any thread
 */
struct weir_mux_proxy {
	struct weir_mux mux;
	int socket, wakeup;
	pthread_t reader;
	pthread_mutex_t fds, lock;
	pthread_cond_t answered;
	struct weir_list calls, conns, listeners, slabs;
	uint32_t number;
	bool is_lost;
	struct weir_mux_ipc_doorbells *doorbells;
};

struct weir_mux_proxy_conn {
	struct weir_mux_conn app;
	struct weir_list link;
	struct weir_mux_proxy *tenant;
	uint32_t nr;
};

struct weir_mux_proxy_listener {
	struct weir_mux_listener listener;
	struct weir_list link;
	struct weir_mux_proxy *tenant;
	uint32_t nr;
	int fd;
};

/* proxy.c: operations of a tenant's mux. */
extern const struct weir_mux_ops weir_mux_proxy_ops;
void weir_mux_proxy_free(struct weir_mux_proxy *tenant);

/* map.c: maps memory of the daemon and closes the descriptor. */
int weir_mux_proxy_map(int fd, size_t length, char **base);
/* Finds a slab or requests it, as weir_mux_proxy_call(). */
int weir_mux_proxy_slab(struct weir_mux_proxy *tenant, uint32_t number,
			struct weir_mux_proxy_slab **slab);
/* Unmaps all slabs; no thread uses them. */
void weir_mux_proxy_unmap(struct weir_mux_proxy *tenant);

/* open.c: joins the daemon at @path as a tenant. As weir_mux_open(). */
int weir_mux_proxy_open(const char *path, struct weir_mux **mux, struct weir_error *error);

/* call.c: the reader thread. */
void *weir_mux_proxy_reader_run(void *tenant);

/**
 * weir_mux_proxy_call() - send a request and wait for the reply
 * @ask: all but its number
 * @answer: receives the reply
 * @fds: receives WEIR_MUX_IPC_FDS_MAX descriptors; NULL: none wanted
 *
 * Context: any thread, without the lock.
 * Return: the reply's status; -ECONNRESET the daemon is gone; -EMFILE no room for the
 *	descriptor.
 */
int weir_mux_proxy_call(struct weir_mux_proxy *tenant, struct weir_mux_ipc_request *ask,
			struct weir_mux_ipc_reply *answer, int *fds);

#endif
