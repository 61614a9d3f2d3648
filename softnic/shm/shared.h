/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What processes share: four kinds of sealed memfd, and the messages that hand them out.
 *
 * pub	one a process; the owner writes, peers can only read: memory regions, counters.
 * doorbell_page	one for each peer of a process, which may write it: where completion queues
 * are armed
 *	and rung.
 * qp	one a queue pair; its peers may write: the receive queue, and their guards.
 * srq	one a shared receive queue; the peers of its queue pairs may write.
 *
 * Nothing read from memory that a peer can write is trusted: it is copied, checked, then
 * used. All of it belongs to one user, who could attach a debugger to either side anyway;
 * the checks are there so that one program's bug stays its own.
 */
#ifndef WEIR_SOFTNIC_SHM_SHARED_H
#define WEIR_SOFTNIC_SHM_SHARED_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "softnic/verbs/device.h"
#include "softnic/control/stat.h"

enum {
	SHARED_VERSION = 8,
	SHARED_MRS = 1 << 16,
	SHARED_CQS = 1 << 14,
	SHARED_SGES_MAX = 32,
	SHARED_WRS_MAX = 1 << 15,
	SHARED_GUARDS_MAX = 1 << 10,
	SHARED_FILES = 64,
	SHARED_SEATS = 256, /* of a completion queue: see ready_list.h */
};

#define SHARED_MAGIC 0x52494557u /* "WEIR" */

/* The only orders used between threads and processes. */
#define load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
/* For "I store, then look; you store, then look": one of us sees the other. */
#define load_ordered(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define store_ordered(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define add_ordered(p, n) __atomic_add_fetch(p, n, __ATOMIC_SEQ_CST)
#define swap_ordered(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)

enum { SHARED_REGION, SHARED_WINDOW_1, SHARED_WINDOW_2 };

/* A memory region, or a window onto one. Its key is stored last and cleared first; 0: unused. */
struct shared_mr {
	uint32_t key;
	uint32_t access;
	uint32_t pd;
	uint32_t kind;
	uint64_t iova; /* what work requests say */
	uint64_t addr; /* where it is in the owner */
	uint64_t length;
	uint32_t qpn; /* of type 2: the queue pair it is bound to */
	uint32_t file; /* that peers may map, and it lies in; 0: in none */
	uint64_t offset; /* in the file */
	uint32_t binds; /* of a window: how many there were, this one included */
	uint32_t reserved;
};
_Static_assert(sizeof(struct shared_mr) == 64, "one cache line");

/*
 * A robust mutex that the engine thread locks and never unlocks. The kernel marks it when
 * the thread ends, in whatever way, before it gives the process's number to another. So as
 * long as there is no mark, the number is still that process's; a look costs one load.
 */
struct shared_life {
	pthread_mutex_t held;
	uint32_t down; /* its port is: nothing gets there */
} __attribute__((aligned(64)));

struct shared_pub {
	uint32_t magic, version;
	uint32_t pid, slot;
	char comm[16];
	uint64_t proof_addr, proof; /* what is found where, in the owner's memory */
	uint32_t reserved[4];
	struct shared_life life; /* a line of its own: every copy looks at it */
	struct softnic_counters counters;
	uint32_t files[SHARED_FILES]; /* numbers of those that peers may map, or 0 */
	struct shared_mr mrs[SHARED_MRS]; /* [0] stays unused: key 0 is no key */
};

/** shared_life_begin() - from now on to the end of the calling thread. 0 or -errno. */
int shared_life_begin(struct shared_life *life);

/** shared_life_ended() - is the thread that began it gone? */
static inline bool shared_life_ended(const struct shared_life *life)
{
	return load_acquire(&life->held.__data.__lock) & FUTEX_OWNER_DIED;
}

enum { ARMED_NOT, ARMED_SOLICITED, ARMED_ANY };

/* Where one completion queue is rung. One cache line each. */
struct shared_cq {
	uint32_t armed; /* taken back to ARMED_NOT by whoever rings */
	uint32_t arrivals; /* at least one more for each completion */
	uint32_t solicited; /* one more for each of those that was */
	uint32_t told, solicited_told; /* what these two were at the last event */
	/* The owner's. */
	uint32_t consumed; /* of those */
	uint32_t capacity; /* arrivals not consumed are no more, or it may have overrun */
	uint32_t is_stamped; /* completions say when they came about */
	uint64_t ready[SHARED_SEATS / 64]; /* where there may be some: the ringer's */
};
_Static_assert(sizeof(struct shared_cq) == 64, "one cache line");

struct shared_doorbells {
	struct shared_cq cqs[SHARED_CQS];
	/* Of each window of type 2, by its place: the bind that was invalidated last. */
	uint32_t invalidated[SHARED_MRS];
};

enum { SHARED_QP_RESET, SHARED_QP_READY, SHARED_QP_ERROR, SHARED_QP_GONE };

/*
 * A receive work request, and beneath it how it ended. turn says whose it is, position in
 * the upper half: 0 the first taker's, a queue pair's number its taker's, RECV_DONE with
 * that the owner's again.
 */
struct shared_recv {
	uint64_t turn;
	uint32_t num_sge;
	uint32_t status; /* enum ibv_wc_status, or RECV_VOID */
	uint32_t opcode; /* enum ibv_wc_opcode */
	uint32_t flags; /* enum ibv_wc_flags, RECV_IPV4 */
	uint32_t byte_len;
	uint32_t imm;
	uint32_t src_qp;
	uint32_t dest_qp; /* of an SRQ's queue pairs, the one that it arrived at */
	uint64_t done_ns; /* when, if the completion queue is stamped */
	struct ibv_sge sges[];
};

enum { RECV_DONE = 1u << 31 };
enum { RECV_IPV4 = 1u << 31 }; /* what precedes a datagram is an IPv4 header */
enum { RECV_VOID = 1u << 30 }; /* nothing was received after all: to be posted again */

/* The receives of a queue pair, or of many (SRQ). See rq.h. */
struct shared_rq {
	/* The owner's. */
	uint32_t magic, version;
	uint32_t size; /* a power of two, or 0 */
	uint32_t sges; /* of each receive */
	uint32_t pd;
	uint32_t tail; /* receives posted, to see how few are left */
	uint32_t limit; /* the owner wants to know when fewer are; 0: it does not */
	uint32_t reserved0[9];
	/* The takers'. */
	uint32_t head; /* the oldest that may still be there */
	uint32_t low; /* somebody saw to it that the owner knows */
	uint32_t reserved1[14];
	/* position << 32 | index of the receive, size times; then size of shared_recv */
	uint64_t posted[];
};
_Static_assert(sizeof(struct shared_rq) == 128, "two cache lines, then the ring");

/* Receives that are done, in the order in which they were. Many add, the owner takes. */
struct shared_arrivals {
	uint32_t tail;
	uint32_t reserved[15];
	uint64_t at[]; /* position << 32 | index of the receive */
};
_Static_assert(sizeof(struct shared_arrivals) == 64, "one cache line, then the ring");

/* See guard.h. */
struct shared_guard {
	uint32_t user; /* the number of the queue pair whose it is, or 0 */
	uint32_t count; /* odd while it is between its checks and its copy */
};

/* The first cache line is the owner's. */
struct shared_qp {
	uint32_t magic, version;
	uint32_t state;
	uint32_t dest_qpn;
	uint32_t pd;
	uint32_t access;
	uint32_t min_rnr_timer;
	uint32_t recv_cq; /* index into the owner's doorbell_page */
	uint32_t arrivals; /* size of that ring, a power of two, or 0 */
	uint32_t guards; /* how many, a multiple of 8 */
	uint32_t type; /* enum ibv_qp_type */
	uint32_t qkey;
	uint32_t reads; /* reads and atomics that it bears at once; here only whether any */
	uint32_t reserved[3];
	/* shared_guard, then shared_arrivals, then shared_rq if it has its own */
	uint8_t rest[];
};
_Static_assert(sizeof(struct shared_qp) == 64, "one cache line");

/* The messages, over SOCK_SEQPACKET; whoever connects asks, whoever listens answers. */
enum shm_msg_type {
	MSG_HELLO = 1, /* asks for WELCOME: value is the asker's slot */
	MSG_WELCOME, /* descriptors: pub and doorbell_page; pub alone for who has no slot, none if the
			 * answerer is short of them */
	MSG_ASK_QP, /* asks for QP: qpn is the answerer's, from the asker's; addr is any
			 * number that tells this question from earlier ones */
	MSG_QP, /* descriptors: qp, the SRQ if it has one, a wakeup to the receive CQ's
			 * channel if that has one, and /proc/self/mem the first time, if it could
			 * be opened; channel is that one's number, so that two wakeups to the same
			 * are known; value is 0, or an errno and no descriptors; addr as asked */
	MSG_BYE_QP, /* the asker's QP from uses the answerer's qpn no longer */
	MSG_CQ_OVERRUN, /* qpn's receive CQ seems to have more completions than it holds */
	MSG_SRQ_LIMIT, /* few receives are left in the SRQ of the answerer's qpn */
	MSG_QP_ERROR, /* qpn refused a request: value is 0, or 1 + enum ibv_event_type */
	MSG_SET_FAULT, /* asks for FAULT_SET: qpn is the enum softnic_option, value its value */
	MSG_FAULT_SET, /* value is 0 or an errno */
	MSG_ASK_FILE, /* asks for FILE, if there still is one of that number: value */
	MSG_FILE, /* descriptor: the file of that number */
	MSG_FILES, /* a file is no longer shared: which, the answerer's pub says */
	MSG_GONE_QP, /* the answerer's QP from, which the asker's qpn sent datagrams to, is no more */
};

enum { HAS_SRQ = 1, HAS_WAKEUP = 2, HAS_MEMORY = 4 };

struct shm_msg {
	uint32_t magic, version;
	uint32_t type;
	uint32_t qpn, from;
	uint32_t has; /* HAS_*: which descriptors follow the first */
	uint64_t value;
	uint64_t addr;
	uint64_t channel;
};
_Static_assert(sizeof(struct shm_msg) == 48, "shared between programs");

enum { SHM_MSG_FDS_MAX = 4 };

/**
 * shared_create() - a new sealed memfd, mapped for writing
 * @name: shown in /proc only
 * @size: in bytes
 * @owner_only: nobody else can ever map it for writing
 * @fd: to hand out
 * @map: where it is; the child of a fork does not have it
 *
 * Return: 0 or a negative errno.
 */
int shared_create(const char *name, size_t size, bool owner_only, int *fd, void **map);

/**
 * shared_is_safe() - is it a file whose mapping can be touched, whatever others do to it?
 * @fd: any descriptor
 * @st: written: the file's
 */
bool shared_is_safe(int fd, struct stat *st);

/**
 * shared_map() - map a peer's memfd, if that is safe
 * @fd: stays the caller's
 * @size_min: smaller ones are refused
 * @prot: PROT_READ, PROT_WRITE
 * @map: where it is
 * @size: how large
 *
 * Return: 0, -EPROTO if it is not what it should be, or another negative errno.
 */
int shared_map(int fd, size_t size_min, int prot, void **map, size_t *size);

/**
 * shared_address() - the abstract address of a slot of this user
 * @slot: 1 to SOFTNIC_SLOTS - 1
 * @addr: written
 *
 * Return: its length.
 */
socklen_t shared_address(uint32_t slot, struct sockaddr_un *addr);

/**
 * shared_is_ours() - does the other end of a socket belong to this user?
 * @fd: a connected socket
 * @pid: the other end's, 0 if it is not visible from here
 */
bool shared_is_ours(int fd, pid_t *pid);

/** shm_msg_send() - 0 or a negative errno; -EAGAIN if the socket is full. Never blocks. */
int shm_msg_send(int fd, const struct shm_msg *m, const int *fds, int num_fds);

/**
 * shm_msg_receive() - take one message without blocking
 * @fd: the socket
 * @m: the message
 * @fds: room for SHM_MSG_FDS_MAX descriptors, now the caller's; -1 beyond the last; NULL if
 *	there must be none
 *
 * Return: 0, -EAGAIN, -EPIPE at the end, -EPROTO if it is not one of this version's,
 * -EMFILE if there was no room for its descriptors.
 */
int shm_msg_receive(int fd, struct shm_msg *m, int *fds);

/**
 * shm_msg_fd() - one of the descriptors that may come after the first
 * @which: one of HAS_*
 *
 * Return: its place in @fds, or NULL if the message has none.
 */
int *shm_msg_fd(const struct shm_msg *m, int *fds, uint32_t which);

/** shm_msg_close_fds() - close what came with a message, whatever it is */
void shm_msg_close_fds(int *fds);

#endif
