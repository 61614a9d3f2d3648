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
		.size = sizeof(struct weir_exchange_options),
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
	snprintf(error->text, sizeof(error->text),
		 "mode tcp requires an IPv4 address, not %s; or use --mode bitmap,imm", text);
	return -EINVAL;
}

static int tcp_failed(const char *what, struct weir_error *error)
{
	int status = -errno;

	snprintf(error->text, sizeof(error->text), "TCP: cannot %s: %s", what, strerror(-status));
	return status;
}

static int tcp_listen(struct exchange_listener *listener, const char *text,
		      struct weir_error *error)
{
	const struct timeval timeout = { .tv_usec = ACCEPT_NS / 1000 };
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int rc = tcp_address(text, &address, error);

	if (rc)
		return rc;
	listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener->fd, (int)PEERS_MAX) ||
	    setsockopt(listener->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
	    getsockname(listener->fd, (struct sockaddr *)&address, &length))
		return tcp_failed("listen", error);
	snprintf(listener->address, sizeof(listener->address), "%u", ntohs(address.sin_port));
	return 0;
}

int endpoint_listen(struct exchange_listener *listener, enum carrier carrier,
		    const struct exchange_options *o, struct weir_error *error)
{
	struct weir_exchange_options options = options_of(carrier, o);
	char address[128];
	int rc;

	*listener = (struct exchange_listener){ .fd = -1 };
	if (carrier == CARRIER_TCP)
		return tcp_listen(listener, o->address, error);
	snprintf(address, sizeof(address), "%s:0", o->address);
	rc = weir_exchange_listen(address, &options, &listener->listener, error);
	if (!rc)
		snprintf(listener->address, sizeof(listener->address), "%s",
			 weir_exchange_address(listener->listener));
	return rc;
}

void endpoint_listen_end(struct exchange_listener *listener)
{
	weir_exchange_unlisten(listener->listener);
	if (listener->fd >= 0)
		close(listener->fd);
}

static int tcp_ready(struct exchange_endpoint *endpoint, struct weir_error *error)
{
	const struct timeval slice = { .tv_usec = SLICE_NS / 1000 };
	const int on = 1;

	if (setsockopt(endpoint->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    setsockopt(endpoint->fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice)) ||
	    setsockopt(endpoint->fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof(slice)))
		return tcp_failed("set the connection up", error);
	return 0;
}

int endpoint_accept(struct exchange_endpoint *endpoint, struct exchange_listener *listener,
		    uint64_t size, struct weir_error *error)
{
	*endpoint = (struct exchange_endpoint){ .fd = -1, .size = size };
	if (listener->listener)
		return weir_exchange_accept(listener->listener, ACCEPT_NS, &endpoint->x, error);
	endpoint->fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	return endpoint->fd < 0 ? tcp_failed("accept", error) : tcp_ready(endpoint, error);
}

int endpoint_connect(struct exchange_endpoint *endpoint, enum carrier carrier,
		     const struct exchange_options *o, const char *address,
		     struct weir_error *error)
{
	struct weir_exchange_options options = options_of(carrier, o);
	struct sockaddr_in there;
	unsigned int port;
	int rc;

	*endpoint = (struct exchange_endpoint){ .fd = -1, .size = o->size };
	if (carrier != CARRIER_TCP)
		return weir_exchange_connect(address, &options, &endpoint->x, error);
	rc = tcp_address(o->address, &there, error);
	if (rc || sscanf(address, "%u", &port) != 1)
		return rc ? rc : -EINVAL;
	there.sin_port = htons((uint16_t)port);
	endpoint->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (endpoint->fd < 0 || connect(endpoint->fd, (struct sockaddr *)&there, sizeof(there)))
		return tcp_failed("connect", error);
	return tcp_ready(endpoint, error);
}

void endpoint_close(struct exchange_endpoint *endpoint)
{
	weir_exchange_close(endpoint->x);
	if (endpoint->fd >= 0)
		close(endpoint->fd);
	*endpoint = (struct exchange_endpoint){ .fd = -1 };
}

static int put_some(struct exchange_endpoint *endpoint, const char *data, size_t left, size_t *done)
{
	ssize_t n;

	if (endpoint->x)
		return weir_exchange_put(endpoint->x, data, left, SLICE_NS, done);
	n = send(endpoint->fd, data, left, MSG_NOSIGNAL);
	*done = n > 0 ? (size_t)n : 0;
	return n < 0 ? -errno : 0;
}

int endpoint_put(struct exchange_endpoint *endpoint, const void *message)
{
	const char *at = message;
	size_t left = endpoint->size, done;
	int rc;

	do {
		rc = put_some(endpoint, at, left, &done);
		at += done, left -= done;
	} while ((!rc && left) || goes_on(rc));
	return rc;
}

/* A TCP peer closes its end after it has taken everything. */
static int tcp_finish(struct exchange_endpoint *endpoint)
{
	char end;

	return recv(endpoint->fd, &end, 1, 0) < 0 ? -errno : 0;
}

int endpoint_finish(struct exchange_endpoint *endpoint)
{
	int rc;

	if (!endpoint->x && shutdown(endpoint->fd, SHUT_WR))
		return -errno;
	do
		rc = endpoint->x ? weir_exchange_finish(endpoint->x, SLICE_NS) :
				   tcp_finish(endpoint);
	while (goes_on(rc));
	return rc;
}

static int exchange_take(struct exchange_endpoint *endpoint, bool wait, uint64_t *messages)
{
	struct weir_exchange_slot slots[TAKEN_MAX];
	int i, n = weir_exchange_take(endpoint->x, slots, TAKEN_MAX, wait ? SLICE_NS : 0);

	for (i = 0; i < n; i++)
		if (slots[i].length != endpoint->size || !slots[i].last)
			return -EPROTO;
	endpoint->is_over = !n;
	if (n <= 0)
		return n;
	*messages += (uint64_t)n;
	return weir_exchange_release(endpoint->x, slots, (unsigned int)n);
}

static int tcp_take(struct exchange_endpoint *endpoint, bool wait, uint64_t *messages)
{
	static char bytes[READ_BYTES];
	ssize_t n;

	n = recv(endpoint->fd, bytes, sizeof(bytes), wait ? 0 : MSG_DONTWAIT);
	endpoint->is_over = !n;
	if (n <= 0)
		return n ? -errno : endpoint->part ? -EPROTO : 0;
	endpoint->part += (uint64_t)n;
	*messages += endpoint->part / endpoint->size;
	endpoint->part %= endpoint->size;
	return 0;
}

int endpoint_take(struct exchange_endpoint *endpoint, bool wait, uint64_t *messages)
{
	int rc;

	do
		rc = endpoint->x ? exchange_take(endpoint, wait, messages) :
				   tcp_take(endpoint, wait, messages);
	while (wait && goes_on(rc));
	return rc == -EINTR ? -EAGAIN : rc;
}

bool endpoint_is_due(struct exchange_endpoint *endpoint, struct pollfd *fd)
{
	*fd = (struct pollfd){ .fd = endpoint->x ? weir_exchange_fd(endpoint->x) : endpoint->fd,
			       .events = POLLIN };
	return endpoint->x && weir_exchange_process(endpoint->x);
}

void endpoint_count(const struct exchange_endpoint *endpoint, struct exchange_tally *tally)
{
	struct weir_exchange_info info;
	uint64_t others;

	if (!endpoint->x)
		return;
	weir_exchange_info(endpoint->x, &info, sizeof(info));
	others = info.bitmap_reads + info.wakeups + info.credits;
	tally->wrs += info.writes + others;
	tally->doorbells += info.doorbells;
	tally->recvs += info.recvs;
	tally->completions += info.completions;
	tally->events += info.events;
	tally->confirms += others + info.recvs;
}
