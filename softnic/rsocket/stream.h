/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rsockets: streams over RDMA, with the calls of sockets. The protocol is that of rdma-core
 * (librdmacm/docs/rsocket): an end writes bytes into the other end's buffer by RDMA, and tells the
 * length by the immediate. A reader gives a half of its buffer back when all of the half is read.
 *
 * librdmacm's own rsockets cannot be used, because they look into librdmacm's part of an id.
 *
 * A stream's lock guards the stream. No thread waits with the lock held: each wait is a poll() of
 * the stream's descriptor, of at most STREAM_NAP_MS, because another thread may take the event.
 */
#ifndef WEIR_SOFTNIC_RSOCKET_STREAM_H
#define WEIR_SOFTNIC_RSOCKET_STREAM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#pragma GCC visibility pop

/* The function is librdmacm's function of this name. */
#define STANDS_FOR(symbol) __asm__(#symbol) __attribute__((visibility("default")))

enum {
	STREAM_NAP_MS = 20,
	STREAM_CONTROLS = 4, /* messages without bytes that may be under way */
	STREAM_TARGETS = 2, /* halves of a buffer */
	STREAM_DEPTH = 384, /* default of both queues */
	STREAM_DEPTH_MIN = 16,
	STREAM_DEPTH_MAX = 8192,
	STREAM_BUFFER = 1 << 17, /* default of both buffers, in bytes */
	STREAM_BUFFER_MIN = 1 << 12,
	STREAM_BUFFER_MAX = 1 << 28,
	STREAM_CHUNK_MAX = 1 << 16, /* bytes of one message */
	STREAM_INLINE = 64,
	STREAM_IOMAPS_MAX = 127,
};

/* On the wire, in the byte order of the writer. */
struct stream_target {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};
_Static_assert(sizeof(struct stream_target) == 16, "on the wire");

struct stream_iomap {
	uint64_t offset;
	struct stream_target to;
};
_Static_assert(sizeof(struct stream_iomap) == 24, "on the wire");

/* The tables that the peer writes by RDMA. */
struct stream_shared {
	struct stream_target targets[STREAM_TARGETS];
	struct stream_iomap iomaps[STREAM_IOMAPS_MAX];
};

/* A buffer of the program that the peer may write; @index in the peer's table, or -1. */
struct stream_map {
	struct ibv_mr *mr;
	uint64_t offset;
	int index;
	bool is_told;
	TAILQ_ENTRY(stream_map) link;
};
TAILQ_HEAD(stream_maps, stream_map);

enum stream_state {
	STREAM_NEW,
	STREAM_LISTENING,
	STREAM_CONNECTING, /* waits for the answer */
	STREAM_ACCEPTING, /* waits until the peer is ready */
	STREAM_OPEN,
	STREAM_ENDED, /* bytes that came before the end may be left */
	STREAM_FAILED, /* did not connect */
};

TAILQ_HEAD(stream_queue, rstream);

/**
 * struct rstream - an rsocket
 * @lock: guards all below
 * @id: synchronous, with a channel that does not block
 * @users: threads inside a call, and the table; the last one frees the stream
 * @error: an errno for the program, or 0
 * @is_readable, @is_writable: no end of this direction was said or heard
 * @is_nonblocking: the program's choice
 * @depth: of both queues; @inline_max, @maps_max, @out_size, @in_size: as asked for
 * @out: ring of bytes under way; @out_at: where the next go; @out_free: bytes
 * @slots_free: of the send queue, for messages with bytes; @controls_free: for others
 * @sent, @sent_max: numbers of the last message with bytes, and of the last that the peer has room
 *	for; they wrap
 * @to: the halves of the peer's buffer that may be written; @to_at: the present one
 * @in: the buffer that the peer writes; @in_at: where the oldest unread byte is
 * @lengths: ring of the lengths of messages not read
 * @in_left: bytes not read of the oldest message
 * @read, @read_told: messages read, and the number at which the peer is told again; they wrap
 * @in_given: bytes read since the peer was last given a half; @give_at: the half to give next
 * @peer_targets: where the peer's table is; @peer_target: the entry to write next
 * @peer_maps: entries in the peer's table of mapped buffers, behind its targets
 * @shared: our table, which the peer writes
 * @accepted: of a listener: streams that no raccept() has fetched; @nr_accepted streams, at most
 *	@backlog
 * @accept_fd: an eventfd with a count for each; -1 unless listening
 * @link: in a listener's queue
 * @is_armed: a completion will make an event
 */
struct rstream {
	pthread_mutex_t lock;
	struct rdma_cm_id *id;
	enum stream_state state;
	uint32_t users;
	int fd;
	int error;
	bool is_readable, is_writable, is_nonblocking, is_armed;
	int fd_flags;

	uint32_t depth, inline_max, maps_max, out_size, in_size;
	int reuse, nodelay, v6only;

	uint8_t *out;
	struct ibv_mr *out_mr;
	uint32_t out_at, out_free, slots_free, controls_free;
	uint16_t sent, sent_max;
	struct stream_target to[STREAM_TARGETS];
	uint32_t to_at;

	uint8_t *in;
	struct ibv_mr *in_mr;
	uint32_t in_at;
	uint32_t *lengths;
	uint32_t lengths_head, lengths_tail;
	uint16_t read, read_told;
	uint32_t in_given, give_at;
	struct stream_target peer_targets;
	uint32_t peer_target, peer_maps;

	struct stream_shared *shared;
	struct ibv_mr *shared_mr;
	struct stream_maps maps;

	struct stream_queue accepted;
	unsigned int nr_accepted, backlog;
	int accept_fd;
	TAILQ_ENTRY(rstream) link;
};

/* table.c */

/* Find a stream and use it; NULL with EBADF. The caller owes stream_put(). */
struct rstream *stream_get(int fd);
void stream_put(struct rstream *s);
/* The stream has its descriptor from now on. Return: the descriptor, or -1 with errno. */
int stream_publish(struct rstream *s);
/* Take a descriptor's stream out of the table, with the table's use; NULL with EBADF. */
struct rstream *stream_withdraw(int fd);

/* setup.c */

struct rstream *stream_new(const struct rstream *like);
void stream_free(struct rstream *s);
/* Take the events of connecting that have come. Context: lock held. */
void stream_advance(struct rstream *s);
/* The result of rdma_accept() for a stream of this thread alone: 0 or a negative errno. */
void stream_accepted(struct rstream *s, int rc);
int stream_unblock(const struct rdma_cm_id *id);
/* An address, cut to @length; @length becomes its whole length. */
void stream_copy_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *length);

/* listen.c: a thread accepts, so that a peer's rconnect() need not wait for raccept(). */

/* Context: lock held. Return: 0 or a negative errno. */
int stream_listen(struct rstream *s, int backlog);
/* A listener that leaves the table; no thread accepts for it afterwards. */
void stream_stop_listening(struct rstream *s);

/* flow.c. Context of all: lock held. */

/* Make the queue pair and the buffers. Return: 0 or a negative errno. */
int flow_open(struct rstream *s);
void flow_close(struct rstream *s);

/* The private data of a request or reply. */
enum { FLOW_HELLO_BYTES = 40 };
void flow_say_hello(const struct rstream *s, uint8_t *hello);
/* Return: 0, or -EPROTO for a peer of another kind. */
int flow_hear_hello(struct rstream *s, const void *hello);

/* Take completions, and tell the peer of room. */
void flow_progress(struct rstream *s);
/* Let the next completion make the descriptor ready; completions before may do so, too. */
void flow_arm(struct rstream *s);
/* Take the event that made the descriptor ready. */
void flow_take_event(struct rstream *s);

bool flow_has_bytes(const struct rstream *s);
bool flow_can_send(const struct rstream *s);
bool flow_is_idle(const struct rstream *s); /* nothing of ours is under way */

/* Send at most @size bytes; needs flow_can_send(). Return: bytes, or a negative errno. */
int flow_send(struct rstream *s, const void *bytes, size_t size);
/* Write into a mapped buffer of the peer, likewise. */
int flow_write(struct rstream *s, const void *bytes, size_t size,
	       const struct stream_target *to, uint64_t at);
/* Tell the peer of a mapped buffer, likewise. Return: 0 or a negative errno. */
int flow_tell_map(struct rstream *s, const struct stream_map *map);
/* Take at most @size bytes; @peek: and leave them. Return: bytes. */
size_t flow_receive(struct rstream *s, void *bytes, size_t size, bool peek);

enum flow_end { FLOW_DISCONNECT = 0, FLOW_SHUTDOWN = 2 };
/* Tell the peer that no bytes follow. Return: false: no room now. */
bool flow_end(struct rstream *s, enum flow_end end);

/* wait.c */

typedef bool stream_condition(const struct rstream *s);

/**
 * stream_wait() - wait until a condition holds, or the stream is no longer open
 * @until_ms: time limit by the monotonic clock; UINT64_MAX: none
 *
 * Context: lock held; released while waiting.
 * Return: 0 the condition holds or the stream has ended; -EAGAIN the time is over.
 */
int stream_wait(struct rstream *s, stream_condition *holds, uint64_t until_ms);
uint64_t stream_now_ms(void);

/* The errno convention of sockets. */
static inline int stream_return(int rc)
{
	if (rc >= 0)
		return rc;
	errno = -rc;
	return -1;
}

#endif
