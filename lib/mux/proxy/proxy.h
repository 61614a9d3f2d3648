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

/* A chunk's memory, as mapped here. */
struct weir_tenant_chunk {
	struct weir_list link;
	uint32_t number, ring_bytes;
	char *base;
	size_t length;
};

/**
 * struct weir_tenant - a mux
 * @fds: held while a descriptor is asked for: each is given once
 * @lock: of all that follows
 * @answered: broadcast when an answer has come, or the daemon is lost
 * @calls: that wait for their answer
 * @conns: all that there are
 * @chunks: stay until the end
 * @is_lost: the daemon is gone
 * @board, @bell: how it hears of news; any thread
 */
struct weir_tenant {
	struct weir_mux mux;
	int socket, bell;
	pthread_t reader;
	pthread_mutex_t fds, lock;
	pthread_cond_t answered;
	struct weir_list calls, conns, offers, chunks;
	uint32_t number;
	bool is_lost;
	struct weir_share_board *board;
};

struct weir_tenant_conn {
	struct weir_conn app;
	struct weir_list link;
	struct weir_tenant *tenant;
	uint32_t nr;
};

struct weir_tenant_offer {
	struct weir_listener listener;
	struct weir_list link;
	struct weir_tenant *tenant;
	uint32_t nr;
	int fd;
};

/* tenant.c: what a tenant does; and it is gone. */
extern const struct weir_mux_host weir_tenant_host;
void weir_tenant_free(struct weir_tenant *tenant);

/*
 * mapped.c: memory of the daemon's, whose descriptor is closed. weir_tenant_chunk(): found, or
 * asked for, as weir_tenant_ask(). weir_tenant_unmap(): all of them, once nobody uses them.
 */
int weir_tenant_map(int fd, size_t length, char **base);
int weir_tenant_chunk(struct weir_tenant *tenant, uint32_t number,
		      struct weir_tenant_chunk **chunk);
void weir_tenant_unmap(struct weir_tenant *tenant);

/* join.c: be a tenant of the daemon at @path. As weir_mux_open(). */
int weir_tenant_open(const char *path, struct weir_mux **mux, struct weir_error *error);

/* call.c: the reader, and asking. */
void *weir_tenant_reader(void *tenant);

/**
 * weir_tenant_ask() - ask, and wait for the answer
 * @ask: all but its number
 * @answer: receives it
 * @fds: receives WEIR_SHARE_FDS_MAX descriptors; NULL: none is wanted
 *
 * Context: any thread, without the lock.
 * Return: the answer's status; -ECONNRESET the daemon is gone; -EMFILE there was no room for its
 * descriptor.
 */
int weir_tenant_ask(struct weir_tenant *tenant, struct weir_share_ask *ask,
		    struct weir_share_answer *answer, int *fds);

#endif
