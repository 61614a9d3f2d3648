/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Muxes where either end connects and accepts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/mux/ends.h"

void end_open_at(struct mux_end *end, const char *host, const struct weir_key *key,
		 uint64_t idle_ns)
{
	struct weir_mux_options options = {
		.key = key, .idle_ns = idle_ns, .ring_bytes = 16384, .timeout_ns = PATIENCE_NS
	};
	struct weir_error error = { "" };
	struct weir_mux_info info;
	char listen[64];

	snprintf(listen, sizeof(listen), "%s:0", host);
	options.listen = listen;
	if (weir_mux_local_open(&options, &end->mux, &error))
		fail_msg("%s", error.text);
	weir_mux_local_info(end->mux, &info);
	snprintf(end->address, sizeof(end->address), "%s", info.address);
	assert_int_equal(weir_mux_listen(&end->mux->mux, SERVICE, 64, &end->listener), 0);
}

void end_open(struct mux_end *end, uint64_t idle_ns)
{
	end_open_at(end, fixture_address(), fixture_key(), idle_ns);
}

void end_close(struct mux_end *end)
{
	if (!end->mux)
		return;
	weir_mux_listener_close(end->listener);
	weir_mux_close(&end->mux->mux);
	end->mux = NULL;
}

int pair_open_with(void **state, uint64_t idle_ns)
{
	struct mux_ends_pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	*state = pair;
	end_open(&pair->a, idle_ns);
	end_open(&pair->b, idle_ns);
	return 0;
}

int pair_open(void **state)
{
	return pair_open_with(state, 0);
}

int pair_close(void **state)
{
	struct mux_ends_pair *pair = *state;

	end_close(&pair->a);
	end_close(&pair->b);
	free(pair);
	return 0;
}

struct weir_mux_conn *connect_with(const struct mux_end *from, const char *address,
				   const struct weir_mux_conn_options *options)
{
	struct weir_error error = { "" };
	struct weir_mux_conn *conn = NULL;

	if (weir_mux_connect(&from->mux->mux, address, SERVICE, options, &conn, &error))
		fail_msg("%s", error.text);
	return conn;
}

struct weir_mux_conn *connect_at(const struct mux_end *from, const char *address,
				 unsigned int class_nr)
{
	const struct weir_mux_conn_options options = { .size = sizeof(options),
						       .class_nr = class_nr };

	return connect_with(from, address, &options);
}

struct weir_mux_conn *connect_to(const struct mux_end *from, const struct mux_end *to)
{
	return connect_at(from, to->address, WEIR_MUX_CLASS_NORMAL);
}

struct weir_mux_conn *accept_at(const struct mux_end *end)
{
	return accept_from(end->listener);
}

void pass(struct weir_mux_conn *from, struct weir_mux_conn *to)
{
	char sent[1000], got[1000] = "";
	size_t length = 0;

	memset(sent, 'w', sizeof(sent));
	assert_int_equal(weir_mux_conn_send(from, sent, sizeof(sent), 0), 0);
	assert_int_equal(weir_mux_conn_recv(to, got, sizeof(got), &length, 0), 0);
	assert_int_equal(length, sizeof(sent));
	assert_memory_equal(sent, got, sizeof(sent));
}

unsigned int nodes_of(struct weir_mux_local *mux)
{
	const struct weir_list *at;
	unsigned int count = 0;

	pthread_mutex_lock(&mux->lock);
	for (at = mux->remotes.next; at != &mux->remotes; at = at->next)
		count++;
	pthread_mutex_unlock(&mux->lock);
	return count;
}

void wait_nodes(const struct mux_end *end, unsigned int count)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;

	while (nodes_of(end->mux) != count) {
		assert_true(weir_now_ns() < deadline_ns);
		usleep(1000);
	}
}

struct weir_mux_remote *node_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app)->remote;
}
