/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/exchange/endpoint.h"
#include "apps/common/stop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TAKEN_MAX 64
#define READ_BYTES 262144
#define ACCEPT_NS 200000000ull
#define MEET_NS 60000000000ull /* many processes may have to connect on few CPUs */
#define SLICE_NS 100000000ull /* slice of a wait, to check for a stop request */
#define GRACE_S 3 /* after a stop request, time for peers to take their messages */

bool endpoint_gives_up(void)
{
	static time_t since;
	struct timespec now;

	if (!stop_requested())
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!since)
		since = now.tv_sec;
	return now.tv_sec - since >= GRACE_S;
}

/* Whether to continue an interrupted wait. */
static bool goes_on(int rc)
{
	return (rc == -ETIMEDOUT || rc == -EAGAIN || rc == -EINTR) && !endpoint_gives_up();
}

static struct weir_exchange_options options_of(enum carrier carrier,
					       const struct exchange_options *o)
{
	return (struct weir_exchange_options){
		.key = o->key,
		.device = o->device,
		.mode = carrier == CARRIER_IMM ? WEIR_EXCHANGE_IMM : WEIR_EXCHANGE_BITMAP,
		.slots = o->slots,
		.slot_bytes = o->size,
		.receive_bytes_max = UINT64_MAX / 2,
		.memory = o->memory,
		.timeout_ns = MEET_NS,
	};
}

/* Parses a numeric IPv4 address without a port. */
static int tcp_address(const char *text, struct sockaddr_in *address, struct weir_error *error)
{
	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	if (inet_pton(AF_INET, text, &address->sin_addr) == 1)
		return 0;
	snprintf(
		error->text, sizeof(error->text),
		"mode tcp requires an IPv4 address, not %s; or use --mode bitmap,imm",
		text);
	return -EINVAL;
}

static int tcp_failed(const char *what, struct weir_error *error)
{
	int status = -errno;

	snprintf(error->text, sizeof(error->text), "TCP: cannot %s: %s", what, strerror(-status));
	return status;
}

static int tcp_listen(struct exchange_door *door, const char *text, struct weir_error *error)
{
	const struct timeval patience = { .tv_usec = ACCEPT_NS / 1000 };
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int rc = tcp_address(text, &address, error);

	if (rc)
		return rc;
	door->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (door->fd < 0 || bind(door->fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(door->fd, (int)PEERS_MAX) ||
	    setsockopt(door->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    getsockname(door->fd, (struct sockaddr *)&address, &length))
		return tcp_failed("listen", error);
	snprintf(door->address, sizeof(door->address), "%u", ntohs(address.sin_port));
	return 0;
}

int endpoint_listen(struct exchange_door *door, enum carrier carrier,
		    const struct exchange_options *o, struct weir_error *error)
{
	struct weir_exchange_options options = options_of(carrier, o);
	char address[128];
	int rc;

	*door = (struct exchange_door){ .fd = -1 };
	if (carrier == CARRIER_TCP)
		return tcp_listen(door, o->address, error);
	snprintf(address, sizeof(address), "%s:0", o->address);
	rc = weir_exchange_listen(address, &options, &door->listener, error);
	if (!rc)
		snprintf(door->address, sizeof(door->address), "%s",
			 weir_exchange_address(door->listener));
	return rc;
}

void endpoint_listen_end(struct exchange_door *door)
{
	weir_exchange_unlisten(door->listener);
	if (door->fd >= 0)
		close(door->fd);
}

static int tcp_ready(struct exchange_end *line, struct weir_error *error)
{
	const struct timeval slice = { .tv_usec = SLICE_NS / 1000 };
	const int on = 1;

	if (setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    setsockopt(line->fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice)) ||
	    setsockopt(line->fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof(slice)))
		return tcp_failed("set the connection up", error);
	return 0;
}

int endpoint_accept(struct exchange_end *line, struct exchange_door *door, uint64_t size,
		    struct weir_error *error)
{
	*line = (struct exchange_end){ .fd = -1, .size = size };
	if (door->listener)
		return weir_exchange_accept(door->listener, ACCEPT_NS, &line->x, error);
	line->fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
	return line->fd < 0 ? tcp_failed("accept", error) : tcp_ready(line, error);
}

int endpoint_connect(struct exchange_end *line, enum carrier carrier,
		     const struct exchange_options *o, const char *address,
		     struct weir_error *error)
{
	struct weir_exchange_options options = options_of(carrier, o);
	struct sockaddr_in there;
	unsigned int port;
	int rc;

	*line = (struct exchange_end){ .fd = -1, .size = o->size };
	if (carrier != CARRIER_TCP)
		return weir_exchange_connect(address, &options, &line->x, error);
	rc = tcp_address(o->address, &there, error);
	if (rc || sscanf(address, "%u", &port) != 1)
		return rc ? rc : -EINVAL;
	there.sin_port = htons((uint16_t)port);
	line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (line->fd < 0 || connect(line->fd, (struct sockaddr *)&there, sizeof(there)))
		return tcp_failed("connect", error);
	return tcp_ready(line, error);
}

void endpoint_close(struct exchange_end *line)
{
	weir_exchange_close(line->x);
	if (line->fd >= 0)
		close(line->fd);
	*line = (struct exchange_end){ .fd = -1 };
}

static int put_some(struct exchange_end *line, const char *data, size_t left, size_t *done)
{
	ssize_t n;

	if (line->x)
		return weir_exchange_put(line->x, data, left, SLICE_NS, done);
	n = send(line->fd, data, left, MSG_NOSIGNAL);
	*done = n > 0 ? (size_t)n : 0;
	return n < 0 ? -errno : 0;
}

int endpoint_put(struct exchange_end *line, const void *message)
{
	const char *at = message;
	size_t left = line->size, done;
	int rc;

	do {
		rc = put_some(line, at, left, &done);
		at += done, left -= done;
	} while ((!rc && left) || goes_on(rc));
	return rc;
}

/* A TCP peer closes its end after it has taken everything. */
static int tcp_finish(struct exchange_end *line)
{
	char end;

	return recv(line->fd, &end, 1, 0) < 0 ? -errno : 0;
}

int endpoint_finish(struct exchange_end *line)
{
	int rc;

	if (!line->x && shutdown(line->fd, SHUT_WR))
		return -errno;
	do
		rc = line->x ? weir_exchange_finish(line->x, SLICE_NS) : tcp_finish(line);
	while (goes_on(rc));
	return rc;
}

static int exchange_take(struct exchange_end *line, bool wait, uint64_t *messages)
{
	struct weir_exchange_slot slots[TAKEN_MAX];
	int i, n = weir_exchange_take(line->x, slots, TAKEN_MAX, wait ? SLICE_NS : 0);

	for (i = 0; i < n; i++)
		if (slots[i].length != line->size || !slots[i].last)
			return -EPROTO;
	line->is_over = !n;
	if (n <= 0)
		return n;
	*messages += (uint64_t)n;
	return weir_exchange_release(line->x, slots, (unsigned int)n);
}

static int tcp_take(struct exchange_end *line, bool wait, uint64_t *messages)
{
	static char bytes[READ_BYTES];
	ssize_t n;

	n = recv(line->fd, bytes, sizeof(bytes), wait ? 0 : MSG_DONTWAIT);
	line->is_over = !n;
	if (n <= 0)
		return n ? -errno : line->part ? -EPROTO : 0;
	line->part += (uint64_t)n;
	*messages += line->part / line->size;
	line->part %= line->size;
	return 0;
}

int endpoint_take(struct exchange_end *line, bool wait, uint64_t *messages)
{
	int rc;

	do
		rc = line->x ? exchange_take(line, wait, messages) : tcp_take(line, wait, messages);
	while (wait && goes_on(rc));
	return rc == -EINTR ? -EAGAIN : rc;
}

bool endpoint_is_due(struct exchange_end *line, struct pollfd *fd)
{
	*fd = (struct pollfd){ .fd = line->x ? weir_exchange_fd(line->x) : line->fd,
			       .events = POLLIN };
	return line->x && weir_exchange_process(line->x);
}

void endpoint_count(const struct exchange_end *line, struct exchange_tally *tally)
{
	struct weir_exchange_info info;
	uint64_t others;

	if (!line->x)
		return;
	weir_exchange_info(line->x, &info);
	others = info.looks + info.wakes + info.gives;
	tally->wrs += info.writes + others;
	tally->doorbells += info.doorbells;
	tally->recvs += info.recvs;
	tally->completions += info.completions;
	tally->events += info.events;
	tally->confirms += others + info.recvs;
}
