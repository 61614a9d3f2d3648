/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What carries messages of one size between two processes: an exchange, or a TCP connection. */
#ifndef WEIR_APPS_PERF_EXCHANGE_ENDPOINT_H
#define WEIR_APPS_PERF_EXCHANGE_ENDPOINT_H

#include <poll.h>

#include "apps/perf/exchange/exchange.h"

/**
 * struct exchange_end - one end
 * @x: NULL: @fd is the connection
 * @size: of a message; @part: bytes of the next one that have come
 * @is_over: nothing more will come
 */
struct exchange_end {
	struct weir_exchange *x;
	int fd;
	uint64_t size, part;
	bool is_over;
};

/* Where peers come from. */
struct exchange_door {
	struct weir_exchange_listener *listener; /* NULL: @fd is */
	int fd;
	char address[128];
};

/*
 * All of these return 0, or a negative errno; -ETIMEDOUT, -EAGAIN: endpoint_gives_up(), and it waited.
 */

int endpoint_listen(struct exchange_door *door, enum carrier carrier,
		    const struct exchange_options *o, struct weir_error *error);
void endpoint_listen_end(struct exchange_door *door);

/* Waits for a peer. -ETIMEDOUT, -EAGAIN: none has come for a while. */
int endpoint_accept(struct exchange_end *line, struct exchange_door *door, uint64_t size,
		    struct weir_error *error);
int endpoint_connect(struct exchange_end *line, enum carrier carrier,
		     const struct exchange_options *o, const char *address,
		     struct weir_error *error);
void endpoint_close(struct exchange_end *line);

/*
 * A while after it was asked to stop: who has not taken or sent his part by then is not waited for.
 */
bool endpoint_gives_up(void);

/* Waits until it is on its way. */
int endpoint_put(struct exchange_end *line, const void *message);

/* Nothing more will be put. Waits until all was taken. */
int endpoint_finish(struct exchange_end *line);

/* Takes what has come, and counts it; waits if @wait. -EAGAIN: nothing. */
int endpoint_take(struct exchange_end *line, bool wait, uint64_t *messages);

/* Whether there may be more to take at once; if not, @fd tells when. */
bool endpoint_is_due(struct exchange_end *line, struct pollfd *fd);

/* What it has cost so far, but for the time. */
void endpoint_count(const struct exchange_end *line, struct exchange_tally *tally);

#endif
