/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mux whose hub is weir share's, as its tenant has it. One thread, the reader, hears the
 * daemon: answers, and its end; it sleeps otherwise. All else is done by whoever calls.
 */
#ifndef WEIR_LIB_MUX_PROXY_PROXY_H
#define WEIR_LIB_MUX_PROXY_PROXY_H

#include <pthread.h>

#include "core/base/list.h"
#include "lib/mux/handle.h"
#include "lib/mux/proxy/ipc.h"

/* A slab's memory, as mapped here. */
struct weir_mux_proxy_slab {
	struct weir_list link;
	uint32_t number, ring_bytes;
	char *base;
	size_t length;
};

/**
 * struct weir_mux_proxy - a mux
 * @fds: held while a descriptor is asked for: each is given once
 * @lock: of all that follows
 * @answered: broadcast when an answer has come, or the daemon is lost
 * @calls: that wait for their answer
 * @conns: all that there are
 * @slabs: stay until the end
 * @is_lost: the daemon is gone
 * @board, @bell: how it hears of news; any thread
 */
struct weir_mux_proxy {
	struct weir_mux mux;
	int socket, bell;
	pthread_t reader;
	pthread_mutex_t fds, lock;
	pthread_cond_t answered;
	struct weir_list calls, conns, offers, slabs;
	uint32_t number;
	bool is_lost;
	struct weir_mux_ipc_doorbells *board;
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

/* tenant.c: what a tenant does; and it is gone. */
extern const struct weir_mux_ops weir_mux_proxy_ops;
void weir_mux_proxy_free(struct weir_mux_proxy *tenant);

/*
 * mapped.c: memory of the daemon's, whose descriptor is closed. weir_mux_proxy_slab(): found, or
 * asked for, as weir_mux_proxy_call(). weir_mux_proxy_unmap(): all of them, once nobody uses them.
 */
int weir_mux_proxy_map(int fd, size_t length, char **base);
int weir_mux_proxy_slab(struct weir_mux_proxy *tenant, uint32_t number,
			struct weir_mux_proxy_slab **slab);
void weir_mux_proxy_unmap(struct weir_mux_proxy *tenant);

/* join.c: be a tenant of the daemon at @path. As weir_mux_open(). */
int weir_mux_proxy_open(const char *path, struct weir_mux **mux, struct weir_error *error);

/* call.c: the reader, and asking. */
void *weir_mux_proxy_reader_run(void *tenant);

/**
 * weir_mux_proxy_call() - ask, and wait for the answer
 * @ask: all but its number
 * @answer: receives it
 * @fds: receives WEIR_MUX_IPC_FDS_MAX descriptors; NULL: none is wanted
 *
 * Context: any thread, without the lock.
 * Return: the answer's status; -ECONNRESET the daemon is gone; -EMFILE there was no room for its
 * descriptor.
 */
int weir_mux_proxy_call(struct weir_mux_proxy *tenant, struct weir_mux_ipc_request *ask,
			struct weir_mux_ipc_reply *answer, int *fds);

#endif
