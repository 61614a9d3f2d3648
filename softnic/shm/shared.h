/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory shared between processes: six kinds of sealed memfd, and the messages that pass them.
 *
 * pub	one per process, written by the owner, read-only for peers: memory regions, counters.
 * doorbell_page	one per client, writable by that client: completion queues are armed and
 *	rung here.
 * qp	one per queue pair, writable by the peers: the receive queue and the peers' guards.
 * srq	one per shared receive queue, writable by the peers of the attached queue pairs.
 * atomics	one per process, empty: its lock makes atomics on the process's memory atomic.
 * srq buffers	one per shared receive queue, written by the owner, read-only for peers.
 *
 * No value from memory that a peer can write is trusted: softnic copies, checks, then uses the
 * value. All processes belong to one user, who could attach a debugger to each process. The checks
 * confine a program's bug to that program.
 */
#ifndef WEIR_SOFTNIC_SHM_SHARED_H
#define WEIR_SOFTNIC_SHM_SHARED_H

#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "softnic/verbs/device.h"
#include "softnic/control/stat.h"

enum {
	SHARED_VERSION = 16,
	SHARED_MRS = 1 << 16,
	SHARED_CQS = 1 << 14,
	SHARED_OBJECTS = 1 << 15,
	SHARED_QPS = 1 << SOFTNIC_QP_INDEX_BITS,
	SHARED_SGES_MAX = 32,
	SHARED_WRS_MAX = 1 << 15,
	SHARED_GUARDS_MAX = 1 << 10,
	SHARED_FILES = 64,
	SHARED_SEATS = 256, /* of a completion queue: see ready_list.h */
};

#define SHARED_MAGIC 0x52494557u /* "WEIR" */

/* All memory orders used between threads and processes. */
#define load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
/* Store-load pairing: each side stores, then loads, and at least one side sees the other. */
#define load_ordered(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define store_ordered(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define add_ordered(p, n) __atomic_add_fetch(p, n, __ATOMIC_SEQ_CST)
#define swap_ordered(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)

enum { SHARED_REGION, SHARED_WINDOW_1, SHARED_WINDOW_2, SHARED_NULL };

/* A memory region or window. The owner stores @key last and clears @key first; 0: unused. */
struct shared_mr {
	uint32_t key;
	uint32_t access;
	uint32_t pd;
	uint32_t kind;
	uint64_t iova; /* address in work requests */
	uint64_t addr; /* address in the owner */
	uint64_t length;
	uint32_t qpn; /* type 2 window: the bound queue pair */
	uint32_t file; /* number of the mappable file that holds the region; 0: none */
	uint64_t offset; /* in the file */
	uint32_t binds; /* window: binds so far, with the current bind */
	uint32_t device; /* for lists of objects only */
};
_Static_assert(sizeof(struct shared_mr) == 64, "one cache line");

/* A queue pair, for lists of objects only: peers find its state in struct shared_qp. */
struct shared_qp_entry {
	uint32_t is_used;
	uint32_t number, device, port;
	uint32_t type, state; /* enum ibv_qp_type, enum ibv_qp_state */
	uint32_t pd, dest;
	uint32_t rq_psn, sq_psn;
	uint32_t srq; /* index of its entry; 0: none */
	uint32_t reserved[5];
};
_Static_assert(sizeof(struct shared_qp_entry) == 64, "one cache line");

enum { SHARED_NO_OBJECT, SHARED_PD, SHARED_CQ, SHARED_SRQ, SHARED_CM_ID };

/* Another object, for lists of objects only. The owner stores @kind last and clears @kind first. */
struct shared_object {
	uint32_t kind;
	uint32_t device;
	uint32_t pd; /* handle */
	uint32_t users; /* of a PD or CQ: objects that need it */
	uint32_t cqe; /* of a CQ */
	uint32_t type; /* of an SRQ: enum ibv_srq_type; of an id: enum ibv_qp_type */
	uint32_t cq; /* of an XRC SRQ: index of the CQ's entry */
	/* Of an id. */
	uint32_t qpn; /* 0: none */
	uint32_t port, port_space;
	uint32_t state; /* the number that the kernel has for it, enum rdma_cm_state */
	uint32_t reserved[7];
	struct sockaddr_in6 src, dst; /* or a struct sockaddr_in */
};
_Static_assert(sizeof(struct shared_object) == 128, "two cache lines");

/*
 * A robust mutex that the engine thread locks and never unlocks. When the thread ends, the
 * kernel marks the mutex before the PID can be reused. Without a mark, the PID still names the
 * same process. The test costs one load.
 */
struct shared_life {
	pthread_mutex_t held;
	uint32_t down; /* the port is down: the process receives nothing */
	uint32_t pages_on_demand; /* regions name pages that may be missing or protected */
} __attribute__((aligned(64)));

struct shared_pub {
	uint32_t magic, version;
	uint32_t pid, slot;
	char comm[16];
	uint64_t proof_addr, proof; /* the owner's memory holds @proof at @proof_addr */
	uint32_t reserved[4];
	struct shared_life life; /* in a separate cache line: each copy reads @life */
	struct softnic_counters counters;
	uint32_t nr_peers; /* of @peers, in use */
	struct softnic_peer peers[SOFTNIC_PEERS_MAX];
	uint32_t files[SHARED_FILES]; /* numbers of the files that peers may map, or 0 */
	struct shared_mr mrs[SHARED_MRS]; /* [0] stays unused: key 0 is invalid */
	/* Only for lists of objects. Segments of earlier programs end before. */
	struct shared_qp_entry qps[SHARED_QPS]; /* by index */
	struct shared_object objects[SHARED_OBJECTS]; /* [0] stays unused */
};

#define SHARED_PUB_BYTES_MIN offsetof(struct shared_pub, qps)

/**
 * shared_life_begin() - publish that the process lives, until the calling thread ends
 *
 * Return: 0 or a negative errno.
 */
int shared_life_begin(struct shared_life *life);

/** shared_life_ended() - true if the thread that called shared_life_begin() has ended */
static inline bool shared_life_ended(const struct shared_life *life)
{
	return load_acquire(&life->held.__data.__lock) & FUTEX_OWNER_DIED;
}

enum { ARMED_NOT, ARMED_SOLICITED, ARMED_ANY };

/* The doorbell of one completion queue. One cache line each. */
struct shared_cq {
	uint32_t armed; /* the ringing side resets @armed to ARMED_NOT */
	uint32_t arrivals; /* grows by at least one for each completion */
	uint32_t solicited; /* grows by one for each solicited completion */
	uint32_t told, solicited_told; /* @arrivals and @solicited at the last event */
	/* Written by the owner. */
	uint32_t consumed; /* arrivals polled */
	uint32_t capacity; /* with more arrivals not consumed, the CQ may have overrun */
	uint32_t is_stamped; /* completions carry a time stamp */
	uint64_t ready[SHARED_SEATS / 64]; /* seats that may have completions; set by the ringer */
};
_Static_assert(sizeof(struct shared_cq) == 64, "one cache line");

struct shared_doorbells {
	struct shared_cq cqs[SHARED_CQS];
	/* For each type 2 window, by index: the last bind that was invalidated. */
	uint32_t invalidated[SHARED_MRS];
};

enum { SHARED_XRC_SRQ = 1u << 8 }; /* as a type: the end of an SRQ, see xrc.c */

enum { SHARED_QP_RESET, SHARED_QP_READY, SHARED_QP_ERROR, SHARED_QP_GONE };

/*
 * A receive work request and its completion. The upper half of @turn is the position, the lower
 * half names the holder. 0: free for the first taker. A queue pair number: that taker's.
 * RECV_DONE, alone or with a number: the owner.
 */
struct shared_recv {
	uint64_t turn;
	uint32_t status; /* enum ibv_wc_status, or RECV_VOID */
	uint32_t opcode; /* enum ibv_wc_opcode */
	uint32_t flags; /* enum ibv_wc_flags, RECV_IPV4, RECV_IN_TRAY */
	uint32_t byte_len;
	uint32_t imm;
	uint32_t src_qp;
	uint32_t dest_qp; /* SRQ: the queue pair at which the message arrived */
	uint64_t done_ns; /* time of completion, if the completion queue is stamped */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct shared_recv) == 64, "one cache line");

enum { RECV_DONE = 1u << 31 };
enum { RECV_IPV4 = 1u << 31 }; /* an IPv4 header precedes the datagram */
enum { RECV_IN_TRAY = 1u << 29 }; /* the bytes are in the receive's tray, not in its buffers */
enum { RECV_VOID = 1u << 30 }; /* no message received: the owner posts the receive again */

/* The buffers of a receive; only the owner writes them. */
struct shared_buffers {
	uint64_t out; /* position << 32 | 1 while the receive is out, else 0 */
	uint32_t num_sge;
	uint32_t reserved;
	struct ibv_sge sges[];
};

/* The owner's part of a receive queue, with the buffers of the receives. */
struct shared_rq_own {
	uint32_t magic, version;
	uint32_t size; /* a power of two, or 0 */
	uint32_t sges; /* per receive */
	uint32_t pd;
	uint32_t reserved[11];
	uint8_t buffers[]; /* size of shared_buffers, each in whole cache lines */
};
_Static_assert(sizeof(struct shared_rq_own) == 64, "one cache line, then the buffers");

/* The receive queue of a queue pair, or of an SRQ. See rq.h. */
struct shared_rq {
	/* Written by the owner. */
	uint32_t tail; /* receives posted, so that takers see how few are left */
	uint32_t limit; /* takers report when fewer receives are left; 0: disarmed */
	uint32_t reserved0[14];
	/* Written by the takers. */
	uint32_t head; /* the oldest receive that may still be posted */
	uint32_t low; /* a taker has reported the limit to the owner */
	uint32_t reserved1[14];
	/* position << 32 | index of the receive, size times; then size of shared_recv */
	uint64_t posted[];
};
_Static_assert(sizeof(struct shared_rq) == 128, "two cache lines, then the ring");

/* Completed receives, in order of completion. Many peers add, the owner takes. */
struct shared_arrivals {
	uint32_t tail;
	uint32_t reserved[15];
	uint64_t at[]; /* position << 32 | index of the receive */
};
_Static_assert(sizeof(struct shared_arrivals) == 64, "one cache line, then the ring");

/* See guard.h. */
struct shared_guard {
	uint32_t user; /* number of the queue pair that claimed the guard, or 0 */
	uint32_t count; /* odd while the user is between checks and copy */
	uint32_t cut; /* the owner goes on without the user */
	uint32_t reserved;
};

/* The owner writes the first cache line. */
struct shared_qp {
	uint32_t magic, version;
	uint32_t state;
	uint32_t dest_qpn;
	uint32_t pd;
	uint32_t access;
	uint32_t min_rnr_timer;
	uint32_t recv_cq; /* index into the owner's doorbell_page */
	uint32_t arrivals; /* size of the ring of arrivals, a power of two, or 0 */
	uint32_t guards; /* number of guards, a multiple of 8 */
	uint32_t type; /* enum ibv_qp_type, or SHARED_XRC_SRQ */
	uint32_t qkey;
	uint32_t reads; /* max_dest_rd_atomic; peers test only for 0 */
	uint32_t has_trays; /* see tray.h */
	uint64_t xrcd; /* number of the XRC domain; 0: none */
	/* guards, arrivals, the receive queue unless an SRQ is attached, then the trays */
	uint8_t rest[];
};
_Static_assert(sizeof(struct shared_qp) == 64, "one cache line");

/* Messages over SOCK_SEQPACKET: the connecting side asks, the listening side answers. */
enum shm_msg_type {
	MSG_HELLO = 1, /* asks for WELCOME: value is the asker's slot */
	MSG_WELCOME, /* descriptors: pub and doorbell_page; only pub for an asker without slot;
			 * none if the answerer is short of descriptors */
	MSG_ASK_QP, /* asks for QP: qpn is the answerer's, from the asker's; addr is any
			 * number that identifies the question */
	MSG_QP, /* descriptors: qp; the SRQ and its buffers, if attached; a wakeup, if the
			 * receive CQ has a channel; the first time /proc/self/mem, if it could be
			 * opened, and the atomics.
			 * channel: its number, so that the asker recognises two wakeups to one
			 * channel; value: 0, or an errno without descriptors; addr as asked */
	MSG_BYE_QP, /* the asker's QP from no longer uses the answerer's qpn */
	MSG_CQ_OVERRUN, /* qpn's receive CQ may hold more completions than its capacity */
	MSG_SRQ_LIMIT, /* few receives are left in the SRQ of the answerer's qpn */
	MSG_QP_ERROR, /* qpn refused a request: value is 0, or 1 + enum ibv_event_type */
	MSG_SET_FAULT, /* asks for FAULT_SET: qpn is the enum softnic_option, value its value */
	MSG_FAULT_SET, /* value is 0 or an errno */
	MSG_ASK_FILE, /* asks for FILE number value, if still shared */
	MSG_FILE, /* descriptor: the file of number value */
	MSG_FILES, /* a file is no longer shared; the answerer's pub lists the shared files */
	MSG_GONE_QP, /* the answerer's QP from is destroyed; the asker's qpn sent it datagrams */
	MSG_GATE_SEND, /* a message to the closed gate of qpn, value bytes long; asks for GATE_DONE;
			 * channel: its number; addr: see gate.c */
	MSG_GATE_DONE, /* the message of number channel is taken or refused; value: see gate.c */
	MSG_TRAY_FULL, /* a piece is in the tray of a receive of qpn, an XRC SRQ's end; addr: the
			 * receive's index, channel: its position; value: the piece's place in the
			 * message; asks for TRAY_EMPTY */
	MSG_TRAY_EMPTY, /* the piece is in the buffers; value and channel as asked; addr: 0, or 1
			 * if the buffers are invalid */
};

/*
 * HAS_SRQ: two descriptors, the ring and the buffers.
 * HAS_GATE: no descriptors at all; QP follows again when the gate opens.
 * HAS_TRAYS: no memory; nobody connects to the queue pair.
 */
enum {
	HAS_SRQ = 1,
	HAS_WAKEUP = 2,
	HAS_MEMORY = 4,
	HAS_GATE = 8,
	HAS_TRAYS = 16,
	HAS_ATOMICS = 32,
};

struct shm_msg {
	uint32_t magic, version;
	uint32_t type;
	uint32_t qpn, from;
	uint32_t has; /* HAS_*: the descriptors after the first */
	uint64_t value;
	uint64_t addr;
	uint64_t channel;
};
_Static_assert(sizeof(struct shm_msg) == 48, "shared between programs");

enum {
	SHM_MSG_FDS_MAX = 6,
	SHM_MSG_BYTES_MAX = 1 << 14, /* after a MSG_GATE_SEND */
};

/**
 * shared_create() - create a sealed memfd and map it for writing
 * @name: shown in /proc only
 * @size: in bytes
 * @owner_only: no other process can ever map the memfd for writing
 * @fd: set to the descriptor to pass to peers
 * @map: set to the mapping; not inherited by the child of a fork
 *
 * Return: 0 or a negative errno.
 */
int shared_create(const char *name, size_t size, bool owner_only, int *fd, void **map);

/**
 * shared_is_safe() - true if no other process can make access to a mapping of the file fault
 * @fd: any descriptor
 * @st: set to the file's status
 */
bool shared_is_safe(int fd, struct stat *st);

/**
 * shared_map() - map a peer's memfd, if safe
 * @fd: stays the caller's
 * @size_min: smallest valid size, in bytes
 * @prot: PROT_READ, PROT_WRITE
 * @map: set to the mapping
 * @size: set to the file's size, in bytes
 *
 * Return: 0, -EPROTO if the file is no such memfd, or another negative errno.
 */
int shared_map(int fd, size_t size_min, int prot, void **map, size_t *size);

/**
 * shared_address() - the abstract address of a slot of this user
 * @slot: 1 to SOFTNIC_SLOTS - 1
 * @addr: set to the address
 *
 * Return: the length of the address.
 */
socklen_t shared_address(uint32_t slot, struct sockaddr_un *addr);

/**
 * shared_is_ours() - true if the peer of a socket belongs to this user
 * @fd: a connected socket
 * @pid: set to the peer's PID, 0 if not visible in our PID namespace
 */
bool shared_is_ours(int fd, pid_t *pid);

/**
 * shm_msg_send() - send one message without blocking
 *
 * Return: 0, -EAGAIN if the socket is full, or another negative errno.
 */
int shm_msg_send(int fd, const struct shm_msg *m, const int *fds, int num_fds);

/**
 * shm_msg_send_bytes() - send one message, and m->value bytes with it, without blocking
 *
 * Return: as shm_msg_send().
 */
int shm_msg_send_bytes(int fd, const struct shm_msg *m, const void *bytes);

/**
 * shm_msg_receive() - take one message without blocking
 * @fd: the socket
 * @m: set to the message
 * @fds: room for SHM_MSG_FDS_MAX descriptors, now the caller's; -1 beyond the last; NULL to
 *	accept no descriptors
 *
 * Return: 0, -EAGAIN, -EPIPE at the end of the connection, -EPROTONOSUPPORT for a message of
 * another version, -EPROTO for none, -EMFILE if the process had no room for the descriptors.
 */
int shm_msg_receive(int fd, struct shm_msg *m, int *fds);

/**
 * shm_msg_receive_bytes() - the same, without descriptors, but with the bytes of a MSG_GATE_SEND
 * @bytes: room for SHM_MSG_BYTES_MAX; m->value of them are valid if the message has that type
 *
 * A message that says another number of bytes than follow, or too many, is none: -EPROTO.
 */
int shm_msg_receive_bytes(int fd, struct shm_msg *m, void *bytes);

/* Tells the user why there is no connection with a process of this host. */
#define SHARED_REFUSAL "no connection to process %d: %s"
#define SHARED_OTHER_VERSION \
	"the peer runs another version of softnic: use the same version for both"

/**
 * shm_msg_fd() - find an optional descriptor of a message
 * @which: HAS_*
 *
 * Return: the place in @fds of the descriptor, or of the first, or NULL if the message has none.
 */
int *shm_msg_fd(const struct shm_msg *m, int *fds, uint32_t which);

/** shm_msg_close_fds() - close a message's descriptors, of any kind */
void shm_msg_close_fds(int *fds);

#endif
