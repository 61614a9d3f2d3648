/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's side of a connection's streams: messages into one ring and out of the other,
 * without locks. A large message passes through in parts as the ring gets room.
 */
#include "lib/base/futex.h"
#include "lib/mux/handle.h"
#include "wire/mux.h"

static int conn_status(const struct weir_mux_conn *conn)
{
	int own = __atomic_load_n(&conn->status, __ATOMIC_RELAXED);

	return own ? own : __atomic_load_n(&conn->shm->status, __ATOMIC_SEQ_CST);
}

static bool is_finished(const struct weir_mux_conn *conn)
{
	return __atomic_load_n(&conn->shm->is_finished, __ATOMIC_ACQUIRE);
}

/* Writes as much of the message as fits. -EAGAIN: a part remains. */
static int write_part(struct weir_mux_conn *conn, const char *data, uint32_t length)
{
	const uint64_t head = sizeof(struct wire_mux_record), total = head + length;
	const uint64_t before = conn->send_done;
	uint32_t room, n;
	int rc = weir_mux_ring_writable(&conn->out, &room);

	if (rc)
		return rc;
	if (conn->send_done > total || conn->is_zc_sending)
		return -EINVAL;
	if (!conn->send_done && room >= head) {
		struct wire_mux_record record = { .length = length };

		weir_mux_ring_write(&conn->out, &record, sizeof(record));
		room -= sizeof(record);
		conn->send_done = sizeof(record);
	}
	if (conn->send_done) {
		n = total - conn->send_done < room ? (uint32_t)(total - conn->send_done) : room;
		weir_mux_ring_write(&conn->out, data + conn->send_done - head, n);
		conn->send_done += n;
	}
	if (conn->send_done != before) {
		weir_mux_ring_publish_tail(&conn->out);
		conn->host->news(conn);
	}
	if (conn->send_done < total)
		return -EAGAIN;
	conn->send_done = 0;
	return 0;
}

static int try_write(struct weir_mux_conn *conn, const void *data, size_t length)
{
	int rc = weir_mux_conn_ended(conn);

	return rc ? rc : write_part(conn, data, (uint32_t)length);
}

/*
 * Writes the record alone and submits the region's bytes as a zero-copy send. -EAGAIN: no room
 * for the record.
 */
static int submit_zc_send(struct weir_mux_conn *conn, const struct weir_mux_rdma_op_desc *wanted)
{
	const struct wire_mux_record record = { .length = (uint32_t)wanted->length };
	struct weir_mux_rdma_op_desc *zc_send = &conn->shm->zc_send;
	uint32_t room;
	int rc = weir_mux_ring_writable(&conn->out, &room);

	if (rc)
		return rc;
	if (conn->send_done)
		return -EINVAL;
	if (room < sizeof(record))
		return -EAGAIN;
	weir_mux_ring_write(&conn->out, &record, sizeof(record));
	weir_mux_ring_publish_tail(&conn->out);
	zc_send->region = wanted->region;
	zc_send->at = wanted->at;
	zc_send->length = wanted->length;
	/* After the record is published, so the worker sees the record, too. */
	__atomic_store_n(&zc_send->state, WEIR_MUX_RDMA_OP_SUBMITTED, __ATOMIC_SEQ_CST);
	conn->is_zc_sending = true;
	conn->host->news(conn);
	return 0;
}

static int try_zc_send(struct weir_mux_conn *conn, const struct weir_mux_rdma_op_desc *wanted)
{
	const struct weir_mux_rdma_op_desc *zc_send = &conn->shm->zc_send;
	int rc;

	if (conn->is_zc_sending)
		return zc_send->region == wanted->region && zc_send->at == wanted->at &&
				       zc_send->length == wanted->length ?
			       0 :
			       -EINVAL;
	rc = weir_mux_conn_ended(conn);
	return rc ? rc : submit_zc_send(conn, wanted);
}

/* Tells the mux once enough has been read to be worth a credit. */
static void publish_read(struct weir_mux_conn *conn)
{
	weir_mux_ring_publish_head(&conn->in);
	if (conn->in.position - conn->asked < conn->in.size / 4)
		return;
	conn->asked = conn->in.position;
	conn->host->news(conn);
}

/* Reads the record of the next message. */
static int begin_message(struct weir_mux_conn *conn, uint64_t tail, size_t size, size_t *length)
{
	struct wire_mux_record record;

	if (tail - conn->in.position < sizeof(record))
		return -EAGAIN;
	weir_mux_ring_peek(&conn->in, conn->in.position, &record, sizeof(record));
	if (record.length > WIRE_MUX_RECORD_MAX || record.zero)
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

/* Reads as much of the message as has arrived. -EAGAIN: a part is missing. */
static int read_part(struct weir_mux_conn *conn, char *buffer, size_t size, size_t *length)
{
	uint32_t left, n;
	uint64_t tail;
	int rc = weir_mux_ring_readable(&conn->in, &tail);

	if (!rc && !conn->is_in_message)
		rc = begin_message(conn, tail, size, length);
	if (rc)
		return rc;
	if (conn->recv_length > size || conn->is_taking)
		return -EINVAL;
	left = conn->recv_length - conn->recv_done;
	n = tail - conn->in.position < left ? (uint32_t)(tail - conn->in.position) : left;
	weir_mux_ring_peek(&conn->in, conn->in.position, buffer + conn->recv_done, n);
	conn->in.position += n;
	conn->recv_done += n;
	publish_read(conn);
	if (n < left)
		return -EAGAIN;
	conn->is_in_message = false;
	*length = conn->recv_length;
	return 0;
}

/* Lends the contiguous bytes of the message that have arrived. -EAGAIN: there are none. */
static int borrow_part(struct weir_mux_conn *conn, struct weir_mux_conn_part *part)
{
	uint32_t left, n;
	uint64_t tail;
	int rc = weir_mux_ring_readable(&conn->in, &tail);

	if (!rc && conn->is_in_message && (conn->has_part || !conn->is_taking))
		return -EINVAL;
	if (!rc && !conn->is_in_message)
		rc = begin_message(conn, tail, SIZE_MAX, NULL);
	if (rc)
		return rc;
	conn->is_taking = true;
	left = conn->recv_length - conn->recv_done;
	n = tail - conn->in.position < left ? (uint32_t)(tail - conn->in.position) : left;
	if (!n && left) {
		publish_read(conn);
		return -EAGAIN;
	}
	if (n > weir_mux_ring_straight(&conn->in, conn->in.position))
		n = weir_mux_ring_straight(&conn->in, conn->in.position);
	conn->has_part = true;
	conn->part = n;
	*part = (struct weir_mux_conn_part){ weir_mux_ring_at(&conn->in, conn->in.position), n,
					     conn->recv_done, conn->recv_length };
	return 0;
}

void weir_mux_conn_give(struct weir_mux_conn *conn)
{
	if (!conn->has_part)
		return;
	conn->has_part = false;
	conn->in.position += conn->part;
	conn->recv_done += conn->part;
	if (conn->recv_done == conn->recv_length)
		conn->is_in_message = conn->is_taking = false;
	publish_read(conn);
}

/* Arguments of one call, kept so the call can be retried. */
struct stream_call {
	struct weir_mux_conn *conn;
	struct weir_mux_ring *ring;
	const int *fd;
	const struct weir_mux_rdma_op_desc *wanted; /* a zero-copy send */
	struct weir_mux_rdma_op_desc *given;
	const void *data;
	struct weir_mux_conn_part *part;
	void *buffer;
	size_t size, *length;
};

/* Arrived bytes are delivered first, even if the connection has ended since. */
static int try_read(const struct stream_call *call)
{
	struct weir_mux_conn *conn = call->conn;
	bool finished = is_finished(conn);
	int status = conn_status(conn);
	int rc = call->part ? borrow_part(conn, call->part) :
			      read_part(conn, call->buffer, call->size, call->length);

	if (rc == -EPROTO)
		__atomic_store_n(&conn->status, rc, __ATOMIC_RELAXED);
	if (rc != -EAGAIN)
		return rc;
	if (status)
		return status;
	return finished ? -ENOTCONN : rc;
}

static int try_call(const struct stream_call *call)
{
	if (call->buffer || call->part)
		return try_read(call);
	if (call->wanted)
		return try_zc_send(call->conn, call->wanted);
	if (call->given)
		return weir_mux_rdma_op_desc_poll(call->conn, call->given);
	return try_write(call->conn, call->data, call->size);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The peer's position worth waiting for: all missing bytes, at most half a ring. The peer is
 * sure to get there without further reads: a credit goes out for each quarter of a ring, so a
 * peer never stops before half a ring.
 */
static uint64_t wanted(const struct stream_call *call)
{
	const struct weir_mux_conn *conn = call->conn;
	const uint64_t head = sizeof(struct wire_mux_record);
	const uint64_t full = conn->out.position - conn->out.size;

	if (call->buffer || call->part)
		return conn->in.position +
		       (conn->is_in_message ?
				smaller(conn->recv_length - conn->recv_done, conn->in.size / 2) :
				head);
	if (call->wanted)
		return full + head;
	if (call->given)
		return 0;
	return full + smaller(head + call->size - conn->send_done, conn->out.size / 2);
}

/* Tries, arms, and tries again before it sleeps or returns -EAGAIN; see weir_mux_ring_arm(). */
static int retry_until_done(const struct stream_call *call, int flags)
{
	const bool may_wait = !(flags & WEIR_MUX_CONN_DONTWAIT);
	uint32_t armed;
	int rc;

	for (;;) {
		rc = try_call(call);
		if (rc != -EAGAIN)
			return rc;
		if (!may_wait)
			weir_mux_fd_drain(__atomic_load_n(call->fd, __ATOMIC_ACQUIRE));
		armed = weir_mux_ring_arm(
			call->ring, may_wait ? WEIR_MUX_RING_ARMED_CALL : WEIR_MUX_RING_ARMED_FD,
			wanted(call));
		rc = try_call(call);
		if (rc != -EAGAIN || !may_wait)
			return rc;
		weir_futex_wait_shared(&call->ring->armed, armed);
	}
}

int weir_mux_conn_send(struct weir_mux_conn *conn, const void *data, size_t length, int flags)
{
	struct stream_call call = { .conn = conn,
				    .ring = conn->out.ring,
				    .fd = &conn->room_fd,
				    .data = data,
				    .size = length };

	if (length > WEIR_MUX_MESSAGE_MAX)
		return -EMSGSIZE;
	return retry_until_done(&call, flags);
}

int weir_mux_conn_send_region(struct weir_mux_conn *conn, const struct weir_mux_region *region,
			      uint64_t at, uint64_t length, int flags)
{
	struct weir_mux_rdma_op_desc *zc_send = &conn->shm->zc_send;
	const struct weir_mux_rdma_op_desc wanted = { .region = region->number,
						      .at = at,
						      .length = length };
	struct stream_call call = {
		.conn = conn, .ring = conn->out.ring, .fd = &conn->room_fd, .wanted = &wanted
	};
	int rc;

	if (length > WEIR_MUX_MESSAGE_MAX)
		return -EMSGSIZE;
	if (!length || at > region->length || length > region->length - at)
		return -EINVAL;
	rc = retry_until_done(&call, flags);
	if (rc)
		return rc;
	call.wanted = NULL;
	call.given = zc_send;
	rc = flags & WEIR_MUX_CONN_DONTWAIT ? retry_until_done(&call, flags) :
					      weir_mux_rdma_op_desc_wait(conn, zc_send);
	conn->is_zc_sending = rc == -EAGAIN;
	return rc;
}

int weir_mux_conn_recv(struct weir_mux_conn *conn, void *buffer, size_t size, size_t *length,
		       int flags)
{
	char nothing;
	struct stream_call call = { .conn = conn,
				    .ring = conn->in.ring,
				    .fd = &conn->fd,
				    .buffer = size ? buffer : &nothing,
				    .size = size,
				    .length = length };

	return retry_until_done(&call, flags);
}

int weir_mux_conn_take(struct weir_mux_conn *conn, struct weir_mux_conn_part *part, int flags)
{
	struct stream_call call = {
		.conn = conn, .ring = conn->in.ring, .fd = &conn->fd, .part = part
	};

	return retry_until_done(&call, flags);
}

int weir_mux_conn_fd(struct weir_mux_conn *conn)
{
	return conn->host->fd(conn, false);
}

int weir_mux_conn_room_fd(struct weir_mux_conn *conn)
{
	return conn->host->fd(conn, true);
}

void weir_mux_conn_close(struct weir_mux_conn *conn)
{
	conn->host->conn_close(conn);
}
