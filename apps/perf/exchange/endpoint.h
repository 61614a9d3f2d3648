/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An end of a connection for messages of fixed size: an exchange, or a TCP connection. */
#ifndef WEIR_APPS_PERF_EXCHANGE_ENDPOINT_H
#define WEIR_APPS_PERF_EXCHANGE_ENDPOINT_H

#include <poll.h>

#include "apps/perf/exchange/exchange.h"

/**
 * struct exchange_endpoint - an end
 * @x: the exchange; NULL: @fd is the connection
 * @fd: the TCP connection, or -1
 * @size: bytes per message
 * @part: bytes received of an incomplete message
 * @is_over: the peer has finished
 */
struct exchange_endpoint {
	struct weir_exchange *x;
	int fd;
	uint64_t size, part;
	bool is_over;
};

/* A listener. */
struct exchange_listener {
	struct weir_exchange_listener *listener; /* NULL: @fd listens */
	int fd;
	char address[128];
};

/*
 * All functions return 0 or a negative errno. -ETIMEDOUT and -EAGAIN of a waiting function mean
 * that endpoint_gives_up().
 */

int endpoint_listen(struct exchange_listener *listener, enum carrier carrier,
		    const struct exchange_options *o, struct weir_error *error);
void endpoint_listen_end(struct exchange_listener *listener);

/* Waits for a peer. -ETIMEDOUT, -EAGAIN: no peer for a while. */
int endpoint_accept(struct exchange_endpoint *endpoint, struct exchange_listener *listener,
		    uint64_t size, struct weir_error *error);
int endpoint_connect(struct exchange_endpoint *endpoint, enum carrier carrier,
		     const struct exchange_options *o, const char *address,
		     struct weir_error *error);
void endpoint_close(struct exchange_endpoint *endpoint);

/* Whether the time after a stop request is over: waits for peers' messages end then. */
bool endpoint_gives_up(void);

/* Sends a message, and waits until it is in flight. */
int endpoint_put(struct exchange_endpoint *endpoint, const void *message);

/* Ends sending, and waits until the peer has taken everything. */
int endpoint_finish(struct exchange_endpoint *endpoint);

/* Takes and counts messages; waits if @wait. -EAGAIN: none. */
int endpoint_take(struct exchange_endpoint *endpoint, bool wait, uint64_t *messages);

/* Whether there may be more to take immediately; if not, @fd tells when. */
bool endpoint_is_due(struct exchange_endpoint *endpoint, struct pollfd *fd);

/* Adds the costs so far, except time. */
void endpoint_count(const struct exchange_endpoint *endpoint, struct exchange_tally *tally);

#endif
