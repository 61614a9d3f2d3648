/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What carries messages of one size between two processes: an exchange, or a TCP connection. */
#ifndef WEIR_APPS_PERF_EXCHANGE_ENDPOINT_H
#define WEIR_APPS_PERF_EXCHANGE_ENDPOINT_H

#include <poll.h>

#include "apps/perf/exchange/exchange.h"

/**
 * struct line - one end
 * @x: NULL: @fd is the connection
 * @size: of a message; @part: bytes of the next one that have come
 * @is_over: nothing more will come
 */
struct line {
	struct weir_exchange *x;
	int fd;
	uint64_t size, part;
	bool is_over;
};

/* Where peers come from. */
struct door {
	struct weir_exchange_listener *listener; /* NULL: @fd is */
	int fd;
	char address[128];
};

/*
 * All of these return 0, or a negative errno; -ETIMEDOUT, -EAGAIN: line_gives_up(), and it waited.
 */

int door_open(struct door *door, enum carrier carrier, const struct exchange_options *o,
	      struct weir_error *error);
void door_close(struct door *door);

/* Waits for a peer. -ETIMEDOUT, -EAGAIN: none has come for a while. */
int line_accept(struct line *line, struct door *door, uint64_t size, struct weir_error *error);
int line_connect(struct line *line, enum carrier carrier, const struct exchange_options *o,
		 const char *address, struct weir_error *error);
void line_close(struct line *line);

/*
 * A while after it was asked to stop: who has not taken or sent his part by then is not waited for.
 */
bool line_gives_up(void);

/* Waits until it is on its way. */
int line_put(struct line *line, const void *message);

/* Nothing more will be put. Waits until all was taken. */
int line_finish(struct line *line);

/* Takes what has come, and counts it; waits if @wait. -EAGAIN: nothing. */
int line_take(struct line *line, bool wait, uint64_t *messages);

/* Whether there may be more to take at once; if not, @fd tells when. */
bool line_is_due(struct line *line, struct pollfd *fd);

/* What it has cost so far, but for the time. */
void line_count(const struct line *line, struct tally *tally);

#endif
