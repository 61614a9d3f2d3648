/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's handles: mux, listener, connection. The mux runs in the same process
 * (local.c) or in weir share (proxy.c). A connection's rings lie in memory shared by application
 * and mux (conn_stream.c); all else goes through struct weir_mux_ops.
 */
#ifndef WEIR_LIB_MUX_HANDLE_H
#define WEIR_LIB_MUX_HANDLE_H

#include <stdbool.h>
#include <weir/mux.h>

#include "lib/mux/ring.h"

/* Waiters on a ring: bits of weir_mux_ring.armed. */
#define WEIR_MUX_RING_ARMED_FD 1u
#define WEIR_MUX_RING_ARMED_CALL 2u

/* States of an RDMA operation descriptor. */
enum {
	WEIR_MUX_RDMA_OP_NONE,
	WEIR_MUX_RDMA_OP_SUBMITTED,
	WEIR_MUX_RDMA_OP_STARTED,
	WEIR_MUX_RDMA_OP_DONE
};

/**
 * struct weir_mux_rdma_op_desc - an operation submitted on a region
 * @state: the application moves NONE to SUBMITTED, the mux the rest
 * @status: the result, valid in state DONE
 * @is_awaited: the application may sleep on @state; written by the application
 * @region, @at, @length: the local range, as in weir/mux.h; @region is the number
 * @is_read, @handle, @there: the remote side of an RDMA operation
 */
struct weir_mux_rdma_op_desc {
	_Alignas(64) uint32_t state;
	int32_t status;
	uint32_t is_awaited, is_read, handle, region;
	uint64_t there, at, length;
};

/**
 * struct weir_mux_conn_shm - control block of a connection, shared by application and mux
 * @out, @in: the two streams
 * @rdma_op: an RDMA read or write, one at a time
 * @zc_send: a zero-copy send from a region, one at a time; the bytes follow those in @out at
 *	submission
 * @status: 0, or the connection's error
 * @is_finished: the peer sends nothing more
 *
 * The mux writes @status and @is_finished and never reads them back.
 */
struct weir_mux_conn_shm {
	struct weir_mux_ring out, in;
	struct weir_mux_rdma_op_desc rdma_op, zc_send;
	_Alignas(64) int32_t status;
	uint32_t is_finished;
};

/* Operations of a mux, named after the functions of weir/mux.h. */
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
	/* The application has written, or has read enough for a credit to the peer. */
	void (*news)(struct weir_mux_conn *conn);
	/* Return: a descriptor for armed waiters of @in (or @out); -ENOMEM. */
	int (*fd)(struct weir_mux_conn *conn, bool out);
	void (*conn_close)(struct weir_mux_conn *conn);
	/* Fills in the number and the data of @region; the caller has set the rest. */
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

/* @number: names the region to the mux. */
struct weir_mux_region {
	struct weir_mux *mux;
	uint32_t number;
	char *data;
	size_t length;
};

/**
 * struct weir_mux_conn - the application's end of a connection
 * @status: an error found by the application's side; any thread
 * @fd, @room_fd: -1 until requested; any thread
 * @send_done: bytes of the current message in the ring so far, its record included
 * @is_zc_sending: a zero-copy send is submitted, and not yet reported as done
 * @is_in_message, @recv_length, @recv_done: progress within a partly received message
 * @is_taking: weir_mux_conn_take() reads the message; @has_part, @part: bytes lent to the caller
 * @asked: read position at the last call of ops->news()
 *
 * One thread sends and one receives.
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
 * Poll or wait for a submitted operation. If the connection has ended, an operation not yet
 * taken by the mux is withdrawn.
 *
 * Return: the operation's status, or the connection's error; -EAGAIN (poll only) not done yet.
 */
int weir_mux_rdma_op_desc_poll(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *desc);
int weir_mux_rdma_op_desc_wait(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *desc);
/*
 * Completes an operation in state @from with @status. The mux calls this when a connection ends,
 * or the reader thread when weir share is gone. The caller has set the connection's status
 * before: either this call sees the operation submitted, or the submitter sees the status.
 */
void weir_mux_rdma_op_desc_cancel(struct weir_mux_rdma_op_desc *desc, uint32_t from, int status);
/* Completes a started operation and wakes the waiter. */
void weir_mux_rdma_op_desc_complete(struct weir_mux_rdma_op_desc *desc, int status);
/* Return: 0, or the reason why the mux takes no more operations on this connection. */
int weir_mux_conn_ended(const struct weir_mux_conn *conn);

/* Signal and drain an eventfd(2) or a pipe; no-ops for -1. */
void weir_mux_fd_signal(int fd);
void weir_mux_fd_drain(int fd);

#endif
