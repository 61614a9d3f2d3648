/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program of the first sized headers, run with the library of today: donor, session, exchange and
 * mux in one process. It knows nothing of include/weir.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "first.h"

#define SERVICE 5
#define TEXT "over the weir"
#define WAIT_NS 10000000000ull

/* Old programs have other data behind their structs: the library must neither read nor write it. */
#define GUARD 0x5a5a5a5a5a5a5a5aull
#define GUARDED(type)            \
	struct {                 \
		struct type s;   \
		uint64_t beyond; \
	}

static struct weir_error error;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, error.text);
	exit(1);
}

static void count_entry(void *arg, const struct weir_region_entry *entry)
{
	*(unsigned int *)arg += !strcmp(entry->name, "first") && entry->holders == 1;
}

static struct weir_session *session_open(const char *address)
{
	const GUARDED(weir_session_tuning)
		tuning = { { .size = sizeof(tuning.s), .depth = 16, .poll_percent_max = 50 },
			   GUARD };
	const GUARDED(weir_session_options)
		options = { { .size = sizeof(options.s), .channels = 3, .tuning = &tuning.s },
			    GUARD };
	struct weir_session *session;

	must(!weir_session_open(address, &options.s, &session, &error), "session");
	return session;
}

static void use_session(const char *address)
{
	GUARDED(weir_session_info) info = { .beyond = GUARD };
	GUARDED(weir_donor_state) state = { .beyond = GUARD };
	struct weir_session *session = session_open(address);
	struct weir_region *region;
	unsigned int entries = 0;
	char text[sizeof(TEXT)];

	must(!weir_region_create(session, "first", 1 << 20, 0, &region, &error), "region");
	must(!weir_write(region, 7, TEXT, sizeof(TEXT)), "write");
	must(!weir_read(region, 7, text, sizeof(text)) && !strcmp(text, TEXT), "read");
	must(!weir_region_list(session, count_entry, &entries) && entries == 1, "list");
	must(!weir_session_info(session, &info.s, sizeof(info.s)), "session's information");
	must(info.s.size == sizeof(info.s) && info.s.channels == 3 && info.s.bytes_written &&
		     info.s.polling == WEIR_POLLING_ADAPTIVE && info.beyond == GUARD,
	     "session's counters");
	must(!weir_session_donor_state(session, &state.s, sizeof(state.s)), "donor's state");
	must(state.s.clients == 1 && state.s.regions == 1 && state.beyond == GUARD,
	     "donor's counters");
	weir_region_close(region);
	weir_session_close(session);
}

static void use_donor(void)
{
	const GUARDED(weir_donor_options) options = {
		{ .size = sizeof(options.s), .listen = "127.0.0.1:0", .memory_bytes = 16 << 20 },
		GUARD
	};
	GUARDED(weir_donor_info) info = { .beyond = GUARD };
	struct weir_donor *donor;

	must(!weir_donor_open(&options.s, &donor, &error), "donor");
	must(!weir_donor_info(donor, &info.s, sizeof(info.s)), "donor's information");
	use_session(info.s.address);
	must(!weir_donor_info(donor, &info.s, sizeof(info.s)) && info.s.joins == 1 &&
		     info.beyond == GUARD,
	     "donor's joins");
	weir_donor_close(donor);
}

static const GUARDED(weir_exchange_options) exchange_options = {
	{ .size = sizeof(exchange_options.s), .slots = 8, .slot_bytes = 64 },
	GUARD
};

static void *put_one(void *address)
{
	struct weir_exchange *x;

	must(!weir_exchange_connect(address, &exchange_options.s, &x, &error), "connect");
	must(!weir_exchange_put(x, TEXT, sizeof(TEXT), WEIR_EXCHANGE_FOREVER, NULL), "put");
	return x;
}

static void use_exchange(void)
{
	GUARDED(weir_exchange_info) info = { .beyond = GUARD };
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	char text[sizeof(TEXT)];
	pthread_t thread;
	size_t length;
	void *peer;

	must(!weir_exchange_listen("127.0.0.1:0", &exchange_options.s, &listener, &error),
	     "listen");
	must(!pthread_create(&thread, NULL, put_one, (void *)weir_exchange_address(listener)),
	     "thread");
	must(!weir_exchange_accept(listener, WAIT_NS, &x, &error), "accept");
	must(!weir_exchange_get(x, text, sizeof(text), &length, WAIT_NS), "get");
	must(length == sizeof(text) && !strcmp(text, TEXT), "message");
	must(!weir_exchange_info(x, &info.s, sizeof(info.s)), "exchange's information");
	must(info.s.peer_slots == 8 && info.s.taken == 1 && info.beyond == GUARD,
	     "exchange's counters");
	pthread_join(thread, &peer);
	weir_exchange_close(peer);
	weir_exchange_close(x);
	weir_exchange_unlisten(listener);
}

static struct weir_mux *mux_open(const char *listen)
{
	const struct weir_mux_class classes[] = {
		{ .size = sizeof(classes[0]), .level = 0 },
		{ .size = sizeof(classes[0]), .level = 1, .weight = 2 },
		{ .size = sizeof(classes[0]), .level = 1, .segment_bytes = 4096 },
	};
	const GUARDED(weir_mux_options) options = { { .size = sizeof(options.s),
						      .listen = listen,
						      .classes = classes,
						      .nr_classes = 3,
						      .share = "" },
						    GUARD };
	struct weir_mux *mux;

	must(!weir_mux_open(&options.s, &mux, &error), "mux");
	return mux;
}

static void use_mux(void)
{
	const GUARDED(weir_mux_conn_options)
		options = { { .size = sizeof(options.s), .class_nr = 2, .weight = 3 }, GUARD };
	struct weir_mux *server = mux_open("127.0.0.1:0"), *client = mux_open(NULL);
	GUARDED(weir_mux_info) info = { .beyond = GUARD };
	struct weir_mux_listener *listener;
	struct weir_mux_conn *near, *far = NULL;
	struct pollfd in = { .events = POLLIN };
	char text[sizeof(TEXT)];
	size_t length;

	must(!weir_mux_listen(server, SERVICE, 1, &listener), "listen");
	must(!weir_mux_info(server, &info.s, sizeof(info.s)), "mux's information");
	must(!weir_mux_connect(client, info.s.address, SERVICE, &options.s, &near, &error),
	     "connect");
	in.fd = weir_mux_listener_fd(listener);
	must(poll(&in, 1, 10000) == 1 && !weir_mux_listener_accept(listener, &far), "accept");
	must(!weir_mux_conn_send(near, TEXT, sizeof(TEXT), 0), "send");
	must(!weir_mux_conn_recv(far, text, sizeof(text), &length, 0), "receive");
	must(length == sizeof(text) && !strcmp(text, TEXT), "message");
	must(!weir_mux_info(server, &info.s, sizeof(info.s)) && info.s.connections == 1 &&
		     info.s.bytes_received && info.beyond == GUARD,
	     "mux's counters");
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_listener_close(listener);
	weir_mux_close(client);
	weir_mux_close(server);
}

int main(void)
{
	use_donor();
	use_exchange();
	use_mux();
	return 0;
}
