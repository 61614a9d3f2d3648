/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hosts of both queue pairs: they post requests, and check the effect of each. */
#include <errno.h>

#include "sim/hunt/fuzz_roce.h"
#include "softnic/roce/psn.h"

#define RKEY 0x1234
#define RKEY_BAD 0x4321
#define MEMORY_BYTES (1u << 16) /* from address 0 on */

static struct fuzz_roce_message *message_of(struct fuzz_roce_end *end, uint64_t number)
{
	return &end->messages[number % FUZZ_ROCE_MESSAGES];
}

static void expect(const struct fuzz_roce_end *end, bool holds, const char *why, uint64_t number)
{
	hunt_expect(end->world->hunt, holds, "roce: end %d: %s (message %llu)",
		    (int)(end - end->world->ends), why, (unsigned long long)number);
}

static uint8_t byte_of(uint64_t number, uint32_t offset)
{
	return (uint8_t)(number * 37 + offset * 11 + (offset >> 8) * 5);
}

/* Memory that peers read never changes. */
static uint8_t byte_at(uint64_t addr)
{
	return (uint8_t)(addr * 7 + (addr >> 8) * 3);
}

static bool is_write(const struct roce_wqe *wqe)
{
	return wqe->op == ROCE_OP_WRITE || wqe->op == ROCE_OP_WRITE_IMM;
}

static bool is_atomic(const struct roce_wqe *wqe)
{
	return wqe->op > ROCE_OP_READ;
}

static bool is_reliable(const struct fuzz_roce_end *end)
{
	return end->world->transport == ROCE_RC;
}

void fuzz_roce_announce(struct fuzz_roce_end *end, uint32_t psn)
{
	const struct fuzz_roce_end *peer = end->peer;
	uint64_t i, first = roce_psn_extend(psn, peer->qp.req.posted);

	end->arriving = UINT64_MAX;
	for (i = 0; !is_reliable(end) && i < FUZZ_ROCE_MESSAGES; i++)
		if (peer->messages[i].wqe.first <= first && first < peer->messages[i].wqe.end)
			end->arriving = peer->messages[i].wqe.id;
}

/* The peer's next message with an effect here; reads have none. */
static struct fuzz_roce_message *next_effect(struct fuzz_roce_end *end)
{
	struct fuzz_roce_end *peer = end->peer;

	if (!is_reliable(end)) {
		expect(end, end->arriving >= end->effect || end->world->transport == ROCE_UD,
		       "an effect comes late", end->arriving);
		end->effect = end->arriving;
	}
	while (is_reliable(end) && end->effect < peer->nr_posted &&
	       message_of(peer, end->effect)->wqe.op == ROCE_OP_READ)
		end->effect++;
	expect(end, end->effect < peer->nr_posted, "an effect without a message", end->effect);
	return message_of(peer, end->effect);
}

static void effect_is_done(struct fuzz_roce_end *end, struct fuzz_roce_message *m)
{
	expect(end, !m->is_bad, "a bad message takes effect", end->effect);
	m->is_done = true;
	end->effect++;
}

static void check_bytes(struct fuzz_roce_end *end, struct fuzz_roce_message *m, uint64_t offset,
			const uint8_t *from, uint32_t bytes)
{
	uint32_t i;

	if (end->world->transport == ROCE_UD) {
		m->bytes = 0;
		offset -= ROCE_GRH_BYTES;
	}
	expect(end, offset == m->bytes, "bytes out of order", end->effect);
	for (i = 0; i < bytes; i++)
		expect(end, from[i] == byte_of(m->wqe.id, (uint32_t)offset + i), "a wrong byte",
		       end->effect);
	m->bytes += bytes;
}

static enum roce_status gather(void *host, const struct roce_wqe *wqe, uint32_t offset,
			       uint32_t bytes, uint8_t *to)
{
	struct fuzz_roce_end *end = host;
	uint32_t i;

	expect(end, (uint64_t)offset + bytes <= wqe->length, "more is sent than posted", wqe->id);
	if (message_of(end, wqe->id)->is_bad && wqe->op == ROCE_OP_WRITE && !wqe->rkey)
		return ROCE_LOC_PROT;
	for (i = 0; i < bytes; i++)
		to[i] = byte_of(wqe->id, offset + i);
	return ROCE_SUCCESS;
}

static enum roce_status scatter(void *host, const struct roce_wqe *wqe, uint32_t offset,
				const uint8_t *from, uint32_t bytes)
{
	struct fuzz_roce_end *end = host;
	struct fuzz_roce_message *m = message_of(end, wqe->id);
	uint64_t original;
	uint32_t i;

	expect(end, offset == m->bytes || is_atomic(wqe), "data out of order", wqe->id);
	expect(end, wqe->op != ROCE_OP_ATOMIC_WRITE, "an atomic write has a result", wqe->id);
	if (is_atomic(wqe)) {
		memcpy(&original, from, sizeof(original));
		expect(end, m->is_done && original == m->original, "a wrong result", wqe->id);
		return ROCE_SUCCESS;
	}
	for (i = 0; i < bytes; i++)
		expect(end, from[i] == byte_at(wqe->addr + offset + i), "wrong data", wqe->id);
	m->bytes += bytes;
	return ROCE_SUCCESS;
}

static bool may_access(const struct fuzz_roce_end *end, uint32_t rkey, uint64_t addr,
		       uint32_t bytes)
{
	return !end->is_revoked && rkey == RKEY && addr <= MEMORY_BYTES &&
	       bytes <= MEMORY_BYTES - addr;
}

static enum roce_status check(void *host, uint32_t rkey, enum roce_right right, uint64_t addr,
			      uint32_t bytes)
{
	(void)right;
	return !bytes || may_access(host, rkey, addr, bytes) ? ROCE_SUCCESS : ROCE_REM_ACCESS;
}

static enum roce_status read_memory(void *host, uint32_t rkey, uint64_t addr, uint8_t *to,
				    uint32_t bytes)
{
	uint32_t i;

	if (!may_access(host, rkey, addr, bytes))
		return ROCE_REM_ACCESS;
	for (i = 0; i < bytes; i++)
		to[i] = byte_at(addr + i);
	return ROCE_SUCCESS;
}

static enum roce_status write_memory(void *host, uint32_t rkey, uint64_t addr, const uint8_t *from,
				     uint32_t bytes)
{
	struct fuzz_roce_end *end = host;
	struct fuzz_roce_message *m;

	if (!may_access(end, rkey, addr, bytes))
		return ROCE_REM_ACCESS;
	m = next_effect(end);
	expect(end, is_write(&m->wqe) && !m->is_bad, "a write out of order", end->effect);
	check_bytes(end, m, addr - m->wqe.addr, from, bytes);
	if (m->bytes == m->wqe.length && m->wqe.op == ROCE_OP_WRITE)
		effect_is_done(end, m);
	return ROCE_SUCCESS;
}

static enum roce_status execute_atomic(void *host, const struct roce_packet *p, uint64_t *original)
{
	struct fuzz_roce_end *end = host;
	struct fuzz_roce_message *m;
	uint64_t *counter;

	if (!may_access(end, p->rkey, p->addr, sizeof(uint64_t)))
		return ROCE_REM_ACCESS;
	m = next_effect(end);
	expect(end, is_atomic(&m->wqe) && p->addr == m->wqe.addr, "an atomic out of order",
	       end->effect);
	counter = &end->counters[p->addr / sizeof(*counter) % FUZZ_ROCE_COUNTERS];
	m->original = *original = *counter;
	if (m->wqe.op == ROCE_OP_ATOMIC_WRITE)
		check_bytes(end, m, 0, p->payload, p->payload_bytes);
	if (m->wqe.op == ROCE_OP_ATOMIC_WRITE)
		memcpy(counter, p->payload, sizeof(*counter));
	else if (m->wqe.op == ROCE_OP_FETCH_ADD)
		*counter += p->swap_add;
	else if (*counter == p->compare)
		*counter = p->swap_add;
	effect_is_done(end, m);
	return ROCE_SUCCESS;
}

static int64_t take(void *host)
{
	struct fuzz_roce_end *end = host;

	expect(end, !end->is_taken, "two receives for one message", end->effect);
	if (!end->receives)
		return -EAGAIN;
	end->receives--;
	end->is_taken = true;
	return FUZZ_ROCE_ROOM;
}

static enum roce_status place(void *host, uint64_t offset, const uint8_t *from, uint32_t bytes)
{
	struct fuzz_roce_end *end = host;
	struct fuzz_roce_message *m = next_effect(end);

	expect(end, m->wqe.op <= ROCE_OP_SEND_INV && end->is_taken, "a send out of order",
	       end->effect);
	if (offset || end->world->transport != ROCE_UD) /* else it is the GRH */
		check_bytes(end, m, offset, from, bytes);
	return ROCE_SUCCESS;
}

static void finish(void *host, const struct roce_arrival *a)
{
	struct fuzz_roce_end *end = host;
	struct fuzz_roce_message *m = next_effect(end);
	const struct roce_wqe *wqe = &m->wqe;
	uint32_t header = end->world->transport == ROCE_UD ? ROCE_GRH_BYTES : 0;

	expect(end, end->is_taken, "an arrival without a receive", end->effect);
	end->is_taken = false;
	if (a->status) {
		expect(end, m->is_bad, "an arrival fails", end->effect);
		return;
	}
	expect(end, m->bytes == wqe->length && a->bytes == header + wqe->length, "a short arrival",
	       end->effect);
	expect(end, a->is_write == is_write(wqe), "a wrong arrival", end->effect);
	expect(end, a->has_imm == (wqe->op == ROCE_OP_SEND_IMM || wqe->op == ROCE_OP_WRITE_IMM),
	       "a wrong immediate", end->effect);
	expect(end, a->has_inv == (wqe->op == ROCE_OP_SEND_INV), "a wrong key", end->effect);
	expect(end, a->imm == (a->has_imm || a->has_inv ? wqe->imm : 0), "a wrong immediate",
	       end->effect);
	expect(end, a->is_solicited == wqe->is_solicited, "a wrong event", end->effect);
	effect_is_done(end, m);
}

static void give_back(void *host)
{
	struct fuzz_roce_end *end = host;

	end->is_taken = false;
	end->receives++;
}

static int64_t receives(void *host)
{
	struct fuzz_roce_end *end = host;

	return end->hides_receives ? ROCE_RECEIVES_UNKNOWN : (int64_t)end->receives;
}

static enum roce_status invalidate(void *host, uint32_t key)
{
	(void)host;
	(void)key;
	return ROCE_SUCCESS;
}

const struct roce_ops fuzz_roce_ops = {
	.gather = gather,
	.scatter = scatter,
	.check = check,
	.read = read_memory,
	.write = write_memory,
	.atomic = execute_atomic,
	.take = take,
	.place = place,
	.finish = finish,
	.give_back = give_back,
	.receives = receives,
	.invalidate = invalidate,
};

static void spoil(struct fuzz_roce *f, struct fuzz_roce_message *m)
{
	m->is_bad = true;
	m->wqe.length += !m->wqe.length; /* no bytes need no rights */
	if (m->wqe.op <= ROCE_OP_SEND_INV)
		m->wqe.length = FUZZ_ROCE_ROOM + 1 + fuzz_roce_draw(f, FUZZ_ROCE_MTU);
	else if (is_atomic(&m->wqe) && fuzz_roce_draw(f, 2))
		m->wqe.addr |= 1 + fuzz_roce_draw(f, 7);
	else if (m->wqe.op == ROCE_OP_WRITE && fuzz_roce_draw(f, 2))
		m->wqe.rkey = 0;
	else if (fuzz_roce_draw(f, 2))
		m->wqe.rkey = RKEY_BAD;
	else
		m->wqe.addr = MEMORY_BYTES - (is_atomic(&m->wqe) ? 0 : m->wqe.length - 1);
}

static uint32_t draw_length(struct fuzz_roce *f)
{
	uint32_t packets = fuzz_roce_draw(f, FUZZ_ROCE_PACKETS);

	if (fuzz_roce_draw(f, 2) || packets == FUZZ_ROCE_PACKETS - 1)
		return packets * FUZZ_ROCE_MTU;
	return packets * FUZZ_ROCE_MTU + fuzz_roce_draw(f, FUZZ_ROCE_MTU);
}

void fuzz_roce_post(struct fuzz_roce_end *end)
{
	struct fuzz_roce *f = end->world;
	struct fuzz_roce_message *m = message_of(end, end->nr_posted);
	static const uint8_t ops_of_uc[] = { ROCE_OP_SEND, ROCE_OP_SEND_IMM, ROCE_OP_WRITE,
					     ROCE_OP_WRITE_IMM };

	if (!end->to_come || end->nr_posted - end->nr_ended == FUZZ_ROCE_WQES)
		return;
	memset(m, 0, sizeof(*m));
	m->wqe = (struct roce_wqe){
		.id = end->nr_posted,
		.op = (uint8_t)fuzz_roce_draw(f, ROCE_OP_ATOMIC_WRITE + 1),
		.is_solicited = fuzz_roce_draw(f, 2),
		.is_fenced = !fuzz_roce_draw(f, 8),
		.imm = (uint32_t)sim_rng_next(&f->rng),
		.rkey = RKEY,
		.addr = fuzz_roce_draw(f, MEMORY_BYTES / 16) * 8,
		.swap_add = fuzz_roce_draw(f, 3),
		.compare = fuzz_roce_draw(f, 3),
	};
	if (f->transport == ROCE_UC)
		m->wqe.op = ops_of_uc[m->wqe.op % 4];
	if (f->transport == ROCE_UD)
		m->wqe.op %= ROCE_OP_SEND_INV;
	m->wqe.dest_qpn = end->peer->qp.config.qpn;
	m->wqe.length = is_atomic(&m->wqe) ? sizeof(uint64_t) : draw_length(f);
	if (f->transport == ROCE_UD)
		m->wqe.length %= FUZZ_ROCE_MTU + 1;
	if (m->wqe.op == ROCE_OP_READ || m->wqe.op == ROCE_OP_WRITE)
		m->wqe.length += !m->wqe.length;
	m->wqe.is_solicited &= m->wqe.op != ROCE_OP_READ && !is_atomic(&m->wqe);
	if (end == &f->ends[0] && f->bad == end->nr_posted)
		spoil(f, m);
	end->nr_posted++;
	end->to_come--;
	m->wqe.first = end->qp.req.posted;
	expect(end, !roce_qp_post(&end->qp, &m->wqe), "a post is refused", m->wqe.id);
	m->wqe.end = end->qp.req.posted;
}

/* A bad message or a dead network ends both queue pairs. */
static bool may_fail(const struct fuzz_roce *f)
{
	return f->now_ns >= f->dead_ns || f->now_ns >= f->revoke_ns ||
	       f->ends[0].nr_posted > f->bad;
}

static void check_success(struct fuzz_roce_end *end, const struct fuzz_roce_message *m)
{
	uint64_t number = m->wqe.id;

	expect(end, !m->is_bad, "a bad message succeeds", number);
	if (m->wqe.op == ROCE_OP_READ)
		expect(end, m->bytes == m->wqe.length, "a read ends early", number);
	else if (is_reliable(end))
		expect(end, m->is_done, "a message ends before its effect", number);
}

static bool is_refusal(const struct fuzz_roce_message *m, enum roce_status status)
{
	if (m->wqe.op <= ROCE_OP_SEND_INV)
		return status == ROCE_REM_INV_REQ;
	if (!m->wqe.rkey)
		return status == ROCE_LOC_PROT;
	return status ==
	       (is_atomic(&m->wqe) && m->wqe.addr % 8 ? ROCE_REM_INV_REQ : ROCE_REM_ACCESS);
}

static void check_failure(struct fuzz_roce_end *end, const struct fuzz_roce_message *m,
			  enum roce_status status)
{
	const struct fuzz_roce *f = end->world;
	bool is_second = end != &f->ends[0];

	expect(end, may_fail(f), "a message fails", m->wqe.id);
	if (end->has_failed)
		expect(end, status == ROCE_FLUSHED, "an error after an error", m->wqe.id);
	else if (m->is_bad)
		expect(end, is_refusal(m, status) || status == ROCE_RETRY_EXC, "a wrong error",
		       m->wqe.id);
	else
		expect(end,
		       status == ROCE_RETRY_EXC || (is_second && status == ROCE_FLUSHED) ||
			       (f->now_ns >= f->revoke_ns && status == ROCE_REM_ACCESS),
		       "a wrong error", m->wqe.id);
	end->has_failed = true;
}

void fuzz_roce_complete(struct fuzz_roce_end *end)
{
	struct roce_completion c;

	while (roce_qp_completion(&end->qp, &c)) {
		const struct fuzz_roce_message *m = message_of(end, end->nr_ended);

		expect(end, c.wqe.id == end->nr_ended, "a completion out of order", c.wqe.id);
		if (!c.status && !end->has_failed)
			check_success(end, m);
		else
			check_failure(end, m, c.status);
		end->nr_ended++;
		hunt_note(end->world->hunt, "roce", (int64_t)c.wqe.id, c.status, m->bytes);
	}
}

void fuzz_roce_over(struct fuzz_roce_end *end)
{
	const struct fuzz_roce *f = end->world;
	uint32_t i;

	expect(end, !end->to_come && end->nr_ended == end->nr_posted, "a message does not end",
	       end->nr_ended);
	if (f->drop || f->late || f->corrupt || f->forge || !f->delay_ns || may_fail(f))
		return;
	for (i = 0; i < FUZZ_ROCE_MESSAGES && i < end->nr_posted; i++)
		if (end->messages[i].wqe.op == ROCE_OP_WRITE)
			expect(end, end->messages[i].is_done, "a write is lost",
			       end->messages[i].wqe.id);
}
