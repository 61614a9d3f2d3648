// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The network: loses, repeats, delays and reorders messages. A stranger repeats them under its own
 * address, and must change no connection of another host.
 */
#include <string.h>

#include "cm_hunt.h"

const struct roce_cm_path paths[HOSTS + 1] = { { .peer = { 1 } },
					       { .peer = { 2 } },
					       { .peer = { 3 } } };

uint32_t call_of(const struct roce_mad *m)
{
	return (uint32_t)m->private_data[0] << 8 | m->private_data[1];
}

void set_call(struct roce_mad *m, uint32_t call)
{
	m->private_data[0] = (uint8_t)(call >> 8);
	m->private_data[1] = (uint8_t)call;
}

static bool is_request(const struct roce_mad *m)
{
	return m->kind == ROCE_MAD_REQ || m->kind == ROCE_MAD_SIDR_REQ;
}

bool is_on_the_way(const struct cm_hunt *h, uint32_t host, uint32_t qpn)
{
	const struct cm_hunt_letter *letter;
	struct roce_mad m;

	for (letter = h->letters; letter < h->letters + LETTERS; letter++)
		if (letter->is_used && letter->from == host &&
		    !roce_mad_decode(&m, letter->bytes, sizeof(letter->bytes)) &&
		    (m.kind == ROCE_MAD_REQ || m.kind == ROCE_MAD_REP) && m.qpn == qpn)
			return true;
	return false;
}

static struct cm_hunt_letter *free_letter(struct cm_hunt *h)
{
	uint32_t i;

	for (i = 0; i < LETTERS; i++)
		if (!h->letters[i].is_used)
			return &h->letters[i];
	return NULL; /* the network is full: the message is lost */
}

static void post(struct cm_hunt *h, const struct roce_mad *m, uint8_t from, uint8_t to)
{
	struct cm_hunt_letter *letter = free_letter(h);
	uint64_t delay_ns = TIMEOUT_NS / 8;

	if (!letter)
		return;
	if (!h->is_faithful && !draw(h, 8))
		delay_ns = 4 * TIMEOUT_NS;
	roce_mad_encode(m, letter->bytes);
	letter->from = from;
	letter->to = to;
	letter->due_ns = h->now_ns + 1 + sim_rng_below(&h->rng, delay_ns);
	letter->is_used = true;
}

void send_all(struct cm_hunt *h, uint8_t host)
{
	struct roce_mad m;
	struct roce_cm_path path;
	uint8_t to;

	while (roce_cm_next_mad(&h->hosts[host].cm, &m, &path)) {
		if (is_request(&m))
			expect(h, ++h->calls[call_of(&m)].requests <= 1 + RETRIES,
			       "host %u repeats a request too often", host);
		to = (uint8_t)(path.peer[0] - 1);
		if (to == STRANGER)
			continue;
		if (h->is_faithful || !chance(h, h->loss))
			post(h, &m, host, to);
		if (!h->is_faithful && chance(h, h->repeat))
			post(h, &m, host, to);
		if (chance(h, h->stranger))
			post(h, &m, STRANGER, to);
	}
}

/* No room for a request of another host. */
static bool is_full(const struct cm_hunt_host *host)
{
	uint32_t i, nr_free = 0;

	for (i = 0; i < CONNS; i++)
		nr_free += host->conns[i].state == ROCE_CM_FREE;
	return nr_free <= CONNS / ROCE_CM_KEPT;
}

/* Nothing that a stranger sends changes a connection with another host. */
static void expect_unchanged(struct cm_hunt *h, uint8_t host, const struct roce_cm_conn *before)
{
	const struct roce_cm_conn *conns = h->hosts[host].conns;
	uint32_t i;

	for (i = 0; i < CONNS; i++)
		expect(h,
		       before[i].state == ROCE_CM_FREE || before[i].path.peer[0] == STRANGER + 1 ||
			       !memcmp(&before[i], &conns[i], sizeof(conns[i])),
		       "host %u obeys a stranger", host);
}

/* The connection that is established, or has ended since, and that a message names. */
static const struct roce_cm_conn *named(const struct cm_hunt_host *to, const struct roce_mad *m,
					uint8_t from)
{
	uint32_t i;

	for (i = 0; i < CONNS; i++) {
		const struct roce_cm_conn *conn = &to->conns[i];

		if (conn->path.peer[0] == from + 1 && conn->local_id == m->remote_id &&
		    conn->remote_id == m->local_id && !conn->is_sidr &&
		    (conn->state == ROCE_CM_ESTABLISHED || conn->state == ROCE_CM_TIMEWAIT))
			return conn;
	}
	return NULL;
}

/* A peer that repeats itself has missed the answer. */
static void expect_answered(struct cm_hunt *h, uint8_t host, const struct roce_mad *m,
			    const struct roce_cm_conn *conn)
{
	if (m->kind == ROCE_MAD_REP && conn->state == ROCE_CM_ESTABLISHED)
		expect(h, conn->sends_reply, "host %u does not confirm again", host);
	if (m->kind == ROCE_MAD_DREQ)
		expect(h, conn->sends_reply, "host %u does not answer a DREQ", host);
}

void arrive(struct cm_hunt *h, struct cm_hunt_letter *letter)
{
	struct cm_hunt_host *to = &h->hosts[letter->to];
	const struct roce_cm_conn *conn;
	struct roce_cm_conn before[CONNS];
	struct roce_mad m;

	letter->is_used = false;
	expect(h, !roce_mad_decode(&m, letter->bytes, sizeof(letter->bytes)),
	       "a message cannot be read");
	memcpy(before, to->conns, sizeof(before));
	if (is_request(&m) && is_full(to))
		h->calls[call_of(&m)].is_crowded = true;
	conn = named(to, &m, letter->from);
	roce_cm_received(&to->cm, &m, &paths[letter->from], h->now_ns);
	if (conn)
		expect_answered(h, letter->to, &m, conn);
	if (letter->from == STRANGER)
		expect_unchanged(h, letter->to, before);
}
