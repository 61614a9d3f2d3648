// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "softnic/loop/loop.h"
#include "softnic/udp/neighbor.h"
#include "softnic/udp/question.h"
#include "softnic/verbs/nic.h"

enum {
	NEIGHBORS = 1024,
	PROBES = 8, /* places that one destination may have */
	QUESTIONS_MAX = 7, /* without an answer: no softnic, or none any more; at first 1.9 s */
	DOUBLINGS_MAX = 5, /* of FIRST_WAIT_NS */
	ANSWERS_MAX = 4096, /* in ANSWERS_NS: anybody may ask, and an answer takes a lock */
};

#define FIRST_WAIT_NS 20000000ull /* after the first question */
#define RENEW_NS 1000000000ull
#define ANSWERS_NS 1000000000ull
#define ENDED_NS 1000000000ull

/*
 * A destination. Before an answer, or after a refusal, it is no softnic.
 * @unanswered: questions since the last answer, that included; at most QUESTIONS_MAX + 1
 * @ended_ns: when its process ended; 0: never
 */
struct neighbor {
	struct udp_address at;
	uint64_t nonce, asked_ns, ended_ns;
	uint32_t unanswered;
	bool is_softnic, is_refused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static struct neighbor neighbors[NEIGHBORS]; /* under lock; port 0: free */
static uint64_t answers_since_ns; /* under lock: begin of the period in which */
static uint32_t answers; /* so many answers went out */

static bool is_at(const struct neighbor *n, const struct udp_address *at)
{
	return n->at.port == at->port && n->at.ifindex == at->ifindex &&
	       !memcmp(&n->at.gid, &at->gid, sizeof(at->gid));
}

static uint32_t first_place(const struct udp_address *at)
{
	uint32_t hash = at->port, i;

	for (i = 0; i < sizeof(at->gid.raw); i++)
		hash = (hash ^ at->gid.raw[i]) * 16777619u;
	return hash ^ hash >> 16;
}

/* Returns the destination, or NULL with the place of a free or the longest unused one in @place. */
static struct neighbor *find_neighbor(const struct udp_address *at,
				      struct neighbor **place)
{
	uint32_t first = first_place(at), i;

	*place = NULL;
	for (i = 0; i < PROBES; i++) {
		struct neighbor *n = &neighbors[(first + i) % NEIGHBORS];

		if (is_at(n, at))
			return n;
		if (!*place || n->asked_ns < (*place)->asked_ns)
			*place = n;
	}
	return NULL;
}

/* As the table has it: the interface counts for link-local addresses only. */
static struct udp_address key_of(const struct udp_address *at)
{
	struct udp_address key = *at;

	if (!IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)at->gid.raw))
		key.ifindex = 0;
	return key;
}

/* Returns NULL without a random number. */
static struct neighbor *get(const struct udp_address *at)
{
	struct neighbor *place, *n = find_neighbor(at, &place);
	uint64_t nonce;

	if (n)
		return n;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return NULL;
	*place = (struct neighbor){ .at = *at, .nonce = nonce };
	return place;
}

/* Nothing is known yet. A process of a busy host pauses, so the time for an answer is generous. */
static bool is_open(const struct neighbor *n)
{
	return !n->is_softnic && !n->is_refused && n->unanswered <= QUESTIONS_MAX;
}

static uint64_t wait_ns(const struct neighbor *n)
{
	uint32_t doublings = n->unanswered - 1;

	if (!is_open(n))
		return RENEW_NS;
	return FIRST_WAIT_NS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
}

/* Is it time for a question? Then it counts as asked. */
static bool begin_question(struct neighbor *n, uint64_t now_ns)
{
	if (n->unanswered && now_ns - n->asked_ns < wait_ns(n))
		return false;
	n->asked_ns = now_ns;
	if (n->unanswered <= QUESTIONS_MAX)
		n->unanswered++;
	else
		n->is_softnic = false;
	return true;
}

static uint16_t port_of(const struct neighbor *n)
{
	return n->is_softnic ? n->at.port : is_open(n) ? 0 : UDP_ROCE_PORT;
}

static void ask(const struct udp_path *path, uint32_t qpn, uint64_t nonce)
{
	const struct question q = { QUESTION, qpn, nonce };

	send_begin();
	question_encode(&q, send_room(), QUESTION_BYTES_MIN);
	send_packet(path, QUESTION_BYTES_MIN);
	send_end();
}

uint16_t neighbor_port(const struct udp_path *path, uint32_t qpn)
{
	struct udp_path to_own = *path;
	uint64_t now_ns = softnic_loop_now_ns(), nonce = 0;
	uint16_t port = UDP_ROCE_PORT;
	bool asks = false;
	struct udp_address key;
	struct neighbor *n;

	to_own.to.port = udp_socket_port_of_qpn(qpn);
	if (!udp_port_is_softnic(to_own.to.port)) /* the number of another device's queue pair */
		return UDP_ROCE_PORT;
	key = key_of(&to_own.to);
	pthread_mutex_lock(&lock);
	n = get(&key);
	if (n) {
		asks = begin_question(n, now_ns);
		nonce = n->nonce;
		port = port_of(n);
	}
	pthread_mutex_unlock(&lock);
	if (asks)
		ask(&to_own, qpn, nonce);
	return port;
}

static void take_answer(const struct udp_address *from, uint64_t nonce)
{
	const struct udp_address key = key_of(from);
	struct neighbor *unused, *n;

	pthread_mutex_lock(&lock);
	n = find_neighbor(&key, &unused);
	if (n && n->nonce == nonce) {
		n->is_softnic = true;
		n->is_refused = false;
		n->unanswered = 1;
	}
	pthread_mutex_unlock(&lock);
}

static bool may_answer(void)
{
	uint64_t now_ns = softnic_loop_now_ns();
	bool may;

	pthread_mutex_lock(&lock);
	if (now_ns - answers_since_ns >= ANSWERS_NS) {
		answers_since_ns = now_ns;
		answers = 0;
	}
	may = answers < ANSWERS_MAX;
	answers += may;
	pthread_mutex_unlock(&lock);
	return may;
}

/* @size: without the ICRC */
static void answer(const struct udp_packet *packet, const struct question *q, size_t size)
{
	const struct udp_path back = { packet->to.gid, packet->from };
	const struct question a = {
		.kind = ANSWER,
		.dest_qpn = (packet->from.port - UDP_PORT_BASE) << SOFTNIC_QP_INDEX_BITS,
		.nonce = q->nonce,
	};

	send_begin();
	question_encode(&a, send_room(), size);
	if (q->kind == QUESTION_SAME_PORT && packet->to.port == UDP_ROCE_PORT)
		send_from_roce_port(&back, size);
	else
		send_packet(&back, size);
	send_end();
}

void neighbor_take(const struct udp_packet *packet)
{
	size_t size = packet->size - ROCE_ICRC_BYTES;
	struct question q;

	if (packet->was_passed_on || !udp_port_is_softnic(packet->from.port) ||
	    size > ROCE_PACKET_MAX || !question_decode(&q, packet->bytes))
		return;
	if (q.kind != ANSWER && may_answer())
		answer(packet, &q, size);
	else if (q.kind == ANSWER && packet->to.port == udp.port)
		take_answer(&packet->from, q.nonce);
}

void neighbor_refused(const struct udp_address *to)
{
	const struct udp_address key = key_of(to);
	struct neighbor *unused, *n;

	pthread_mutex_lock(&lock);
	n = find_neighbor(&key, &unused);
	if (n) {
		n->is_softnic = false;
		n->is_refused = true;
	}
	pthread_mutex_unlock(&lock);
}

void neighbor_ended(const struct udp_address *to)
{
	const struct udp_address key = key_of(to);
	struct neighbor *n;

	pthread_mutex_lock(&lock);
	n = get(&key);
	if (n)
		n->ended_ns = softnic_loop_now_ns();
	pthread_mutex_unlock(&lock);
}

bool neighbor_has_ended(const struct udp_address *to)
{
	const struct udp_address key = key_of(to);
	struct neighbor *unused, *n;
	bool has;

	pthread_mutex_lock(&lock);
	n = find_neighbor(&key, &unused);
	has = n && n->ended_ns && softnic_loop_now_ns() - n->ended_ns < ENDED_NS;
	pthread_mutex_unlock(&lock);
	return has;
}

void neighbor_reset(void)
{
	memset(neighbors, 0, sizeof(neighbors));
	pthread_mutex_init(&lock, NULL);
}
