/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/mux/fair.h"

/* Low levels have one segment per connection in flight. */
static struct weir_mux_local *hub_open(const char *listen, const struct weir_mux_class *classes,
				       unsigned int nr)
{
	const struct weir_mux_options options = {
		.listen = listen,
		.key = fixture_key(),
		.classes = classes,
		.nr_classes = nr,
		.low_bytes_max = 1,
	};
	struct weir_error error = { "" };
	struct weir_mux_local *mux = NULL;

	if (weir_mux_local_open(&options, &mux, &error))
		fail_msg("%s", error.text);
	return mux;
}

void fair_limit(struct weir_mux_account *account, unsigned int weight, uint64_t bytes_s)
{
	pthread_mutex_lock(&account->mux->lock);
	weir_mux_account_group_limit(account->mux, account->group, weight, bytes_s);
	pthread_mutex_unlock(&account->mux->lock);
}

void fair_open(struct fair *f, const struct weir_mux_class *classes, unsigned int nr)
{
	struct weir_mux_info info;
	char listen[64];
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->class = nr - 1;
	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	f->client = hub_open(NULL, classes, nr);
	f->server = hub_open(listen, classes, nr);
	f->receiver = f->server;
	weir_mux_local_info(f->server, &info);
	snprintf(f->address, sizeof(f->address), "%s", info.address);
	assert_int_equal(weir_mux_listen(&f->server->mux, SERVICE, SENDERS_MAX, &f->listener), 0);
	for (i = 0; i < 3; i++)
		weir_mux_account_init(&f->owners[i], f->client);
}

struct fair_sender *fair_add(struct fair *f, struct weir_mux_account *account, unsigned int weight,
			     size_t message)
{
	struct weir_mux_conn_options options = { .class_nr = f->class, .weight = weight };
	struct fair_sender *s = &f->senders[f->count++];
	unsigned int nr = (unsigned int)(account - f->owners) + 1;
	struct weir_error error = { "" };
	struct weir_mux_vconn *vconn;

	*s = (struct fair_sender){ .account = account,
				   .weight = weight,
				   .message = message,
				   .buffer = malloc(MESSAGE_MAX) };
	assert_non_null(s->buffer);
	f->nr_owners = nr > f->nr_owners ? nr : f->nr_owners;
	if (weir_mux_vconn_connect(account, f->address, SERVICE, &options,
				   weir_mux_local_deadline_ns(account->mux), &vconn, &error))
		fail_msg("%s", error.text);
	s->near = &vconn->app;
	while (weir_mux_listener_accept(f->listener, &s->far) == -EAGAIN)
		sched_yield();
	s->arriving = s->far->in.ring;
	return s;
}

void fair_turn_round(struct fair *f)
{
	unsigned int i;

	f->receiver = f->client;
	for (i = 0; i < f->count; i++) {
		struct fair_sender *s = &f->senders[i];
		struct weir_mux_conn *near = s->near;

		s->near = s->far;
		s->far = near;
		s->arriving = s->far->in.ring;
	}
}

void fair_close(struct fair *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		weir_mux_conn_close(f->senders[i].near);
		weir_mux_conn_close(f->senders[i].far);
		free(f->senders[i].buffer);
	}
	for (i = 0; i < 3; i++) {
		weir_mux_local_drain(f->client, &f->owners[i]);
		pthread_mutex_lock(&f->client->lock);
		assert_int_equal(f->owners[i].nr_conns, 0);
		pthread_mutex_unlock(&f->client->lock);
		weir_mux_account_fini(&f->owners[i]);
	}
	weir_mux_listener_close(f->listener);
	weir_mux_close(&f->client->mux);
	weir_mux_close(&f->server->mux);
}

void fair_gate(struct fair *f, bool open)
{
	unsigned int i;

	if (f->receiver == f->client) {
		fair_limit(&f->server->self, 1, open ? f->rate_bytes_s : 1);
		return;
	}
	for (i = 0; i < 3; i++)
		fair_limit(&f->owners[i], f->owners[i].group->weight, open ? f->rate_bytes_s : 1);
}

void sender_fill(struct fair_sender *s)
{
	static char data[MESSAGE_MAX];
	unsigned int i;

	for (i = 0; !s->depth || i < s->depth; i++)
		if (weir_mux_conn_send(s->near, data, s->message, WEIR_MUX_CONN_DONTWAIT))
			break;
	s->sent = circuit_of(s->near)->app.out.position;
}

bool sender_drain(struct fair_sender *s)
{
	size_t length;

	while (!weir_mux_conn_recv(s->far, s->buffer, MESSAGE_MAX, &length, WEIR_MUX_CONN_DONTWAIT))
		;
	return circuit_of(s->far)->app.in.position == s->sent;
}

void sender_pass(struct fair_sender *s, size_t length)
{
	size_t got;

	assert_int_equal(weir_mux_conn_send(s->near, s->buffer, length, 0), 0);
	assert_int_equal(weir_mux_conn_recv(s->far, s->buffer, MESSAGE_MAX, &got, 0), 0);
	assert_int_equal(got, length);
}

void fair_drain(struct fair *f)
{
	bool left = true;
	unsigned int i;

	while (left) {
		left = false;
		for (i = 0; i < f->count; i++)
			left |= !sender_drain(&f->senders[i]);
		sched_yield();
	}
}
