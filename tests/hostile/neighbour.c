/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An honest client beside hostile ones: neighbour donor ADDRESS KEY | tenant SOCKET ADDRESS |
 * echo SOCKET | files DIRECTORY
 *
 * Calls, writes, reads and verifies until the end of the input, then prints the latencies. A wrong
 * byte, or a failed call, ends the program with an error. "echo" is the tenant's other end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/weir.h>

#include "core/base/rng.h"
#include "lib/base/clock.h"

enum { BYTES = 1 << 20, PIECE = 4096, SERVICE = 1, SAMPLES = 1 << 20, PAUSE_MS = 1 };

static uint8_t mirror[BYTES], piece[PIECE];
static uint32_t samples_ns[SAMPLES];
static unsigned int nr_samples;
static uint64_t seed = 1, began_ns;

static void fail(const char *what, int rc)
{
	fprintf(stderr, "neighbour: %s: %s\n", what, rc ? strerror(abs(rc)) : "wrong bytes");
	exit(1);
}

static void must(int rc, const char *what)
{
	if (rc)
		fail(what, rc < 0 && rc != -1 ? rc : errno);
}

static void call_begins(void)
{
	began_ns = weir_now_ns();
}

static void call_ends(void)
{
	uint64_t ns = weir_now_ns() - began_ns;

	if (nr_samples < SAMPLES)
		samples_ns[nr_samples++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static int by_length(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(uint64_t lent_bytes)
{
	qsort(samples_ns, nr_samples, sizeof(samples_ns[0]), by_length);
	printf("{\"calls\": %u, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u, "
	       "\"lent_bytes\": %llu}\n",
	       nr_samples, samples_ns[nr_samples / 2] / 1000,
	       samples_ns[nr_samples * 99ull / 100] / 1000, samples_ns[nr_samples - 1] / 1000,
	       (unsigned long long)lent_bytes);
}

/* Tells how many calls were made, and waits a little. Return: whether to go on. */
static bool goes_on(void)
{
	static uint64_t told_ns;
	struct pollfd in = { .fd = 0, .events = POLLIN };

	if (weir_now_ns() - told_ns > 50 * WEIR_NS_PER_MS) {
		printf("%u\n", nr_samples);
		fflush(stdout);
		told_ns = weir_now_ns();
	}
	return poll(&in, 1, PAUSE_MS) == 0;
}

/* New bytes for a piece of the mirror. Return: where it is. */
static uint32_t change(void)
{
	uint32_t at = (uint32_t)weir_rng_scale(weir_rng_next(&seed), BYTES / PIECE) * PIECE, i;

	for (i = 0; i < PIECE; i += sizeof(uint64_t)) {
		uint64_t word = weir_rng_next(&seed);

		memcpy(mirror + at + i, &word, sizeof(word));
	}
	return at;
}

static void compare(uint32_t at, size_t length)
{
	if (memcmp(piece, mirror + at, length))
		fail("verify", 0);
}

static void use_donor(struct weir_session *session)
{
	struct weir_region *region, *again;
	uint32_t at;

	must(weir_region_create(session, "neighbour", BYTES, 0, &region, NULL), "create");
	do {
		call_begins();
		must(weir_region_open(session, "neighbour", 0, &again, NULL), "open");
		call_ends();
		weir_region_close(again);
		at = change();
		call_begins();
		must(weir_write(region, at, mirror + at, PIECE), "write");
		call_ends();
		call_begins();
		must(weir_read(region, at, piece, PIECE), "read");
		call_ends();
		compare(at, PIECE);
	} while (goes_on());
	for (at = 0; at < BYTES; at += PIECE) {
		must(weir_read(region, at, piece, PIECE), "read");
		compare(at, PIECE);
	}
	weir_region_close(region);
	must(weir_region_delete(session, "neighbour", NULL), "delete");
}

static void be_client(const char *address, const char *path)
{
	struct weir_session_options options = { .size = sizeof(options) };
	struct weir_donor_state state;
	struct weir_session *session;
	struct weir_error error;
	struct weir_key *key;

	must(weir_key_load(path, &key, &error), "key");
	options.key = key;
	must(weir_session_open(address, &options, &session, &error), "session");
	use_donor(session);
	must(weir_session_donor_state(session, &state, sizeof(state)), "state");
	weir_session_close(session);
	weir_key_free(key);
	report(state.lent_bytes);
}

static struct weir_mux *tenant_of(const char *socket)
{
	const struct weir_mux_options options = { .size = sizeof(options), .share = socket };
	struct weir_mux *mux;
	struct weir_error error;

	must(weir_mux_open(&options, &mux, &error), "mux");
	return mux;
}

static void be_tenant(const char *socket, const char *address)
{
	struct weir_mux *mux = tenant_of(socket);
	struct weir_mux_conn *conn;
	struct weir_error error;
	size_t length;
	uint32_t at;

	must(weir_mux_connect(mux, address, SERVICE, NULL, &conn, &error), "connect");
	do {
		at = change();
		call_begins();
		must(weir_mux_conn_send(conn, mirror + at, PIECE, 0), "send");
		must(weir_mux_conn_recv(conn, piece, PIECE, &length, 0), "receive");
		call_ends();
		compare(at, length == PIECE ? PIECE : 0);
	} while (goes_on());
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	report(0);
}

/* Answers all that arrives. Return: whether the connection stays. */
static bool answer(struct weir_mux_conn *conn)
{
	size_t length;
	int rc;

	while (!(rc = weir_mux_conn_recv(conn, piece, PIECE, &length, WEIR_MUX_CONN_DONTWAIT)))
		if (weir_mux_conn_send(conn, piece, length, 0))
			return false;
	return rc == -EAGAIN;
}

/* Serves one client at a time; others, who may be hostile, are refused meanwhile. */
static void be_echo(const char *socket)
{
	struct weir_mux_conn *conn, *client = NULL;
	struct weir_mux *mux = tenant_of(socket);
	struct weir_mux_listener *listener;
	struct pollfd in[3];

	must(weir_mux_listen(mux, SERVICE, 1024, &listener), "listen");
	puts("ready");
	fflush(stdout);
	do {
		in[0] = (struct pollfd){ 0, POLLIN, 0 };
		in[1] = (struct pollfd){ weir_mux_listener_fd(listener), POLLIN, 0 };
		in[2] = (struct pollfd){ client ? weir_mux_conn_fd(client) : -1, POLLIN, 0 };
		poll(in, 3, -1);
		if (client && !answer(client)) {
			weir_mux_conn_close(client);
			client = NULL;
		}
		if (weir_mux_listener_accept(listener, &conn))
			continue;
		if (client)
			weir_mux_conn_close(conn);
		else
			client = conn;
	} while (!in[0].revents);
}

static void use_file(const char *path)
{
	struct stat file;
	uint32_t at = change();
	int fd;

	call_begins();
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	must(fd < 0 ? -1 : 0, "open");
	if (pwrite(fd, mirror + at, PIECE, at) != PIECE)
		fail("write", errno);
	must(close(fd), "close");
	must(stat(path, &file), "stat");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd < 0 ? -1 : 0, "open");
	if (pread(fd, piece, PIECE, at) != PIECE)
		fail("read", errno);
	close(fd);
	call_ends();
	compare(at, PIECE);
}

static void be_mount(const char *directory)
{
	char path[4096], other[4096];
	uint32_t at;
	int fd;

	snprintf(path, sizeof(path), "%s/neighbour", directory);
	snprintf(other, sizeof(other), "%s/neighbour2", directory);
	do {
		use_file(path);
		must(rename(path, other), "rename");
		must(rename(other, path), "rename");
	} while (goes_on());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (at = 0; at < BYTES; at += PIECE) {
		memset(piece, 0, PIECE);
		(void)!pread(fd, piece, PIECE, at);
		compare(at, PIECE);
	}
	close(fd);
	must(unlink(path), "unlink");
	report(0);
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc == 4 && !strcmp(argv[1], "donor"))
		be_client(argv[2], argv[3]);
	else if (argc == 4 && !strcmp(argv[1], "tenant"))
		be_tenant(argv[2], argv[3]);
	else if (argc == 3 && !strcmp(argv[1], "echo"))
		be_echo(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "files"))
		be_mount(argv[2]);
	else
		return 2;
	return 0;
}
