/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an application holds: a mux, a listener, a connection. The hub behind them is in this
 * process (local.c). The bytes of a connection are where both see them, and
 * stream.c deals with them; all else is asked of the host.
 */
#ifndef WEIR_LIB_MUX_HANDLE_H
#define WEIR_LIB_MUX_HANDLE_H

#include <stdbool.h>
#include <weir/mux.h>

#include "lib/mux/ring.h"

/* Who may wait for a ring to change: bits of weir_mux_ring.armed. */
#define WEIR_MUX_RING_ARMED_FD 1u
#define WEIR_MUX_RING_ARMED_CALL 2u

/* Who has the order. */
enum {
	WEIR_MUX_RDMA_OP_NONE,
	WEIR_MUX_RDMA_OP_SUBMITTED,
	WEIR_MUX_RDMA_OP_STARTED,
	WEIR_MUX_RDMA_OP_DONE
};

/**
 * struct weir_mux_rdma_op_desc - what an application asks to be done with its region
 * @state: given by the application, taken and done by the hub
 * @status: when done
 * @is_awaited: who gave it may sleep on @state; the application's to write
 * @region, @at, @length: as in weir/mux.h; @region by its number
 * @is_read, @handle, @there: the same, of a one-sided read or write
 */
struct weir_mux_rdma_op_desc {
	_Alignas(64) uint32_t state;
	int32_t status;
	uint32_t is_awaited, is_read, handle, region;
	uint64_t there, at, length;
};

/**
 * struct weir_mux_conn_shm - what application and hub both see of a connection
 * @out, @in: of the streams
 * @order: a one-sided read or write, one at a time
 * @zc_send: what is sent from a region, one at a time: its bytes come in the stream after all that is
 *	in @out when it is given
 * @status: 0, or why it no longer works
 * @is_finished: the other end sends no more
 *
 * The hub writes the last two for the application to read, and does not read them itself.
 */
struct weir_mux_conn_shm {
	struct weir_mux_ring out, in;
	struct weir_mux_rdma_op_desc order, zc_send;
	_Alignas(64) int32_t status;
	uint32_t is_finished;
};

/* What the hub of a handle does for it; as the functions of weir/mux.h with such names. */
struct weir_mux_ops {
	void (*close)(struct weir_mux *mux);
	void (*info)(struct weir_mux *mux, struct weir_mux_info *info);
	int (*connect)(struct weir_mux *mux, const char *peer, uint32_t service,
		       const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		       struct weir_error *error);
	int (*listen)(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		      struct weir_mux_listener **listener);
	int (*accept)(struct weir_mux_listener *listener, struct weir_mux_conn **conn);
	int (*listener_fd)(const struct weir_mux_listener *listener);
	void (*listener_close)(struct weir_mux_listener *listener);
	/* The application has written, or has read so much that the other end should know. */
	void (*news)(struct weir_mux_conn *conn);
	/* Descriptors that are readable when @in, or @out, has been told. -ENOMEM. */
	int (*fd)(struct weir_mux_conn *conn, bool out);
	void (*conn_close)(struct weir_mux_conn *conn);
	/* @region: all but its number and data filled in. */
	int (*region_open)(struct weir_mux *mux, struct weir_mux_region *region);
	int (*region_close)(struct weir_mux_region *region);
	int (*grant)(struct weir_mux_conn *conn, const struct weir_mux_region *region, uint64_t at,
		     uint64_t length, unsigned int rights, uint32_t *handle);
	int (*withdraw)(struct weir_mux_conn *conn, uint32_t handle);
	int (*weigh)(struct weir_mux_conn *conn, unsigned int weight);
};

struct weir_mux {
	const struct weir_mux_ops *host;
};

struct weir_mux_listener {
	const struct weir_mux_ops *host;
};

/* @number: the hub's name for it. */
struct weir_mux_region {
	struct weir_mux *mux;
	uint32_t number;
	char *data;
	size_t length;
};

/**
 * struct weir_mux_conn - the application's end of a connection
 * @status: what it has found out itself; any thread
 * @fd, @room_fd: -1 until there is one; any thread
 * @send_done: of a message that the ring has taken in part, its record included
 * @is_zc_sending: a zc_send has been given, and its end not been told
 * @is_in_message, @recv_length, @recv_done: a part of one has been received
 * @is_taking: by weir_mux_conn_take(); @has_part, @part: so many bytes are to be given back
 * @asked: how much had been read when the hub was last told
 *
 * One thread sends, one receives.
 */
struct weir_mux_conn {
	const struct weir_mux_ops *host;
	struct weir_mux_conn_shm *shm;
	int status, fd, room_fd;
	struct weir_mux_ring_end out, in;
	uint64_t send_done;
	bool is_zc_sending, is_in_message;
	uint32_t recv_length, recv_done;
	bool is_taking, has_part;
	uint32_t part;
	uint64_t asked;
};

/*
 * onesided.c: an order that has been given. weir_mux_rdma_op_desc_poll(): -EAGAIN it is not done;
 * weir_mux_rdma_op_desc_wait() sleeps until it is. Return: its status, or why the connection does nothing
 * more; an order that had not been taken by then is taken back.
 */
int weir_mux_rdma_op_desc_poll(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *order);
int weir_mux_rdma_op_desc_wait(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *order);
/*
 * The hub's, or whoever's when it is gone, once the connection says that it has ended: an order in
 * state @from is done. Either this sees that it has been given, or who has given it sees the end.
 */
void weir_mux_rdma_op_desc_cancel(struct weir_mux_rdma_op_desc *order, uint32_t from, int status);
/* One that has been taken is done: who sleeps for it, if anybody does, is woken. */
void weir_mux_rdma_op_desc_complete(struct weir_mux_rdma_op_desc *order, int status);
/* Why no order will be taken any more, or 0. */
int weir_mux_conn_ended(const struct weir_mux_conn *conn);

/* Rings an eventfd(2) or a pipe, and silences it. -1: there is none. */
void weir_fd_signal(int fd);
void weir_fd_drain(int fd);

#endif
