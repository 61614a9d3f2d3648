/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an application's thread does with a connection: messages into one ring, and out of the
 * other. Neither takes a lock; what is large goes through in parts, as the ring has room.
 */
#include "lib/base/futex.h"
#include "lib/mux/handle.h"
#include "wire/mux.h"

static int status_of(const struct weir_conn *conn)
{
	int own = __atomic_load_n(&conn->status, __ATOMIC_RELAXED);

	return own ? own : __atomic_load_n(&conn->door->status, __ATOMIC_SEQ_CST);
}

static bool is_finished(const struct weir_conn *conn)
{
	return __atomic_load_n(&conn->door->is_finished, __ATOMIC_ACQUIRE);
}

/* Puts in as much of the message as there is room for. -EAGAIN: some is left. */
static int put(struct weir_conn *conn, const char *data, uint32_t length)
{
	const uint64_t head = sizeof(struct wire_record), total = head + length;
	const uint64_t before = conn->send_done;
	uint32_t room, n;
	int rc = weir_ring_writable(&conn->out, &room);

	if (rc)
		return rc;
	if (conn->send_done > total || conn->is_lending)
		return -EINVAL;
	if (!conn->send_done && room >= head) {
		struct wire_record record = { .length = length };

		weir_ring_write(&conn->out, &record, sizeof(record));
		room -= sizeof(record);
		conn->send_done = sizeof(record);
	}
	if (conn->send_done) {
		n = total - conn->send_done < room ? (uint32_t)(total - conn->send_done) : room;
		weir_ring_write(&conn->out, data + conn->send_done - head, n);
		conn->send_done += n;
	}
	if (conn->send_done != before) {
		weir_ring_publish_tail(&conn->out);
		conn->host->news(conn);
	}
	if (conn->send_done < total)
		return -EAGAIN;
	conn->send_done = 0;
	return 0;
}

static int try_send(struct weir_conn *conn, const void *data, size_t length)
{
	int rc = weir_conn_ended(conn);

	return rc ? rc : put(conn, data, (uint32_t)length);
}

/* Puts in the record alone, and lends what follows it. -EAGAIN: there is no room for that. */
static int lend(struct weir_conn *conn, const struct weir_order *wanted)
{
	const struct wire_record record = { .length = (uint32_t)wanted->length };
	struct weir_order *loan = &conn->door->loan;
	uint32_t room;
	int rc = weir_ring_writable(&conn->out, &room);

	if (rc)
		return rc;
	if (conn->send_done)
		return -EINVAL;
	if (room < sizeof(record))
		return -EAGAIN;
	weir_ring_write(&conn->out, &record, sizeof(record));
	weir_ring_publish_tail(&conn->out);
	loan->region = wanted->region;
	loan->at = wanted->at;
	loan->length = wanted->length;
	/* After the record: who takes the loan sees that. */
	__atomic_store_n(&loan->state, WEIR_ORDER_GIVEN, __ATOMIC_SEQ_CST);
	conn->is_lending = true;
	conn->host->news(conn);
	return 0;
}

static int try_lend(struct weir_conn *conn, const struct weir_order *wanted)
{
	const struct weir_order *loan = &conn->door->loan;
	int rc;

	if (conn->is_lending)
		return loan->region == wanted->region && loan->at == wanted->at &&
		       loan->length == wanted->length ? 0 : -EINVAL;
	rc = weir_conn_ended(conn);
	return rc ? rc : lend(conn, wanted);
}

/* Where much has been read since the hub last heard of it, the other end should know. */
static void grant(struct weir_conn *conn)
{
	weir_ring_publish_head(&conn->in);
	if (conn->in.position - conn->asked < conn->in.size / 4)
		return;
	conn->asked = conn->in.position;
	conn->host->news(conn);
}

/* Takes the record of the next message. */
static int begin(struct weir_conn *conn, uint64_t tail, size_t size, size_t *length)
{
	struct wire_record record;

	if (tail - conn->in.position < sizeof(record))
		return -EAGAIN;
	weir_ring_peek(&conn->in, conn->in.position, &record, sizeof(record));
	if (record.length > WIRE_RECORD_MAX || record.zero)
		return -EPROTO;
	if (record.length > size) {
		*length = record.length;
		return -EMSGSIZE;
	}
	conn->in.position += sizeof(record);
	conn->is_in_message = true;
	conn->recv_length = record.length;
	conn->recv_done = 0;
	return 0;
}

/* Takes out as much of the message as is there. -EAGAIN: some is not. */
static int get(struct weir_conn *conn, char *buffer, size_t size, size_t *length)
{
	uint32_t left, n;
	uint64_t tail;
	int rc = weir_ring_readable(&conn->in, &tail);

	if (!rc && !conn->is_in_message)
		rc = begin(conn, tail, size, length);
	if (rc)
		return rc;
	if (conn->recv_length > size || conn->is_taking)
		return -EINVAL;
	left = conn->recv_length - conn->recv_done;
	n = tail - conn->in.position < left ? (uint32_t)(tail - conn->in.position) : left;
	weir_ring_peek(&conn->in, conn->in.position, buffer + conn->recv_done, n);
	conn->in.position += n;
	conn->recv_done += n;
	grant(conn);
	if (n < left)
		return -EAGAIN;
	conn->is_in_message = false;
	*length = conn->recv_length;
	return 0;
}

/* Lends what is there of the message, up to the end of the memory. -EAGAIN: nothing is. */
static int take(struct weir_conn *conn, struct weir_conn_part *part)
{
	uint32_t left, n;
	uint64_t tail;
	int rc = weir_ring_readable(&conn->in, &tail);

	if (!rc && conn->is_in_message && (conn->has_part || !conn->is_taking))
		return -EINVAL;
	if (!rc && !conn->is_in_message)
		rc = begin(conn, tail, SIZE_MAX, NULL);
	if (rc)
		return rc;
	conn->is_taking = true;
	left = conn->recv_length - conn->recv_done;
	n = tail - conn->in.position < left ? (uint32_t)(tail - conn->in.position) : left;
	if (!n && left) {
		grant(conn);
		return -EAGAIN;
	}
	if (n > weir_ring_straight(&conn->in, conn->in.position))
		n = weir_ring_straight(&conn->in, conn->in.position);
	conn->has_part = true;
	conn->part = n;
	*part = (struct weir_conn_part){ weir_ring_at(&conn->in, conn->in.position), n,
					 conn->recv_done, conn->recv_length };
	return 0;
}

void weir_conn_give(struct weir_conn *conn)
{
	if (!conn->has_part)
		return;
	conn->has_part = false;
	conn->in.position += conn->part;
	conn->recv_done += conn->part;
	if (conn->recv_done == conn->recv_length)
		conn->is_in_message = conn->is_taking = false;
	grant(conn);
}

/* One call's arguments, so that it can be tried again. */
struct call {
	struct weir_conn *conn;
	struct weir_ring *ring;
	const int *fd;
	const struct weir_order *wanted; /* a loan */
	struct weir_order *given;
	const void *data;
	struct weir_conn_part *part;
	void *buffer;
	size_t size, *length;
};

/* What has arrived is read first, whatever happened after that. */
static int try_recv(const struct call *call)
{
	struct weir_conn *conn = call->conn;
	bool finished = is_finished(conn);
	int status = status_of(conn);
	int rc = call->part ? take(conn, call->part) :
			      get(conn, call->buffer, call->size, call->length);

	if (rc == -EPROTO)
		__atomic_store_n(&conn->status, rc, __ATOMIC_RELAXED);
	if (rc != -EAGAIN)
		return rc;
	if (status)
		return status;
	return finished ? -ENOTCONN : rc;
}

static int attempt(const struct call *call)
{
	if (call->buffer || call->part)
		return try_recv(call);
	if (call->wanted)
		return try_lend(call->conn, call->wanted);
	if (call->given)
		return weir_order_look(call->conn, call->given);
	return try_send(call->conn, call->data, call->size);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The position of the other end's that is worth another attempt: all that is missing, or half a
 * ring of it. So much comes, whatever this end does not do meanwhile: the other hears of what has
 * been read, and may send as much again, when that is a quarter of a ring, or twice that, but no
 * later.
 */
static uint64_t wanted(const struct call *call)
{
	const struct weir_conn *conn = call->conn;
	const uint64_t head = sizeof(struct wire_record);
	const uint64_t full = conn->out.position - conn->out.size;

	if (call->buffer || call->part)
		return conn->in.position +
		       (conn->is_in_message ? least(conn->recv_length - conn->recv_done,
						    conn->in.size / 2) : head);
	if (call->wanted)
		return full + head;
	if (call->given)
		return 0;
	return full + least(head + call->size - conn->send_done, conn->out.size / 2);
}

/* Tries, arms, and tries once more before it sleeps, or says -EAGAIN: see weir_ring_arm(). */
static int until_done(const struct call *call, int flags)
{
	const bool may_wait = !(flags & WEIR_CONN_DONTWAIT);
	uint32_t armed;
	int rc;

	for (;;) {
		rc = attempt(call);
		if (rc != -EAGAIN)
			return rc;
		if (!may_wait)
			weir_fd_take(__atomic_load_n(call->fd, __ATOMIC_ACQUIRE));
		armed = weir_ring_arm(call->ring, may_wait ? WEIR_ARMED_CALL : WEIR_ARMED_FD,
				      wanted(call));
		rc = attempt(call);
		if (rc != -EAGAIN || !may_wait)
			return rc;
		weir_futex_wait_shared(&call->ring->armed, armed);
	}
}

int weir_conn_send(struct weir_conn *conn, const void *data, size_t length, int flags)
{
	struct call call = { .conn = conn, .ring = conn->out.ring, .fd = &conn->room_fd,
			     .data = data, .size = length };

	if (length > WEIR_MUX_MESSAGE_MAX)
		return -EMSGSIZE;
	return until_done(&call, flags);
}

int weir_conn_send_region(struct weir_conn *conn, const struct weir_mux_region *region, uint64_t at,
			  uint64_t length, int flags)
{
	struct weir_order *loan = &conn->door->loan;
	const struct weir_order wanted = { .region = region->number, .at = at, .length = length };
	struct call call = { .conn = conn, .ring = conn->out.ring, .fd = &conn->room_fd,
			     .wanted = &wanted };
	int rc;

	if (length > WEIR_MUX_MESSAGE_MAX)
		return -EMSGSIZE;
	if (!length || at > region->length || length > region->length - at)
		return -EINVAL;
	rc = until_done(&call, flags);
	if (rc)
		return rc;
	call.wanted = NULL;
	call.given = loan;
	rc = flags & WEIR_CONN_DONTWAIT ? until_done(&call, flags) : weir_order_wait(conn, loan);
	conn->is_lending = rc == -EAGAIN;
	return rc;
}

int weir_conn_recv(struct weir_conn *conn, void *buffer, size_t size, size_t *length, int flags)
{
	char nothing;
	struct call call = { .conn = conn, .ring = conn->in.ring, .fd = &conn->fd,
			     .buffer = size ? buffer : &nothing, .size = size, .length = length };

	return until_done(&call, flags);
}

int weir_conn_take(struct weir_conn *conn, struct weir_conn_part *part, int flags)
{
	struct call call = { .conn = conn, .ring = conn->in.ring, .fd = &conn->fd, .part = part };

	return until_done(&call, flags);
}

int weir_conn_fd(struct weir_conn *conn)
{
	return conn->host->fd(conn, false);
}

int weir_conn_room_fd(struct weir_conn *conn)
{
	return conn->host->fd(conn, true);
}

void weir_conn_close(struct weir_conn *conn)
{
	conn->host->conn_close(conn);
}
