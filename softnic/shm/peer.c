// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The asking side of a connection between two processes. The engine thread reads the answers;
 * any thread may send.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "softnic/control/warning.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/nic.h"
#include "fd/passed_fd.h"
#include "peer.h"
#include "softnic/qp/gate.h"
#include "softnic/qp/piece.h"
#include "softnic/qp/qp.h"

static struct shm_peer *peers; /* live peers; nic.lock */

static void remove_from_list(struct shm_peer *p)
{
	struct shm_peer **at = &peers;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
}

/* A message for which the socket had no room. */
struct unsent_msg {
	struct shm_msg m;
	struct unsent_msg *next;
};

enum { UNSENT_MAX = 4096 };

/* send_lock held, or no other thread uses @p. */
static void drop_first_unsent(struct shm_peer *p)
{
	struct unsent_msg *u = p->first;

	p->first = u->next;
	if (!p->first)
		p->last = &p->first;
	p->num_unsent--;
	free(u);
}

void peer_put(struct shm_peer *p)
{
	if (--p->users)
		return;
	if (p->pub)
		munmap((void *)p->pub, p->pub_bytes);
	if (p->doorbell_page)
		munmap(p->doorbell_page, sizeof(*p->doorbell_page));
	peer_map_fini(&p->peer_map);
	if (p->target.mem_fd >= 0)
		close(p->target.mem_fd);
	if (p->atomic_fd >= 0)
		close(p->atomic_fd);
	while (p->first)
		drop_first_unsent(p);
	if (p->fd >= 0)
		passed_fd_close_socket(p->fd);
	free(p);
}

/* The process has ended, disconnected us, or speaks another version. */
static void end_peer(struct shm_peer *p)
{
	softnic_loop_del(p->fd);
	pthread_mutex_lock(&nic.lock);
	store_release(&p->state, PEER_DEAD);
	remove_from_list(p);
	qp_peer_ended(p);
	peer_put(p);
	pthread_mutex_unlock(&nic.lock);
}

/* An OFD lock belongs to an open file description; @fd shares the owner's. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * A peer that passes our own memory instead of the peer's could make us write anywhere in this
 * process. So our nonce must not be found through the descriptor.
 */
static bool may_use_memory(const struct shm_peer *p, int fd)
{
	uint64_t found;

	if (!passed_fd_is_procfs(fd))
		return false;
	return p->slot == nic.slot ||
	       pread(fd, &found, sizeof(found), (uintptr_t)&nic.nonce) != sizeof(found) ||
	       found != nic.nonce;
}

/* With the first queue pair that may carry atomics. Without /proc, atomics fail. */
static int take_atomics(struct shm_peer *p, int fd)
{
	struct stat st;

	if (p->atomic_fd >= 0)
		return 0;
	if (!shared_is_safe(fd, &st))
		return -EPROTO;
	p->atomic_fd = reopen(fd);
	return p->atomic_fd < 0 && errno == EMFILE ? -EMFILE : 0;
}

static int handle_welcome(struct shm_peer *p, int *fds)
{
	void *map;
	size_t size;
	int rc;

	if (p->state != PEER_ASKED)
		return p->slot == nic.slot ? 0 : -EPROTO;
	if (fds[0] < 0)
		return -ENFILE;
	rc = shared_map(fds[0], SHARED_PUB_BYTES_MIN, PROT_READ, &map, &p->pub_bytes);
	if (rc)
		return rc;
	p->pub = map;
	p->target.life = &p->pub->life;
	rc = shared_map(fds[1], sizeof(*p->doorbell_page), PROT_READ | PROT_WRITE, &map, &size);
	if (rc)
		return rc;
	p->doorbell_page = map;
	store_release(&p->state, PEER_READY);
	return 0;
}

/*
 * For small copies, and where seccomp forbids cross-memory attach. The kernel checks as for that.
 * copy_probe() shows whose memory it is.
 */
static int open_memory(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	return pid ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

/* Called with the first queue pair, which admits us. Takes *@mem_fd; @mem_fd may be NULL. */
static int find_ways(struct shm_peer *p, int *mem_fd)
{
	int rc;

	if (p->is_reachable)
		return 0;
	if (mem_fd && may_use_memory(p, *mem_fd)) {
		p->target.mem_fd = *mem_fd;
		*mem_fd = -1;
	}
	if (p->target.mem_fd < 0)
		p->target.mem_fd = open_memory(p->target.pid);
	rc = copy_probe(&p->target, p->pub->proof_addr, p->pub->proof);
	store_release(&p->is_reachable, !rc);
	return rc;
}

void peer_find_ways(struct shm_peer *p)
{
	find_ways(p, NULL);
}

static int handle_qp(struct shm_peer *p, const struct shm_msg *m, int *fds)
{
	bool is_admitted = !m->value && !(m->has & (HAS_GATE | HAS_TRAYS));
	int *atomics_fd = m->value ? NULL : shm_msg_fd(m, fds, HAS_ATOMICS);
	int rc = is_admitted ? find_ways(p, shm_msg_fd(m, fds, HAS_MEMORY)) : 0;

	if (!rc && atomics_fd)
		rc = take_atomics(p, *atomics_fd);
	return rc ? rc : remote_qp_resolved(p, m, fds);
}

static void log_unreachable(const struct shm_peer *p, int rc)
{
	static struct warning_limit limit;
	const char *why;

	switch (rc) {
	case -EPIPE:
	case -ESRCH:
		return; /* the peer has ended */
	case -EPERM:
		why = "neither cross-memory attach nor the peer's /proc/self/mem works: give both "
		      "processes the same namespaces, IDs and capabilities, or set "
		      "WEIR_SOFTNIC=trust_user=1 for both; allow ptrace (seccomp, Yama), or mount "
		      "/proc";
		break;
	case -EMFILE:
		why = "this process has too many open files: raise the limit (ulimit -n)";
		break;
	case -ENFILE:
		why = "the peer has too many open files or no memory: raise its limit (ulimit -n)";
		break;
	case -EPROTO:
	case -EPROTONOSUPPORT:
		why = SHARED_OTHER_VERSION;
		break;
	default:
		why = strerror(-rc);
	}
	warning_write(&limit, SHARED_REFUSAL, (int)p->target.pid, why);
}

/* Connected to ourselves: the answer is known at once. */
static int welcome_self(struct shm_peer *p)
{
	int mem_fd = fcntl(nic.mem_fd, F_DUPFD_CLOEXEC, 0);
	int fds[] = { nic.pub_fd, nic.doorbell_fd };
	int rc = handle_welcome(p, fds);

	if (!rc)
		rc = take_atomics(p, nic.atomics_fd);
	if (!rc)
		rc = find_ways(p, &mem_fd);
	if (mem_fd >= 0)
		close(mem_fd);
	if (rc)
		log_unreachable(p, rc);
	return rc;
}

static void send_unsent(struct shm_peer *p)
{
	pthread_mutex_lock(&p->send_lock);
	while (p->first && shm_msg_send(p->fd, &p->first->m, NULL, 0) != -EAGAIN)
		drop_first_unsent(p);
	if (!p->first)
		softnic_loop_change(p->fd, EPOLLIN);
	pthread_mutex_unlock(&p->send_lock);
}

static void peer_socket_ready(void *arg, uint32_t events)
{
	int fds[SHM_MSG_FDS_MAX], rc;
	struct shm_peer *p = arg;
	struct shm_msg m;

	if (events & EPOLLOUT)
		send_unsent(p);
	rc = shm_msg_receive(p->fd, &m, fds);
	if (rc == -EAGAIN)
		return;
	if (!rc && m.type == MSG_WELCOME)
		rc = handle_welcome(p, fds);
	else if (!rc && m.type == MSG_QP && p->state == PEER_READY)
		rc = handle_qp(p, &m, fds);
	else if (!rc && m.type == MSG_GONE_QP && p->state == PEER_READY)
		remote_qp_gone(p, &m);
	else if (!rc && m.type == MSG_GATE_DONE && p->state == PEER_READY)
		gate_answered(p, &m);
	else if (!rc && m.type == MSG_TRAY_EMPTY && p->state == PEER_READY)
		piece_answered(p, &m);
	else if (!rc && m.type == MSG_FILE && p->state == PEER_READY)
		peer_map_add(p, m.value, fds[0]);
	else if (!rc && m.type == MSG_FILES && p->state == PEER_READY)
		; /* the sweep below follows each message */
	else if (!rc)
		rc = -EPROTO;
	shm_msg_close_fds(fds);
	if (p->state == PEER_READY)
		peer_map_sweep(p);
	if (rc) {
		log_unreachable(p, rc);
		end_peer(p);
	}
}

static int connect_socket(struct shm_peer *p)
{
	struct shm_msg hello = { .type = MSG_HELLO, .value = nic.slot };
	struct sockaddr_un addr;
	socklen_t len = shared_address(p->slot, &addr);
	int rc;

	p->fd = passed_fd_is_full() ?
			-1 :
			socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return -EMFILE;
	if (connect(p->fd, (struct sockaddr *)&addr, len) < 0)
		rc = -errno;
	else if (!shared_is_ours(p->fd, &p->target.pid))
		rc = -EPERM;
	else
		rc = shm_msg_send(p->fd, &hello, NULL, 0);
	if (!rc && p->slot == nic.slot)
		rc = welcome_self(p);
	return rc ? rc : softnic_loop_add(p->fd, EPOLLIN, peer_socket_ready, p);
}

int peer_get(uint32_t slot, struct shm_peer **out)
{
	struct shm_peer *p;
	int rc;

	for (p = peers; p; p = p->next) {
		if (p->slot == slot) {
			p->users++;
			*out = p;
			return 0;
		}
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->slot = slot;
	p->target.mem_fd = p->atomic_fd = -1;
	p->last = &p->first;
	pthread_mutex_init(&p->send_lock, NULL);
	pthread_mutex_init(&p->atomic_lock, NULL);
	rc = connect_socket(p);
	if (rc) {
		p->users = 1;
		peer_put(p);
		return rc;
	}
	p->users = 2;
	p->next = peers;
	peers = p;
	*out = p;
	return 0;
}

static void close_all(const struct shm_peer *p)
{
	close(p->fd);
	if (p->target.mem_fd >= 0)
		close(p->target.mem_fd);
	if (p->atomic_fd >= 0)
		close(p->atomic_fd);
}

void peer_reset(void)
{
	for (; peers; peers = peers->next)
		close_all(peers);
}

/* send_lock held. */
static int send_later(struct shm_peer *p, const struct shm_msg *m)
{
	struct unsent_msg *u;

	if (p->num_unsent == UNSENT_MAX) {
		shutdown(p->fd, SHUT_RDWR); /* the engine sees the hang-up and ends the peer */
		return -EPIPE;
	}
	u = malloc(sizeof(*u));
	if (!u)
		return -ENOMEM;
	*u = (struct unsent_msg){ *m, NULL };
	*p->last = u;
	p->last = &u->next;
	if (!p->num_unsent++)
		softnic_loop_change(p->fd, EPOLLIN | EPOLLOUT);
	return 0;
}

int peer_send(struct shm_peer *p, const struct shm_msg *m)
{
	int rc = -EAGAIN;

	if (load_acquire(&p->state) == PEER_DEAD)
		return -EPIPE;
	pthread_mutex_lock(&p->send_lock);
	if (!p->first)
		rc = shm_msg_send(p->fd, m, NULL, 0);
	if (rc == -EAGAIN && m->type != MSG_ASK_QP) /* the caller asks again anyway */
		rc = send_later(p, m);
	pthread_mutex_unlock(&p->send_lock);
	return rc;
}

void peer_send_bytes(struct shm_peer *p, const struct shm_msg *m, const void *bytes)
{
	if (load_acquire(&p->state) == PEER_DEAD)
		return;
	pthread_mutex_lock(&p->send_lock);
	if (!p->first)
		shm_msg_send_bytes(p->fd, m, bytes);
	pthread_mutex_unlock(&p->send_lock);
}

enum { ATOMIC_TRIES = 20, ATOMIC_WAIT_NS = 1000000 };

static int ofd_lock(int fd, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) ? -errno : 0;
}

/* The holder copies, and may wait for a page for ever. */
static bool lock_out_threads(struct shm_peer *p)
{
	struct timespec until;

	if (load_acquire(&p->is_stuck))
		return !pthread_mutex_trylock(&p->atomic_lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ATOMIC_WAIT_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return !pthread_mutex_timedlock(&p->atomic_lock, &until);
}

int peer_atomic_lock(struct shm_peer *p)
{
	int i, rc = -EAGAIN;

	if (pthread_mutex_trylock(&p->atomic_lock) && !lock_out_threads(p))
		return rc;
	for (i = 0; i < ATOMIC_TRIES; i++) {
		rc = ofd_lock(p->atomic_fd, F_WRLCK);
		if (!rc)
			return 0;
		if (rc != -EAGAIN && rc != -EACCES)
			break;
		rc = -EAGAIN;
		sched_yield();
	}
	pthread_mutex_unlock(&p->atomic_lock);
	return rc;
}

void peer_atomic_unlock(struct shm_peer *p)
{
	ofd_lock(p->atomic_fd, F_UNLCK);
	pthread_mutex_unlock(&p->atomic_lock);
}
