// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Bytes and room: the writes to the peer's memory, and the completions.
 *
 * A message's immediate has a kind in its upper three bits. Each message takes a receive of the
 * peer, so the peer tells how many it may be sent. Messages without bytes are few and not counted:
 * a receive that is missing for one delays it.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/cm/cm.h"
#include "stream.h"

enum flow_kind { KIND_BYTES = 0, KIND_ROOM = 4, KIND_MAP = 6, KIND_CONTROL = 7 };
enum { KIND_SHIFT = 29, VALUE_MASK = (1 << KIND_SHIFT) - 1 };

/* Work request numbers: receives; else the kind above, and the bytes of the ring below. */
#define WR_RECEIVE (1ull << 63)
#define WR_KIND_SHIFT 32
#define KIND_DIRECT 2u /* bytes for a mapped buffer; never in an immediate */

enum { SEND_MIN = 2048 }; /* free bytes of the ring that a program waits for */

enum { HELLO_VERSION = 1, HELLO_BIG_ENDIAN = 1, HELLO_MAPS = 2 };

struct flow_hello {
	uint8_t version, flags;
	uint16_t receives;
	uint8_t reserved[3];
	uint8_t maps;
	struct stream_target targets; /* here, length is a number of entries */
	struct stream_target half;
};
_Static_assert(sizeof(struct flow_hello) == FLOW_HELLO_BYTES, "on the wire");

static struct stream_target to_wire(const void *addr, uint32_t key, uint32_t length)
{
	return (struct stream_target){ htobe64((uintptr_t)addr), htobe32(key), htobe32(length) };
}

static struct stream_target from_wire(const struct stream_target *t)
{
	return (struct stream_target){ be64toh(t->addr), be32toh(t->key), be32toh(t->length) };
}

void flow_say_hello(const struct rstream *s, uint8_t *hello)
{
	struct flow_hello h = {
		.version = HELLO_VERSION,
		.flags = HELLO_MAPS | (htobe16(1) == 1 ? HELLO_BIG_ENDIAN : 0),
		.receives = htobe16((uint16_t)s->depth),
		.maps = (uint8_t)s->maps_max,
		.targets = to_wire(s->shared, s->shared_mr->rkey, STREAM_TARGETS),
		.half = to_wire(s->in, s->in_mr->rkey, s->in_size / STREAM_TARGETS),
	};

	memcpy(hello, &h, sizeof(h));
}

int flow_hear_hello(struct rstream *s, const void *hello)
{
	const uint8_t own = htobe16(1) == 1 ? HELLO_BIG_ENDIAN : 0;
	struct flow_hello h;

	memcpy(&h, hello, sizeof(h));
	if (h.version != HELLO_VERSION || (h.flags & HELLO_BIG_ENDIAN) != own)
		return -EPROTO;
	s->peer_targets = from_wire(&h.targets);
	s->peer_target = 1;
	s->peer_maps = h.flags & HELLO_MAPS ? h.maps & STREAM_IOMAPS_MAX : 0;
	s->to[0] = from_wire(&h.half);
	s->sent_max = be16toh(h.receives);
	return s->peer_targets.length ? 0 : -EPROTO;
}

static int post_receive(struct rstream *s)
{
	struct ibv_recv_wr wr = { .wr_id = WR_RECEIVE }, *bad;

	return -ibv_post_recv(s->id->qp, &wr, &bad);
}

static int alloc_buffers(struct rstream *s)
{
	s->out = calloc(1, s->out_size);
	s->in = calloc(1, s->in_size);
	s->shared = calloc(1, sizeof(*s->shared));
	s->lengths = calloc(s->depth + 1, sizeof(*s->lengths));
	if (!s->out || !s->in || !s->shared || !s->lengths)
		return -ENOMEM;
	s->out_mr = rdma_reg_msgs(s->id, s->out, s->out_size);
	s->in_mr = rdma_reg_write(s->id, s->in, s->in_size);
	s->shared_mr = rdma_reg_write(s->id, s->shared, sizeof(*s->shared));
	return s->out_mr && s->in_mr && s->shared_mr ? 0 : -errno;
}

static int make_qp(struct rstream *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = s->depth,
			 .max_recv_wr = s->depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = s->inline_max },
	};
	struct rdma_cm_id *id = s->id;

	id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
	if (!id->recv_cq_channel || fcntl(id->recv_cq_channel->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	id->recv_cq = ibv_create_cq(id->verbs, 2 * (int)s->depth, s, id->recv_cq_channel, 0);
	if (!id->recv_cq)
		return -errno;
	init.recv_cq = init.send_cq = id->recv_cq;
	if (rdma_create_qp(id, NULL, &init))
		return -errno;
	s->inline_max = init.cap.max_inline_data;
	return 0;
}

int flow_open(struct rstream *s)
{
	int rc = make_qp(s);
	uint32_t i;

	if (!rc)
		rc = alloc_buffers(s);
	for (i = 0; !rc && i < s->depth; i++)
		rc = post_receive(s);
	s->controls_free = STREAM_CONTROLS;
	s->slots_free = s->depth - STREAM_CONTROLS;
	s->out_free = s->out_size;
	s->in_given = s->in_size / STREAM_TARGETS; /* the half that the hello does not name */
	s->give_at = s->in_given;
	s->read_told = (uint16_t)(s->depth / 2);
	return rc;
}

static void drop_region(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

void flow_close(struct rstream *s)
{
	struct stream_map *map;

	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	drop_region(&s->out_mr);
	drop_region(&s->in_mr);
	drop_region(&s->shared_mr);
	while ((map = TAILQ_FIRST(&s->maps))) {
		TAILQ_REMOVE(&s->maps, map, link);
		ibv_dereg_mr(map->mr);
		free(map);
	}
	free(s->out);
	free(s->in);
	free(s->shared);
	free(s->lengths);
}

static void end_stream(struct rstream *s, int error)
{
	if (s->state != STREAM_OPEN)
		return;
	s->state = STREAM_ENDED;
	s->is_readable = s->is_writable = false;
	s->error = error;
}

/* @ring bytes of the ring are free again when the work request completes. */
static int post(struct rstream *s, struct ibv_sge *sge, bool is_inline, uint32_t kind,
		uint32_t value, uint32_t ring, uint64_t addr, uint32_t key)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = (uint64_t)kind << WR_KIND_SHIFT | ring,
		.sg_list = sge,
		.num_sge = sge ? 1 : 0,
		.opcode = kind == KIND_DIRECT ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = is_inline ? IBV_SEND_INLINE : 0,
		.imm_data = htobe32(kind << KIND_SHIFT | value),
		.wr.rdma = { addr, key },
	};
	int rc = -ibv_post_send(s->id->qp, &wr, &bad);

	if (rc)
		end_stream(s, ECONNRESET);
	return rc;
}

static bool peer_wants_room(const struct rstream *s)
{
	return s->in_given >= s->in_size / STREAM_TARGETS ||
	       (int16_t)(s->read - s->read_told) >= 0;
}

static void tell_room(struct rstream *s)
{
	const uint32_t half = s->in_size / STREAM_TARGETS;
	struct stream_target t = { (uintptr_t)s->in + s->give_at, s->in_mr->rkey, half };
	struct ibv_sge sge = { (uintptr_t)&t, sizeof(t), 0 };
	uint32_t room = (uint16_t)(s->read + s->depth);

	if (s->state != STREAM_OPEN || !s->controls_free || !peer_wants_room(s))
		return;
	s->controls_free--;
	s->read_told = (uint16_t)(s->read + s->depth / 2);
	if (s->in_given < half) {
		post(s, NULL, false, KIND_ROOM, room, 0, 0, 0);
		return;
	}
	s->in_given -= half;
	s->give_at = (s->give_at + half) % s->in_size;
	post(s, &sge, true, KIND_ROOM, room, 0,
	     s->peer_targets.addr + s->peer_target * sizeof(t), s->peer_targets.key);
	s->peer_target = (s->peer_target + 1) % s->peer_targets.length;
}

/*
 * The peer writes an entry when the entry before was used up. A later entry may be half written
 * while this one is taken, so an entry counts when it is whole.
 */
static void take_targets(struct rstream *s)
{
	struct stream_target *t;
	uint32_t i;

	for (i = 0; i < STREAM_TARGETS; i++) {
		t = &s->shared->targets[i];
		if (s->to[i].length || !__atomic_load_n(&t->length, __ATOMIC_ACQUIRE) ||
		    !t->key || !t->addr)
			continue;
		s->to[i] = *t;
		*t = (struct stream_target){ 0 };
	}
}

static void heard_control(struct rstream *s, uint32_t value)
{
	if (value == FLOW_DISCONNECT || (value == FLOW_SHUTDOWN && !s->is_writable))
		end_stream(s, 0);
	else if (value == FLOW_SHUTDOWN)
		s->is_readable = false;
}

/* The peer is not believed: more messages than receives, or bytes than room, end the stream. */
static void heard_bytes(struct rstream *s, uint32_t length)
{
	uint32_t next = (s->lengths_tail + 1) % (s->depth + 1);

	if (next == s->lengths_head || !length || length > s->in_size) {
		end_stream(s, EPROTO);
		return;
	}
	s->lengths[s->lengths_tail] = length;
	s->lengths_tail = next;
}

static void received(struct rstream *s, const struct ibv_wc *wc)
{
	uint32_t imm = be32toh(wc->imm_data), value = imm & VALUE_MASK;

	switch (imm >> KIND_SHIFT) {
	case KIND_BYTES:
		heard_bytes(s, value);
		break;
	case KIND_ROOM:
		s->sent_max = (uint16_t)value;
		take_targets(s);
		break;
	case KIND_CONTROL:
		heard_control(s, value);
		break;
	default:
		break; /* the table of mapped buffers has changed */
	}
	if (s->state == STREAM_OPEN && post_receive(s))
		end_stream(s, ECONNRESET);
}

static void was_sent(struct rstream *s, uint64_t wr_id)
{
	uint32_t kind = (uint32_t)(wr_id >> WR_KIND_SHIFT);

	if (kind == KIND_ROOM || kind == KIND_CONTROL) {
		s->controls_free++;
	} else {
		s->slots_free++;
		s->out_free += (uint32_t)wr_id;
	}
}

void flow_progress(struct rstream *s)
{
	struct ibv_wc wc;

	if (!s->id->qp)
		return;
	while (ibv_poll_cq(s->id->recv_cq, 1, &wc) > 0) {
		if (!(wc.wr_id & WR_RECEIVE))
			was_sent(s, wc.wr_id);
		else if (!wc.status && (wc.wc_flags & IBV_WC_WITH_IMM))
			received(s, &wc);
		if (wc.status)
			end_stream(s, ECONNRESET);
	}
	tell_room(s);
}

void flow_arm(struct rstream *s)
{
	if (!s->is_armed && s->id->qp)
		s->is_armed = !ibv_req_notify_cq(s->id->recv_cq, 0);
}

void flow_take_event(struct rstream *s)
{
	struct ibv_cq *cq;
	void *context;

	if (!s->is_armed || ibv_get_cq_event(s->id->recv_cq_channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	s->is_armed = false;
}

bool flow_has_bytes(const struct rstream *s)
{
	return s->lengths_head != s->lengths_tail;
}

static bool has_slot(const struct rstream *s)
{
	return s->state == STREAM_OPEN && s->slots_free && s->sent != s->sent_max;
}

bool flow_can_send(const struct rstream *s)
{
	return has_slot(s) && s->out_free >= SEND_MIN && s->to[s->to_at].length;
}

bool flow_is_idle(const struct rstream *s)
{
	return s->controls_free == STREAM_CONTROLS &&
	       s->slots_free == s->depth - STREAM_CONTROLS;
}

/* The next part of the ring, at most @size bytes, without its bend. */
static uint32_t part_of_ring(const struct rstream *s, size_t size)
{
	uint32_t most = s->out_size - s->out_at;

	most = most < s->out_free ? most : s->out_free;
	most = most < STREAM_CHUNK_MAX ? most : STREAM_CHUNK_MAX;
	return size < most ? (uint32_t)size : most;
}

/*
 * Copy a part into the ring, or lend the bytes for the call if @all bytes are few. A short part
 * before the ring's bend is copied, so that the next part begins behind the bend.
 *
 * Return: are the bytes lent?
 */
static bool load_part(struct rstream *s, const void *bytes, size_t all, uint32_t size,
		      struct ibv_sge *sge)
{
	bool is_inline = size == all && size <= s->inline_max;

	*sge = (struct ibv_sge){ (uintptr_t)bytes, size, 0 };
	if (is_inline)
		return true;
	memcpy(s->out + s->out_at, bytes, size);
	*sge = (struct ibv_sge){ (uintptr_t)s->out + s->out_at, size, s->out_mr->lkey };
	s->out_at = (s->out_at + size) % s->out_size;
	s->out_free -= size;
	return false;
}

int flow_send(struct rstream *s, const void *bytes, size_t size)
{
	struct stream_target *to = &s->to[s->to_at];
	struct ibv_sge sge;
	uint32_t n;
	bool lent;
	int rc;

	n = part_of_ring(s, size < to->length ? size : to->length);
	lent = load_part(s, bytes, size, n, &sge);
	s->slots_free--;
	s->sent++;
	rc = post(s, &sge, lent, KIND_BYTES, n, lent ? 0 : n, to->addr, to->key);
	to->addr += n;
	to->length -= n;
	if (!to->length)
		s->to_at = (s->to_at + 1) % STREAM_TARGETS;
	return rc ? rc : (int)n;
}

int flow_write(struct rstream *s, const void *bytes, size_t size, const struct stream_target *to,
	       uint64_t at)
{
	struct ibv_sge sge;
	uint32_t n = part_of_ring(s, size);
	bool lent = load_part(s, bytes, size, n, &sge);
	int rc;

	s->slots_free--;
	rc = post(s, &sge, lent, KIND_DIRECT, 0, lent ? 0 : n, to->addr + at, to->key);
	return rc ? rc : (int)n;
}

int flow_tell_map(struct rstream *s, const struct stream_map *map)
{
	struct stream_iomap m = {
		.offset = map->offset,
		.to = { (uintptr_t)map->mr->addr, map->mr->rkey, (uint32_t)map->mr->length },
	};
	struct ibv_sge sge = { (uintptr_t)&m, sizeof(m), 0 };
	uint64_t table = s->peer_targets.addr + s->peer_targets.length * sizeof(m.to);

	s->slots_free--;
	s->sent++;
	return post(s, &sge, true, KIND_MAP, (uint32_t)map->index, 0,
		    table + (uint32_t)map->index * sizeof(m), s->peer_targets.key);
}

/* A message whose last byte is read makes room for another message. */
static void was_read(struct rstream *s, uint32_t n)
{
	uint32_t *length = &s->lengths[s->lengths_head];

	s->in_at = (s->in_at + n) % s->in_size;
	s->in_given += n;
	*length -= n;
	if (*length)
		return;
	s->lengths_head = (s->lengths_head + 1) % (s->depth + 1);
	s->read++;
}

size_t flow_receive(struct rstream *s, void *bytes, size_t size, bool peek)
{
	uint32_t at = s->in_at, head = s->lengths_head, n, left = 0;
	size_t done = 0;

	while (done < size && head != s->lengths_tail) {
		left = left ? left : s->lengths[head];
		n = size - done < left ? (uint32_t)(size - done) : left;
		n = n < s->in_size - at ? n : s->in_size - at;
		memcpy((uint8_t *)bytes + done, s->in + at, n);
		done += n;
		at = (at + n) % s->in_size;
		left -= n;
		if (!left)
			head = (head + 1) % (s->depth + 1);
		if (!peek)
			was_read(s, n);
	}
	tell_room(s);
	return done;
}

bool flow_end(struct rstream *s, enum flow_end end)
{
	flow_progress(s);
	if (s->state != STREAM_OPEN || !s->controls_free)
		return false;
	s->controls_free--;
	post(s, NULL, false, KIND_CONTROL, end, 0, 0, 0);
	return true;
}
