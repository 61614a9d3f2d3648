/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves counters that no command of weir moves. All but "wrong" go on until standard input ends.
 *
 *	mover atomics DONOR KEY	fetches and adds in a region
 *	mover forge DONOR KEY	unloads writes to a region that the donor has not lent
 *	mover wrong POOL VOLUME DONOR	reports wrong bytes, as a donor does that rebuilds
 *	mover tenant [SERVICE [MS]]	sends messages to itself over two muxes of weir share, and
 *					pauses after each full ring
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#include "lib/pool/client.h"

#define SERVICE 1

static void check(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s\n", what, weir_strerror(status));
	exit(1);
}

/* Another process reads the counters until it closes our standard input. */
static bool is_over(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) == 1;
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void atomics(const char *donor, const char *key_path)
{
	struct weir_session_options options = { .size = sizeof(options) };
	struct weir_session *session;
	struct weir_region *region;
	struct weir_key *key;
	uint64_t old;

	check(weir_key_load(key_path, &key, NULL), "load the key");
	options.key = key;
	check(weir_session_open(donor, &options, &session, NULL), "open a session");
	check(weir_region_create(session, NULL, 1 << 20, 0, &region, NULL), "create a region");
	check(weir_fetch_add(region, 0, 1, &old), "add");
	say_ready();
	while (!is_over())
		poll(NULL, 0, 10);
	weir_session_close(session);
	weir_key_free(key);
}

static void forge(const char *donor, const char *key_path)
{
	struct weir_session_options options = { .size = sizeof(options),
						.unload = WEIR_UNLOAD_ALWAYS };
	const struct weir_region_token token = { .addr = 4096, .length = 4096, .rkey = 1 };
	struct weir_session *session;
	struct weir_region *region;
	struct weir_key *key;

	check(weir_key_load(key_path, &key, NULL), "load the key");
	options.key = key;
	check(weir_session_open(donor, &options, &session, NULL), "open a session");
	check(weir_region_attach(session, &token, &region), "attach a region");
	say_ready();
	while (!is_over()) {
		(void)weir_write(region, 0, "forgery", 8); /* each refusal breaks a channel */
		poll(NULL, 0, 10);
	}
	weir_region_close(region);
	weir_session_close(session);
	weir_key_free(key);
}

static struct weir_mux_conn *accept_one(struct weir_mux_listener *listener)
{
	struct pollfd in = { .fd = weir_mux_listener_fd(listener), .events = POLLIN };
	struct weir_mux_conn *conn;

	while (weir_mux_listener_accept(listener, &conn))
		poll(&in, 1, -1);
	return conn;
}

/* Fills the ring, so that its later parts wait for the scheduler. */
static void fill_and_drain(struct weir_mux_conn *sender, struct weir_mux_conn *receiver)
{
	static char text[4096];
	size_t length, sent = 0;
	int rc;

	while (!(rc = weir_mux_conn_send(sender, text, sizeof(text), WEIR_MUX_CONN_DONTWAIT)))
		sent++;
	check(rc == -EAGAIN ? 0 : rc, "send");
	while (sent--)
		check(weir_mux_conn_recv(receiver, text, sizeof(text), &length, 0), "receive");
}

static void tenant(uint32_t service, int pause_ms)
{
	struct weir_mux_conn *sender, *receiver;
	struct weir_mux_listener *listener;
	struct weir_mux *server, *client, *idle;
	struct weir_mux_info info;

	check(weir_mux_open(NULL, &server, NULL), "open the server's mux");
	check(weir_mux_open(NULL, &client, NULL), "open the client's mux");
	check(weir_mux_open(NULL, &idle, NULL), "open a mux without connections");
	check(weir_mux_listen(server, service, 1, &listener), "listen");
	weir_mux_info(server, &info, sizeof(info));
	check(weir_mux_connect(client, info.address, service, NULL, &sender, NULL), "connect");
	receiver = accept_one(listener);
	say_ready();
	while (!is_over()) {
		fill_and_drain(sender, receiver);
		if (pause_ms)
			poll(NULL, 0, pause_ms);
	}
	weir_mux_conn_close(sender);
	weir_mux_conn_close(receiver);
	weir_mux_listener_close(listener);
	weir_mux_close(idle);
	weir_mux_close(client);
	weir_mux_close(server);
}

static void wrong(const char *pool, const char *volume, const char *donor)
{
	struct weir_pool_map *map = calloc(1, sizeof(*map));
	struct weir_pool_client *client;
	uint16_t index;
	int rc;

	check(weir_pool_client_open(pool, &client, NULL), "open the pool");
	do {
		rc = weir_pool_client_open_rebuild(client, volume, map, NULL);
		if (rc)
			poll(NULL, 0, 10);
	} while (rc == -EBUSY || rc == -EAGAIN); /* a donor rebuilds */
	check(rc, "claim the volume");
	index = weir_pool_map_donor(map, donor);
	check(index == WEIR_POOL_NO_DONOR ? -ENOENT : 0, donor);
	check(weir_pool_client_report_wrong(client, donor, map->donor[index].incarnation, 1, NULL),
	      "report");
	weir_pool_client_close(client);
	free(map);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "atomics"))
		atomics(argv[2], argv[3]);
	else if (argc == 4 && !strcmp(argv[1], "forge"))
		forge(argv[2], argv[3]);
	else if (argc >= 2 && argc <= 4 && !strcmp(argv[1], "tenant"))
		tenant(argc >= 3 ? (uint32_t)atoi(argv[2]) : SERVICE,
		       argc == 4 ? atoi(argv[3]) : 0);
	else if (argc == 5 && !strcmp(argv[1], "wrong"))
		wrong(argv[2], argv[3], argv[4]);
	else
		return 2;
	return 0;
}
