/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many connections over one queue pair: two muxes, here in one program. Each client says its number
 * and the server answers with its square.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#define SERVICE 1
#define CLIENTS 100

static void check(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s\n", what, weir_strerror(status));
	exit(1);
}

static struct weir_mux_conn *accept_one(struct weir_mux_listener *listener)
{
	struct pollfd in = { .fd = weir_mux_listener_fd(listener), .events = POLLIN };
	struct weir_mux_conn *conn;

	while (weir_mux_listener_accept(listener, &conn))
		poll(&in, 1, -1);
	return conn;
}

static void answer(struct weir_mux_conn *conn)
{
	size_t length;
	int number;

	check(weir_mux_conn_recv(conn, &number, sizeof(number), &length, 0), "receive");
	number *= number;
	check(weir_mux_conn_send(conn, &number, sizeof(number), 0), "send");
}

int main(void)
{
	const struct weir_mux_options listening = { .size = sizeof(listening),
						    .listen = "127.0.0.1:0" };
	struct weir_mux_conn *clients[CLIENTS], *served[CLIENTS];
	struct weir_mux_listener *listener;
	struct weir_mux *server, *client;
	struct weir_mux_info info;
	int i, square, sum = 0;
	size_t length;

	check(weir_mux_open(&listening, &server, NULL), "open the server's mux");
	check(weir_mux_open(NULL, &client, NULL), "open the client's mux");
	check(weir_mux_listen(server, SERVICE, CLIENTS, &listener), "listen");
	weir_mux_info(server, &info, sizeof(info));
	for (i = 0; i < CLIENTS; i++) {
		check(weir_mux_connect(client, info.address, SERVICE, NULL, &clients[i], NULL),
		      "connect");
		check(weir_mux_conn_send(clients[i], &i, sizeof(i), 0), "send");
		served[i] = accept_one(listener);
	}
	for (i = 0; i < CLIENTS; i++) {
		answer(served[i]);
		check(weir_mux_conn_recv(clients[i], &square, sizeof(square), &length, 0),
		      "receive");
		sum += square;
	}
	weir_mux_info(client, &info, sizeof(info));
	printf("%u connections, %u queue pairs\nthe squares' sum is %d\n", info.connections,
	       info.queue_pairs, sum);
	for (i = 0; i < CLIENTS; i++) {
		weir_mux_conn_close(clients[i]);
		weir_mux_conn_close(served[i]);
	}
	weir_mux_listener_close(listener);
	weir_mux_close(client);
	weir_mux_close(server);
	return sum != 328350;
}
