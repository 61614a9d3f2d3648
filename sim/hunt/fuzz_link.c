/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client and a donor on one channel, in virtual time. First the handshake, over a network that
 * loses, repeats, changes and replays messages, with right and wrong keys: no end is admitted
 * without the key. Then messages by credits and calls, over a channel that is slow and breaks: no
 * end overruns the other's buffers, each call ends once, and no granted region is forgotten.
 */
#include <string.h>

#include "core/link/call_table.h"
#include "core/link/credit.h"
#include "core/link/handshake.h"
#include "core/link/toy_noise.h"
#include "sim/hunt/hunt.h"

#define ATTEMPTS 6 /* handshakes */
#define IDENTITY 1 /* secret of the donor that clients pin */
#define HEARD_MAX 32 /* messages that the network remembers */
#define STEPS 1000
#define DRAIN_MAX 10000
#define CALLS_MAX 400
#define ENTRIES 32
#define PHASE 50 /* steps with or without reading and answers */
#define QUEUE 256
#define TIMEOUT_NS_MAX 40

struct fuzz_letter {
	uint8_t bytes[WIRE_HANDSHAKE_MAX];
	size_t length;
};

/* A control message: calls and replies say which call they belong to. */
struct fuzz_control {
	struct wire_control_head head;
	struct wire_control_region region;
	uint32_t call;
	bool is_close;
};

struct fuzz_queue {
	struct fuzz_control messages[QUEUE];
	uint32_t head, tail;
};

/* @in: sent to this end, not yet read; @reads: whether it reads now; @out: waits for credits */
struct fuzz_end {
	struct weir_credit credit;
	struct fuzz_queue in, out;
	bool reads;
};

/**
 * struct fuzz_link - both ends and the model
 * @heard: messages of all handshakes so far
 * @callers: per entry: the call
 * @ended: per call: how often the caller was told
 * @old: a reply that came long ago
 * @answers: whether the donor answers now
 * @open: calls that the donor has not answered; @nr_open: their number
 * @is_held: per hold: the donor has it; @is_known: a caller has it, or its reply was lost
 */
struct fuzz_link {
	struct hunt *hunt;
	struct sim_rng rng;
	uint64_t now_ns;
	struct fuzz_letter heard[HEARD_MAX];
	uint32_t nr_heard;
	struct fuzz_end client, donor;
	uint16_t clients_credits, donors_credits;
	struct weir_call_entry entries[ENTRIES];
	struct weir_call_table calls;
	uint32_t callers[ENTRIES];
	uint32_t nr_calls, ended[CALLS_MAX];
	struct fuzz_control old;
	bool answers;
	struct fuzz_control open[QUEUE];
	uint32_t nr_open;
	bool is_held[2 * CALLS_MAX], is_known[2 * CALLS_MAX];
	uint32_t nr_holds;
};

static uint32_t draw(struct fuzz_link *f, uint32_t count)
{
	return (uint32_t)sim_rng_below(&f->rng, count);
}

static void record(struct fuzz_link *f, const struct fuzz_letter *m)
{
	if (m->length)
		f->heard[f->nr_heard++ % HEARD_MAX] = *m;
}

/* What arrives of @m: mostly @m, or another message, or a changed one, or none. */
static void transmit(struct fuzz_link *f, struct fuzz_letter *m, bool *is_faithful)
{
	uint32_t fate = draw(f, 40);

	record(f, m);
	if (fate > 3)
		return;
	*is_faithful = false;
	if (!fate)
		m->length = 0;
	else if (fate == 1)
		*m = f->heard[draw(f, f->nr_heard < HEARD_MAX ? f->nr_heard : HEARD_MAX)];
	else if (fate == 2 && m->length)
		m->bytes[draw(f, (uint32_t)m->length)] ^= (uint8_t)(1 << draw(f, 8));
	else if (m->length)
		m->length -= 1 + draw(f, (uint32_t)m->length);
}

static void refuse_repeated(struct fuzz_link *f, struct weir_handshake *h, struct fuzz_letter *in,
			    bool *is_faithful)
{
	*is_faithful = false;
	weir_handshake_received(h, in->bytes, in->length, in->bytes, &in->length);
	hunt_expect(f->hunt, h->state == WEIR_HANDSHAKE_FAILED,
		    "a handshake goes on after a repeated message");
}

/* Gives @h a message, sometimes twice. @m becomes the answer. */
static void take_letter(struct fuzz_link *f, struct weir_handshake *h, struct fuzz_letter *m,
			bool *is_faithful)
{
	const struct wire_handshake_welcome welcome = { .session_id = 7 };
	struct fuzz_letter in = *m;
	int rc;

	rc = weir_handshake_received(h, in.bytes, in.length, m->bytes, &m->length);
	if (!rc && !draw(f, 30)) {
		refuse_repeated(f, h, &in, is_faithful);
		m->length = 0;
		return;
	}
	if (!rc && h->state == WEIR_HANDSHAKE_PROVEN)
		weir_handshake_admit(h, &welcome, m->bytes, &m->length);
	if (!draw(f, 30) && h->state != WEIR_HANDSHAKE_DONE)
		refuse_repeated(f, h, &in, is_faithful);
}

static void draw_setup(struct fuzz_link *f, struct weir_handshake_setup *setup, uint32_t key,
		       uint8_t identity)
{
	uint32_t i;

	memset(setup, 0, sizeof(*setup));
	setup->crypto = &toy_noise;
	for (i = 0; i < WEIR_NOISE_KEY; i++)
		setup->ephemeral.secret[i] = (uint8_t)draw(f, 256);
	setup->psk[0] = (uint8_t)key;
	setup->identity.secret[0] = identity;
	weir_noise_pair_init(&setup->identity, setup->crypto);
}

static void check_admission(struct fuzz_link *f, const struct weir_handshake *client,
			    const struct weir_handshake *donor, bool may, bool is_faithful)
{
	bool is_in = donor->state == WEIR_HANDSHAKE_DONE, is_out = client->state == donor->state;

	hunt_expect(f->hunt, may || (!is_in && client->state != WEIR_HANDSHAKE_DONE),
		    "an end without the key, or of another identity, QP or service, is admitted");
	hunt_expect(f->hunt, !is_in || !memcmp(&client->hello, &donor->hello, sizeof(donor->hello)),
		    "the donor admits a client that sent another HELLO");
	hunt_expect(f->hunt, client->state != WEIR_HANDSHAKE_DONE || is_in,
		    "the client is done and the donor is not");
	hunt_expect(f->hunt, !may || !is_faithful || (is_in && is_out),
		    "an honest client is not admitted");
}

static void shake_hands(struct fuzz_link *f)
{
	uint32_t clients_key = draw(f, 2), donors_key = draw(f, 4) ? clients_key : 2;
	bool is_posing = !draw(f, 8), is_pinned = is_posing || draw(f, 2);
	struct weir_handshake_setup setup;
	struct weir_handshake client, donor;
	bool is_faithful = true, is_relayed = !draw(f, 4), is_redirected = !draw(f, 8);
	uint8_t pin[1][WIRE_KEY];
	struct fuzz_letter m;
	uint32_t i;

	draw_setup(f, &setup, clients_key, IDENTITY);
	memcpy(pin, setup.identity.public, sizeof(pin));
	setup.pins = pin;
	setup.nr_pins = is_pinned;
	setup.local.qpn = 1;
	setup.remote.qpn = is_relayed ? 3 : 2;
	setup.service.port = is_redirected;
	weir_handshake_client(&client, &setup, m.bytes, &m.length);
	draw_setup(f, &setup, donors_key, is_posing ? IDENTITY + 2 : IDENTITY);
	setup.local.qpn = 2;
	setup.remote.qpn = is_relayed && draw(f, 2) ? 3 : 1;
	weir_handshake_donor(&donor, &setup);
	for (i = 0; i < 2; i++) {
		transmit(f, &m, &is_faithful);
		take_letter(f, &donor, &m, &is_faithful);
		transmit(f, &m, &is_faithful);
		take_letter(f, &client, &m, &is_faithful);
	}
	check_admission(f, &client, &donor,
			clients_key == donors_key && !is_relayed && !is_redirected && !is_posing,
			is_faithful);
}

static void push(struct fuzz_queue *q, const struct fuzz_control *m)
{
	q->messages[q->tail++ % QUEUE] = *m;
}

static bool pop(struct fuzz_queue *q, struct fuzz_control *m)
{
	if (q->head == q->tail)
		return false;
	*m = q->messages[q->head++ % QUEUE];
	return true;
}

static void post(struct fuzz_link *f, struct fuzz_end *from, struct fuzz_end *to,
		 struct fuzz_control m)
{
	m.head.credits = weir_credit_spend(&from->credit);
	push(&to->in, &m);
	hunt_expect(f->hunt, to->in.tail - to->in.head <= to->credit.ours,
		    "an end with %u buffers is sent more messages", to->credit.ours);
}

/* Sends as far as the credits go. */
static void flush(struct fuzz_link *f, struct fuzz_end *from, struct fuzz_end *to)
{
	static const struct fuzz_control credit = { .head.kind = WIRE_CONTROL_CREDIT };
	struct fuzz_control m;

	while (weir_credit_has_room(&from->credit) && pop(&from->out, &m))
		post(f, from, to, m);
	if (weir_credit_is_due(&from->credit))
		post(f, from, to, credit);
}

/* When all messages are read, both ends have credits for more. */
static void flush_both(struct fuzz_link *f)
{
	flush(f, &f->client, &f->donor);
	flush(f, &f->donor, &f->client);
	hunt_expect(f->hunt,
		    f->client.in.head != f->client.in.tail ||
			    f->donor.in.head != f->donor.in.tail ||
			    (weir_credit_has_room(&f->client.credit) &&
			     weir_credit_has_room(&f->donor.credit)),
		    "nothing is in flight, and an end has no credits");
}

static void end_call(struct fuzz_link *f, uint32_t index)
{
	uint32_t call = f->callers[index];

	hunt_expect(f->hunt, !f->ended[call]++, "call %u ends twice", call);
}

static void begin_call(struct fuzz_link *f, uint64_t hold)
{
	struct fuzz_control m = { .head.kind = WIRE_CONTROL_CALL, .region.hold = hold };
	int index;

	if (f->nr_calls == CALLS_MAX || f->client.out.tail - f->client.out.head > ENTRIES)
		return;
	index = weir_call_table_begin(&f->calls, f->now_ns + 1 + draw(f, TIMEOUT_NS_MAX), hold);
	hunt_expect(f->hunt, index >= 0 || !hold, "no call can return a hold");
	if (index < 0)
		return;
	m.call = f->nr_calls++;
	m.is_close = hold;
	m.head.tag = f->entries[index].tag;
	f->callers[index] = m.call;
	if (!draw(f, 20)) {
		weir_call_table_cancel(&f->calls, (uint32_t)index);
		f->ended[m.call]++;
		return;
	}
	push(&f->client.out, &m);
}

/* A reply reaches its own caller, if that still waits. */
static void take_reply(struct fuzz_link *f, const struct fuzz_control *m)
{
	unsigned int index = 0;
	int rc = weir_call_table_reply(&f->calls, &m->head, &m->region, &index);

	hunt_expect(f->hunt, rc == 0 || rc == -ESTALE, "a reply is refused: %d", rc);
	hunt_expect(f->hunt, f->callers[index] == m->call, "the reply of call %u goes to call %u",
		    m->call, f->callers[index]);
	if (rc)
		return;
	end_call(f, index);
	f->is_known[m->region.hold] |= m->head.length;
}

static void read_client(struct fuzz_link *f)
{
	struct fuzz_control m;
	unsigned int index;

	if (!f->client.reads || !pop(&f->client.in, &m))
		return;
	hunt_expect(f->hunt, !weir_credit_received(&f->client.credit, m.head.credits),
		    "the donor grants credits that it does not have");
	if (m.head.kind != WIRE_CONTROL_REPLY)
		return;
	take_reply(f, &m);
	if (draw(f, 4))
		m = f->old;
	hunt_expect(f->hunt,
		    weir_call_table_reply(&f->calls, &m.head, &m.region, &index) == -EPROTO,
		    "a repeated reply is taken");
	if (!draw(f, 4))
		f->old = m;
}

static void read_donor(struct fuzz_link *f)
{
	struct fuzz_control m;

	if (!f->donor.reads || !pop(&f->donor.in, &m))
		return;
	hunt_expect(f->hunt, !weir_credit_received(&f->donor.credit, m.head.credits),
		    "the client grants credits that it does not have");
	if (m.head.kind == WIRE_CONTROL_CALL)
		f->open[f->nr_open++] = m;
}

/* The donor answers any of its open calls: grants a region, takes one back, or neither. */
static void answer_call(struct fuzz_link *f)
{
	struct fuzz_control m, *open;

	if (!f->answers || !f->nr_open)
		return;
	open = &f->open[draw(f, f->nr_open)];
	m = *open;
	*open = f->open[--f->nr_open];
	m.head.kind = WIRE_CONTROL_REPLY;
	if (m.is_close) {
		f->is_held[m.region.hold] = false;
	} else if (draw(f, 2)) {
		m.region.hold = ++f->nr_holds;
		f->is_held[m.region.hold] = true;
		m.head.length = sizeof(m.region);
	}
	push(&f->donor.out, &m);
}

static void expire(struct fuzz_link *f, uint64_t now_ns)
{
	int index;

	f->now_ns = now_ns;
	while ((index = weir_call_table_expire(&f->calls, now_ns)) >= 0) {
		hunt_expect(f->hunt, f->entries[index].deadline_ns <= now_ns,
			    "a call expires before its deadline");
		end_call(f, (uint32_t)index);
	}
}

static void lose_replies(struct fuzz_link *f, struct fuzz_queue *q)
{
	struct fuzz_control m;

	while (pop(q, &m))
		if (m.head.kind == WIRE_CONTROL_REPLY && m.head.length)
			f->is_known[m.region.hold] = true; /* the donor frees it with the session */
}

static void connect_ends(struct fuzz_link *f)
{
	weir_credit_init(&f->client.credit, f->clients_credits, f->donors_credits);
	weir_credit_init(&f->donor.credit, f->donors_credits, f->clients_credits);
}

/* All messages in flight are lost; the client's unsent calls go over the next channel. */
static void break_channel(struct fuzz_link *f)
{
	uint32_t i;

	lose_replies(f, &f->client.in);
	lose_replies(f, &f->donor.out);
	f->donor.in.head = f->donor.in.tail;
	f->nr_open = 0;
	for (i = f->client.out.head; i != f->client.out.tail; i++)
		weir_call_table_keep(&f->calls, f->client.out.messages[i % QUEUE].head.tag);
	for (i = 0; i < ENTRIES; i++)
		if (weir_call_table_broken(&f->calls, i))
			end_call(f, i);
	connect_ends(f);
}

static void step(struct fuzz_link *f)
{
	uint32_t what = draw(f, 100);

	if (what < 20)
		begin_call(f, 0);
	else if (what < 25)
		begin_call(f, weir_call_table_granted(&f->calls));
	else if (what < 45)
		read_client(f);
	else if (what < 65)
		read_donor(f);
	else if (what < 88)
		answer_call(f);
	else if (what < 99)
		expire(f, f->now_ns + draw(f, TIMEOUT_NS_MAX / 4));
	else
		break_channel(f);
	flush_both(f);
}

static bool is_quiet(const struct fuzz_link *f)
{
	return f->client.in.head == f->client.in.tail && f->donor.in.head == f->donor.in.tail &&
	       f->client.out.head == f->client.out.tail && f->donor.out.head == f->donor.out.tail &&
	       !f->nr_open;
}

/* Both ends finish what they have begun. The only new calls are those that return holds. */
static void drain(struct fuzz_link *f)
{
	uint32_t i, hold;

	f->client.reads = f->donor.reads = f->answers = true;
	for (i = 0; i < DRAIN_MAX && !*f->hunt->why; i++) {
		hold = (uint32_t)weir_call_table_granted(&f->calls);
		if (hold && f->nr_calls < CALLS_MAX)
			begin_call(f, hold);
		else if (is_quiet(f))
			break;
		read_client(f);
		read_donor(f);
		answer_call(f);
		flush_both(f);
	}
	hunt_expect(f->hunt, i < DRAIN_MAX, "the ends do not come to rest");
}

static void check_end(struct fuzz_link *f)
{
	uint32_t i;

	expire(f, UINT64_MAX);
	for (i = 0; i < f->nr_calls; i++)
		hunt_expect(f->hunt, f->ended[i] == 1, "call %u ends %u times", i, f->ended[i]);
	for (i = 0; i < ENTRIES && f->nr_calls < CALLS_MAX; i++)
		hunt_expect(f->hunt, f->entries[i].state == WEIR_CALL_FREE,
			    "entry %u is in use after all calls", i);
	for (i = 1; i <= f->nr_holds && f->nr_calls < CALLS_MAX; i++)
		hunt_expect(f->hunt, !f->is_held[i] || f->is_known[i],
			    "region %u is granted and forgotten", i);
}

void hunt_link(struct hunt *h, uint64_t seed)
{
	static _Thread_local struct fuzz_link f;
	uint32_t i;

	memset(&f, 0, sizeof(f));
	f.hunt = h;
	sim_rng_init(&f.rng, seed, "link", 0);
	for (i = 0; i < ATTEMPTS && !*h->why; i++)
		shake_hands(&f);
	f.clients_credits = (uint16_t)(WEIR_CREDITS_MIN + draw(&f, 3));
	f.donors_credits = (uint16_t)(WEIR_CREDITS_MIN + draw(&f, 3));
	weir_call_table_init(&f.calls, f.entries, ENTRIES);
	connect_ends(&f);
	for (i = 0; i < STEPS && !*h->why; i++) {
		if (i % PHASE == 0) {
			f.client.reads = draw(&f, 3);
			f.donor.reads = draw(&f, 3);
			f.answers = draw(&f, 3);
		}
		step(&f);
	}
	drain(&f);
	check_end(&f);
	hunt_note(h, "link", f.nr_calls, f.nr_holds, (int64_t)f.calls.generation);
}
