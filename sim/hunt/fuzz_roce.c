/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The network of the transport's hunt, and its time. */
#include "sim/hunt/fuzz_roce.h"
#include "softnic/roce/psn.h"

#define MESSAGES 30 /* of an end, at least */
#define MESSAGE_NS 50000 /* about */
#define EVENTS_PER_MESSAGE 10000
#define DELAY_NS_MAX 20000
#define LATE_NS_MAX 300000
#define TIMEOUT 6 /* 262 us */
#define RETRIES 12 /* a bad network loses one try in five; 10^8 packets must not lose 13 in a row */
#define PAUSE_NS_MAX 10000
#define EARLY_NS_MAX 100000
#define IDLE_NS_MIN 1000000 /* beyond the time of a late packet and its answer */
#define BURST 8 /* posts or receives at a time */

static const struct roce_flow flow = { .src_port = 0xc000, .dst_port = 4791 };

static void launch(struct fuzz_roce *f, struct fuzz_roce_end *to, const uint8_t *bytes, size_t size)
{
	struct fuzz_roce_flight *flight = &f->flying[f->nr_flying];
	uint32_t delay_ns = hunt_dice(&f->rng, f->late) ? LATE_NS_MAX : DELAY_NS_MAX;

	if (f->nr_flying == FUZZ_ROCE_FLYING)
		return; /* a full queue in the network */
	f->nr_flying++;
	flight->to = to;
	flight->at_ns = f->now_ns + (f->delay_ns ? f->delay_ns : 1 + fuzz_roce_draw(f, delay_ns));
	flight->size = size;
	memcpy(flight->bytes, bytes, size);
	if (hunt_dice(&f->rng, f->corrupt))
		flight->bytes[fuzz_roce_draw(f, (uint32_t)size)] ^= 1 << fuzz_roce_draw(f, 8);
}

/* A request past a gap, or the acknowledgement of a packet that is posted but not yet sent. */
static void forge(struct fuzz_roce *f, struct fuzz_roce_end *to)
{
	const struct roce_requester *r = &to->qp.req;
	struct roce_packet p = { .pkey = ROCE_PKEY_DEFAULT, .dest_qpn = to->qp.config.qpn };

	if (r->sent == r->posted || fuzz_roce_draw(f, 2)) {
		p.opcode = ROCE_FETCH_ADD;
		p.psn = roce_psn_wire(to->qp.resp.expected + 1000 + fuzz_roce_draw(f, 1000));
	} else {
		p.opcode = ROCE_ACK;
		p.syndrome = ROCE_CREDITS_UNKNOWN;
		p.psn = roce_psn_wire(r->sent + fuzz_roce_draw(f, (uint32_t)(r->posted - r->sent)));
	}
	roce_qp_input(&to->qp, &p, NULL, f->now_ns);
}

/* One NAK a gap: a responder that repeats a NAK multiplies packets. */
static void watch(struct fuzz_roce_end *from, const uint8_t *bytes, size_t size)
{
	struct roce_packet p;

	hunt_expect(from->world->hunt, !roce_packet_decode(&p, bytes, size),
		    "roce: a malformed packet is sent");
	if (p.opcode != ROCE_ACK || p.syndrome != ROCE_NAK_SEQUENCE)
		return;
	hunt_expect(from->world->hunt, from->last_nak != (int64_t)p.psn,
		    "roce: a second NAK for one gap");
	from->last_nak = p.psn;
}

static void send(struct fuzz_roce_end *end)
{
	struct fuzz_roce *f = end->world;
	uint8_t bytes[ROCE_PACKET_MAX];
	uint64_t path;
	size_t size;

	while ((size = roce_qp_output(&end->qp, bytes, &path, f->now_ns))) {
		size = roce_icrc_append(&flow, bytes, size);
		watch(end, bytes, size);
		if (f->now_ns < f->dead_ns && !hunt_dice(&f->rng, f->drop))
			launch(f, end->peer, bytes, size);
		if (f->now_ns < f->dead_ns && hunt_dice(&f->rng, f->repeat))
			launch(f, end->peer, bytes, size);
		if (hunt_dice(&f->rng, f->forge))
			forge(f, end->peer);
	}
	fuzz_roce_complete(end);
}

static void arrive(struct fuzz_roce *f, uint32_t i)
{
	static const uint8_t grh[ROCE_GRH_BYTES];
	struct fuzz_roce_flight flight = f->flying[i];
	struct roce_packet p;

	memmove(&f->flying[i], &f->flying[i + 1], (--f->nr_flying - i) * sizeof(f->flying[i]));
	f->packets++;
	if (roce_packet_decode(&p, flight.bytes, flight.size))
		return;
	if (!roce_icrc_is_right(&flow, flight.bytes, flight.size))
		return;
	fuzz_roce_announce(flight.to, p.psn);
	roce_qp_input(&flight.to->qp, &p, grh, f->now_ns);
}

static void post(struct fuzz_roce_end *end)
{
	struct fuzz_roce *f = end->world;
	uint32_t i, posts = fuzz_roce_draw(f, BURST);

	for (i = 0; i < posts; i++)
		fuzz_roce_post(end);
	if (end->receives < FUZZ_ROCE_WQES)
		end->receives += fuzz_roce_draw(f, BURST);
	end->post_ns = f->now_ns + 1 + fuzz_roce_draw(f, PAUSE_NS_MAX);
	end->is_revoked = end == &f->ends[1] && f->now_ns >= f->revoke_ns;
}

/* The earliest event: a packet, a deadline or a post. */
static void step(struct fuzz_roce *f)
{
	uint64_t at_ns = ROCE_NEVER, deadline_ns;
	uint32_t i, first = f->nr_flying;

	for (i = 0; i < f->nr_flying; i++)
		if (f->flying[i].at_ns < at_ns) {
			at_ns = f->flying[i].at_ns;
			first = i;
		}
	for (i = 0; i < 2; i++) {
		deadline_ns = roce_qp_deadline_ns(&f->ends[i].qp);
		deadline_ns = deadline_ns < f->ends[i].post_ns ? deadline_ns : f->ends[i].post_ns;
		if (deadline_ns < at_ns) {
			at_ns = deadline_ns;
			first = f->nr_flying;
		}
	}
	f->now_ns = at_ns > f->now_ns ? at_ns : f->now_ns;
	if (first < f->nr_flying)
		arrive(f, first);
	for (i = 0; i < 2; i++) {
		roce_qp_expired(&f->ends[i].qp, f->now_ns);
		if (f->ends[i].post_ns <= f->now_ns)
			post(&f->ends[i]);
		send(&f->ends[i]);
	}
}

static void connect(struct fuzz_roce *f)
{
	uint32_t i, psns[2], window = 1 + fuzz_roce_draw(f, 40);
	uint32_t read_packets = 1 + fuzz_roce_draw(f, 8);
	uint64_t idle_ns = fuzz_roce_draw(f, 2) ? IDLE_NS_MIN + fuzz_roce_draw(f, IDLE_NS_MIN) : 0;
	uint64_t early_ns = fuzz_roce_draw(f, 2) ? 1 + fuzz_roce_draw(f, EARLY_NS_MAX) : 0;
	uint8_t depth = (uint8_t)(1 + fuzz_roce_draw(f, FUZZ_ROCE_DEPTH_MAX));

	for (i = 0; i < 2; i++)
		psns[i] = -fuzz_roce_draw(f, 100) & ROCE_PSN_MASK;
	for (i = 0; i < 2; i++) {
		struct fuzz_roce_end *end = &f->ends[i];
		const struct roce_config config = {
			.ops = &fuzz_roce_ops,
			.host = end,
			.wqes = end->wqes,
			.resources = end->resources,
			.transport = f->transport,
			.send_size = FUZZ_ROCE_WQES,
			.qpn = 16 + i,
			.dest_qpn = 17 - i,
			.send_psn = psns[i],
			.receive_psn = psns[1 - i],
			.mtu = FUZZ_ROCE_MTU,
			.window = window,
			.read_packets = read_packets,
			.max_rd_atomic = depth,
			.max_dest_rd_atomic = depth,
			.timeout = TIMEOUT,
			.early_ns = early_ns,
			.retries = RETRIES,
			.idle_ns = idle_ns,
			.rnr_retries = 7,
			.rnr_timer = (uint8_t)(1 + fuzz_roce_draw(f, 6)),
		};

		end->world = f;
		end->peer = &f->ends[1 - i];
		end->hides_receives = fuzz_roce_draw(f, 2);
		end->last_nak = -1;
		roce_qp_init(&end->qp, &config);
	}
}

/* Mostly a bad network; sometimes a good one. */
static void set_up(struct fuzz_roce *f, uint64_t messages)
{
	bool is_bad = fuzz_roce_draw(f, 4);

	static const enum roce_transport transports[] = { ROCE_RC, ROCE_RC, ROCE_RC, ROCE_UC,
							  ROCE_UD };

	f->transport = transports[fuzz_roce_draw(f, 5)];
	f->delay_ns = fuzz_roce_draw(f, 3) ? 0 : 1 + fuzz_roce_draw(f, DELAY_NS_MAX);
	f->drop = is_bad ? fuzz_roce_draw(f, 50) : 0;
	f->repeat = is_bad ? fuzz_roce_draw(f, 50) : 0;
	f->late = is_bad ? fuzz_roce_draw(f, 30) : 0;
	f->corrupt = is_bad ? fuzz_roce_draw(f, 20) : 0;
	f->forge = is_bad ? fuzz_roce_draw(f, 20) : 0;
	f->dead_ns = f->revoke_ns = ROCE_NEVER;
	f->bad = UINT64_MAX;
	switch (f->transport == ROCE_RC ? fuzz_roce_draw(f, 6) : 6) {
	case 0:
		f->dead_ns = sim_rng_below(&f->rng, messages * MESSAGE_NS);
		break;
	case 1:
		f->revoke_ns = sim_rng_below(&f->rng, messages * MESSAGE_NS);
		break;
	case 2:
		f->bad = sim_rng_below(&f->rng, messages);
		break;
	}
	f->ends[0].to_come = messages;
	f->ends[1].to_come = fuzz_roce_draw(f, 3) ? messages : 0;
}

static bool is_over(const struct fuzz_roce *f)
{
	const struct fuzz_roce_end *a = &f->ends[0], *b = &f->ends[1];

	return !f->nr_flying && !a->to_come && !b->to_come && a->nr_ended == a->nr_posted &&
	       b->nr_ended == b->nr_posted;
}

void hunt_roce(struct hunt *h, uint64_t seed, uint64_t packets)
{
	static _Thread_local struct fuzz_roce f;
	uint64_t i, messages;

	memset(&f, 0, sizeof(f));
	f.hunt = h;
	sim_rng_init(&f.rng, seed, "roce", 0);
	messages = packets ? packets / 5 : MESSAGES + fuzz_roce_draw(&f, 30);
	set_up(&f, messages);
	connect(&f);
	for (i = 0; i < messages * EVENTS_PER_MESSAGE && !*h->why && !is_over(&f); i++)
		step(&f);
	fuzz_roce_over(&f.ends[0]);
	fuzz_roce_over(&f.ends[1]);
	h->clock.happened += f.packets;
	hunt_note(h, "roce", (int64_t)f.packets, (int64_t)f.now_ns,
		  (int64_t)f.ends[0].qp.counters.retransmitted);
}
