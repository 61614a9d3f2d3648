/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who gets how much, at the receiver, by bytes: what several connections have to send lies in their
 * rings before the first byte goes, and all goes at once; until one of them has nothing left,
 * whoever looks finds the bytes that have arrived shared as they should be.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mux/hub.h"
#include "tests/lib/fixture.h"

#define SERVICE 5
#define SENDERS_MAX 8
#define SEGMENT 4096u
#define RING (2u << 20)
#define ROUNDS 70 /* two segments more or less are 3 % of them */
#define TRIES 20
#define MESSAGE_MAX (1u << 20)

static const struct weir_mux_class one_class[] = { { .segment_bytes = SEGMENT } };
static const struct weir_mux_class two_levels[] = { { .segment_bytes = SEGMENT },
						    { .level = 1, .segment_bytes = SEGMENT } };

/* A connection, from its near end, which sends messages of @message bytes, to the far one. */
struct sender {
	struct weir_owner *owner;
	unsigned int weight;
	size_t message;
	struct weir_conn *near, *far;
	uint64_t sent; /* bytes that have been put into its ring */
	uint64_t received; /* and have come */
	uint64_t before; /* of these, when the looking began */
	char *buffer;
};

struct fair {
	struct weir_hub *client, *server;
	unsigned int class;
	struct weir_listener *listener;
	char address[64];
	struct weir_owner owners[3];
	struct sender senders[SENDERS_MAX];
	unsigned int count, nr_owners;
};

/* The low levels have one segment a connection in flight, and no more. */
static struct weir_hub *hub_open(const char *listen, const struct weir_mux_class *classes,
				 unsigned int nr)
{
	const struct weir_mux_options options = {
		.listen = listen, .key = fixture_key(), .classes = classes, .nr_classes = nr,
		.ring_bytes = RING, .low_bytes_max = 1,
	};
	struct weir_error error = { "" };
	struct weir_hub *hub = NULL;

	if (weir_hub_open(&options, &hub, &error))
		fail_msg("%s", error.text);
	return hub;
}

static void limit(struct weir_owner *owner, unsigned int weight, uint64_t bytes_s)
{
	pthread_mutex_lock(&owner->hub->lock);
	weir_owner_limit(owner, weight, bytes_s);
	pthread_mutex_unlock(&owner->hub->lock);
}

static void fair_open(struct fair *f, const struct weir_mux_class *classes, unsigned int nr)
{
	struct weir_mux_info info;
	char listen[64];
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->class = nr - 1;
	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	f->client = hub_open(NULL, classes, nr);
	f->server = hub_open(listen, classes, nr);
	weir_hub_info(f->server, &info);
	snprintf(f->address, sizeof(f->address), "%s", info.address);
	assert_int_equal(weir_mux_listen(&f->server->mux, SERVICE, SENDERS_MAX, &f->listener), 0);
	pthread_mutex_lock(&f->client->lock);
	for (i = 0; i < 3; i++)
		weir_owner_init(&f->owners[i], f->client);
	pthread_mutex_unlock(&f->client->lock);
}

/* They are connected one after another, so that each finds its own other end. */
static void add(struct fair *f, struct weir_owner *owner, unsigned int weight, size_t message)
{
	struct weir_conn_options options = { .class_nr = f->class, .weight = weight };
	struct sender *s = &f->senders[f->count++];
	unsigned int nr = (unsigned int)(owner - f->owners) + 1;
	struct weir_error error = { "" };
	struct weir_circuit *circuit;

	*s = (struct sender){ .owner = owner, .weight = weight, .message = message,
			      .buffer = malloc(MESSAGE_MAX) };
	assert_non_null(s->buffer);
	f->nr_owners = nr > f->nr_owners ? nr : f->nr_owners;
	if (weir_circuit_connect(owner, f->address, SERVICE, &options, &circuit, &error))
		fail_msg("%s", error.text);
	s->near = &circuit->app;
	while (weir_listener_accept(f->listener, &s->far) == -EAGAIN)
		sched_yield();
}

static void fair_close(struct fair *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		weir_conn_close(f->senders[i].near);
		weir_conn_close(f->senders[i].far);
		free(f->senders[i].buffer);
	}
	for (i = 0; i < 3; i++) {
		weir_hub_linger(f->client, &f->owners[i]);
		pthread_mutex_lock(&f->client->lock);
		assert_int_equal(f->owners[i].nr_conns, 0);
		weir_owner_fini(&f->owners[i]);
		pthread_mutex_unlock(&f->client->lock);
	}
	weir_listener_close(f->listener);
	weir_mux_close(&f->client->mux);
	weir_mux_close(&f->server->mux);
}

/* Nobody may send, or everybody as much as he can. */
static void gate(struct fair *f, bool open)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		limit(&f->owners[i], f->owners[i].weight, open ? 0 : 1);
}

static struct weir_circuit *circuit_of(struct weir_conn *conn)
{
	return container_of(conn, struct weir_circuit, app);
}

/* As many messages as fit into the ring, and of the last one a part. */
static void fill(struct sender *s)
{
	static char data[MESSAGE_MAX];

	while (!weir_conn_send(s->near, data, s->message, WEIR_CONN_DONTWAIT))
		;
	s->sent = circuit_of(s->near)->app.out.position;
}

/* Reads what has come. Return: whether that was all. */
static bool drain(struct sender *s)
{
	size_t length;

	while (!weir_conn_recv(s->far, s->buffer, MESSAGE_MAX, &length, WEIR_CONN_DONTWAIT))
		;
	return circuit_of(s->far)->app.in.position == s->sent;
}

/* Bytes that have come of each, at one moment. */
static void look(struct fair *f)
{
	unsigned int i;

	pthread_mutex_lock(&f->server->lock);
	for (i = 0; i < f->count; i++)
		f->senders[i].received = circuit_of(f->senders[i].far)->received;
	pthread_mutex_unlock(&f->server->lock);
}

/* Whether each has begun, and has much left in its ring and its window, whatever is in flight. */
static bool is_underway(const struct fair *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		const struct sender *s = &f->senders[i];
		uint64_t size = circuit_of(s->near)->size;

		if (s->received + size <= s->sent || s->sent - s->received < size / 2)
			return false;
	}
	return true;
}

/* What has come since the looking began, of one or of all of an owner's. */
static uint64_t came(const struct sender *s)
{
	return s->received - s->before;
}

static uint64_t came_of(const struct fair *f, const struct weir_owner *owner)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].owner == owner)
			bytes += came(&f->senders[i]);
	return bytes;
}

/* The rounds that have been seen of owners, if there are several, and else of connections. */
static unsigned int rounds_of(const struct fair *f)
{
	uint64_t rounds = UINT32_MAX;
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		const struct sender *s = &f->senders[i];
		uint64_t x = f->nr_owners > 1 ? came_of(f, s->owner) / s->owner->weight :
						came(s) / s->weight;

		if (x / SEGMENT < rounds)
			rounds = x / SEGMENT;
	}
	return (unsigned int)rounds;
}

/* What is due to one, of what all get. */
static double share_of(const struct fair *f, const struct sender *s)
{
	unsigned int i, weights = 0;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].owner == s->owner)
			weights += f->senders[i].weight;
	return (double)s->owner->weight * s->weight / weights;
}

/* Nobody is two segments ahead of another, each by his weight: of his owner's, and of all. */
static void judge(const struct fair *f)
{
	const uint64_t ahead = 2 * SEGMENT;
	unsigned int i, k;

	for (i = 0; i < f->count; i++)
		for (k = 0; k < f->count; k++) {
			const struct sender *a = &f->senders[i], *b = &f->senders[k];

			if (a->owner == b->owner)
				assert_true(came(a) / a->weight <= came(b) / b->weight + ahead);
			assert_true(came_of(f, a->owner) / a->owner->weight <=
				    came_of(f, b->owner) / b->owner->weight + ahead);
		}
}

/* (sum of x)^2 / (n * sum of x^2), of what each got by what is due to him. */
static double jain(const struct fair *f)
{
	double sum = 0, squares = 0;
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		double x = (double)came(&f->senders[i]) / share_of(f, &f->senders[i]);

		sum += x;
		squares += x * x;
	}
	return sum * sum / (f->count * squares);
}

/* All that is in the rings goes. Return: how many rounds were seen, as long as all took part. */
static unsigned int watch(struct fair *f)
{
	unsigned int i, rounds = 0;
	bool left = true;

	do {
		sched_yield();
		look(f);
	} while (!is_underway(f) && f->senders[0].received < f->senders[0].sent);
	for (i = 0; i < f->count; i++)
		f->senders[i].before = f->senders[i].received;
	while (is_underway(f)) {
		judge(f);
		rounds = rounds_of(f);
		if (rounds >= ROUNDS)
			assert_true(jain(f) >= 0.99);
		sched_yield();
		look(f);
	}
	while (left) {
		left = false;
		for (i = 0; i < f->count; i++)
			left |= !drain(&f->senders[i]);
		sched_yield();
	}
	return rounds;
}

/*
 * Until so many rounds have been looked at while all had something to send: on a machine that
 * never lets us look between, there is nothing to be seen.
 */
static void shares_are_as_they_should(struct fair *f)
{
	unsigned int i, rounds = 0, tries;

	for (tries = 0; tries < TRIES && rounds < ROUNDS; tries++) {
		gate(f, false);
		for (i = 0; i < f->count; i++)
			fill(&f->senders[i]);
		gate(f, true);
		rounds = watch(f);
	}
	if (rounds < ROUNDS)
		print_message("# all had been sent whenever we looked: nothing is known\n");
}

static void small_messages_get_as_much_as_large_ones(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	add(&f, &f.owners[0], 1, 1024);
	add(&f, &f.owners[0], 1, MESSAGE_MAX);
	add(&f, &f.owners[0], 1, 100);
	add(&f, &f.owners[0], 1, 65536);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

static void connections_share_by_their_weights(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	add(&f, &f.owners[0], 1, 1024);
	add(&f, &f.owners[0], 2, MESSAGE_MAX);
	add(&f, &f.owners[0], 4, 5000);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* And another weight holds for the connections that there are. */
static void owners_share_by_their_weights_however_many_connections_they_have(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	limit(&f.owners[1], 2, 0);
	limit(&f.owners[2], 4, 0);
	add(&f, &f.owners[0], 1, 1024);
	add(&f, &f.owners[0], 1, MESSAGE_MAX);
	add(&f, &f.owners[0], 2, 64);
	add(&f, &f.owners[1], 1, 1024);
	add(&f, &f.owners[2], 1, MESSAGE_MAX);
	shares_are_as_they_should(&f);
	limit(&f.owners[0], 2, 0);
	limit(&f.owners[2], 1, 0);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* So that more processes bring a user no more. */
static void owners_of_a_party_have_one_share_between_them(void **state)
{
	const struct weir_stake *stakes[3];
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	f.owners[1].party = f.owners[0].party;
	for (i = 0; i < 3; i++) {
		add(&f, &f.owners[i], 1, 1024);
		stakes[i] = circuit_of(f.senders[i].near)->stake;
	}
	assert_ptr_equal(stakes[0], stakes[1]);
	assert_ptr_not_equal(stakes[0], stakes[2]);
	fair_close(&f);
}

/* What is posted nobody overtakes: it is what an urgent message waits for. */
static void an_urgent_message_waits_for_one_segment_of_each_connection(void **state)
{
	struct sender *urgent;
	struct weir_mux_info info;
	unsigned int i, k;
	struct fair f;

	(void)state;
	fair_open(&f, two_levels, 2);
	for (i = 0; i < 4; i++)
		add(&f, &f.owners[i % 2], 1 + i, i % 2 ? 1024 : MESSAGE_MAX);
	f.class = WEIR_CLASS_URGENT;
	add(&f, &f.owners[2], 1, 1024);
	urgent = &f.senders[4];
	for (i = 0; i < 10 * TRIES; i++) {
		for (k = 0; k < 4; k++)
			fill(&f.senders[k]);
		assert_int_equal(weir_conn_send(urgent->near, urgent->buffer, 1024, 0), 0);
		urgent->sent = circuit_of(urgent->near)->app.out.position;
		for (k = 0; k < 5; k++)
			drain(&f.senders[k]);
		weir_hub_info(f.client, &info);
		assert_true(info.ahead_bytes_max <= 4 * SEGMENT);
		sched_yield();
	}
	fair_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_messages_get_as_much_as_large_ones),
		cmocka_unit_test(connections_share_by_their_weights),
		cmocka_unit_test(owners_share_by_their_weights_however_many_connections_they_have),
		cmocka_unit_test(owners_of_a_party_have_one_share_between_them),
		cmocka_unit_test(an_urgent_message_waits_for_one_segment_of_each_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
