// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The asking side of links.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/loop/loop.h"
#include "softnic/verbs/nic.h"
#include "passed_fd.h"
#include "peer.h"
#include "softnic/qp/qp.h"

static struct peer *peers;	/* the living; nic.lock */

static void unlist(struct peer *p)
{
	struct peer **at = &peers;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
}

/* A message that waits for room in the socket. */
struct unsent {
	struct message m;
	struct unsent *next;
};

enum { UNSENT_MAX = 4096 };

/* Under tell_lock, or when nobody else has it. */
static void forget_first(struct peer *p)
{
	struct unsent *u = p->first;

	p->first = u->next;
	if (!p->first)
		p->last = &p->first;
	p->num_unsent--;
	free(u);
}

void peer_put(struct peer *p)
{
	if (--p->users)
		return;
	if (p->pub)
		munmap((void *)p->pub, sizeof(*p->pub));
	if (p->bell)
		munmap(p->bell, sizeof(*p->bell));
	near_fini(&p->near);
	if (p->target.mem_fd >= 0)
		close(p->target.mem_fd);
	if (p->atomic_fd >= 0)
		close(p->atomic_fd);
	while (p->first)
		forget_first(p);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

/* The process has ended, cut us off, or does not speak our language. */
static void end(struct peer *p)
{
	softnic_loop_del(p->fd);
	pthread_mutex_lock(&nic.lock);
	store_release(&p->state, PEER_DEAD);
	unlist(p);
	qp_peer_ended(p);
	peer_put(p);
	pthread_mutex_unlock(&nic.lock);
}

/* An OFD lock belongs to an open description, and the one we got is the owner's. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * A process that passes our own memory as its own would have us write where it likes: so
 * what we know to be in ours must not be found there.
 */
static bool may_use_memory(const struct peer *p, int fd)
{
	uint64_t found;

	if (!passed_is_proc(fd))
		return false;
	return p->slot == nic.slot ||
	       pread(fd, &found, sizeof(found), (uintptr_t)&nic.nonce) != sizeof(found) ||
	       found != nic.nonce;
}

static int welcome(struct peer *p, int *fds)
{
	void *map;
	size_t size;
	int err;

	if (p->state != PEER_ASKED)
		return p->slot == nic.slot ? 0 : -EPROTO;
	if (fds[0] < 0)
		return -ENFILE;
	err = shared_map(fds[0], sizeof(*p->pub), PROT_READ, &map, &size);
	if (err)
		return err;
	p->pub = map;
	p->target.life = &p->pub->life;
	err = shared_map(fds[1], sizeof(*p->bell), PROT_READ | PROT_WRITE, &map, &size);
	if (err)
		return err;
	p->bell = map;
	p->atomic_fd = reopen(fds[0]);
	if (p->atomic_fd < 0 && errno == EMFILE)
		return -EMFILE;
	store_release(&p->state, PEER_READY);
	return 0;
}

/* With the first queue pair, as nobody is let in before. @mem_fd may be NULL; it is taken. */
static int find_ways(struct peer *p, int *mem_fd)
{
	int err;

	if (p->is_reachable)
		return 0;
	if (mem_fd && may_use_memory(p, *mem_fd)) {
		p->target.mem_fd = *mem_fd;
		*mem_fd = -1;
	}
	err = copy_find_ways(&p->target, p->pub->proof_addr, p->pub->proof);
	p->is_reachable = !err;
	return err;
}

static int linked(struct peer *p, const struct message *m, int *fds)
{
	int err = m->value ? 0 : find_ways(p, message_fd(m, fds, HAS_MEMORY));

	return err ? err : qp_linked(p, m, fds);
}

static void explain(const struct peer *p, int err)
{
	const char *why;

	switch (err) {
	case -EPIPE:
	case -ESRCH:
		return;		/* it has ended */
	case -EPERM:
		why = "neither cross-memory attach nor its /proc/self/mem leads there: allow ptrace "
		      "between the two (seccomp, Yama), or mount /proc";
		break;
	case -EMFILE:
		why = "too many open files: raise the limit (ulimit -n)";
		break;
	case -ENFILE:
		why = "it has too many open files, or no memory: raise its limit (ulimit -n)";
		break;
	case -EPROTO:
		why = "it runs another version of softnic: use the same one for both";
		break;
	default:
		why = strerror(-err);
	}
	fprintf(stderr, "softnic: no connection to process %d: %s\n", (int)p->target.pid, why);
}

/* We need not wait to be told what is ours. */
static int welcome_self(struct peer *p)
{
	int mem_fd = fcntl(nic.mem_fd, F_DUPFD_CLOEXEC, 0);
	int fds[] = { nic.pub_fd, nic.bell_fd };
	int err = welcome(p, fds);

	if (!err)
		err = find_ways(p, &mem_fd);
	if (mem_fd >= 0)
		close(mem_fd);
	if (err)
		explain(p, err);
	return err;
}

static void send_unsent(struct peer *p)
{
	pthread_mutex_lock(&p->tell_lock);
	while (p->first && message_send(p->fd, &p->first->m, NULL, 0) != -EAGAIN)
		forget_first(p);
	if (!p->first)
		softnic_loop_change(p->fd, EPOLLIN);
	pthread_mutex_unlock(&p->tell_lock);
}

static void handle(void *arg, uint32_t events)
{
	int fds[MESSAGE_FDS_MAX], err;
	struct peer *p = arg;
	struct message m;

	if (events & EPOLLOUT)
		send_unsent(p);
	err = message_receive(p->fd, &m, fds);
	if (err == -EAGAIN)
		return;
	if (!err && m.type == MSG_WELCOME)
		err = welcome(p, fds);
	else if (!err && m.type == MSG_QP && p->state == PEER_READY)
		err = linked(p, &m, fds);
	else if (!err && m.type == MSG_GONE_QP && p->state == PEER_READY)
		qp_gone(p, &m);
	else if (!err && m.type == MSG_FILE && p->state == PEER_READY)
		near_add(p, m.value, fds[0]);
	else if (!err && m.type == MSG_FILES && p->state == PEER_READY)
		;	/* as after each */
	else if (!err)
		err = -EPROTO;
	message_close_fds(fds);
	if (p->state == PEER_READY)
		near_sweep(p);
	if (err) {
		explain(p, err);
		end(p);
	}
}

static int connect_to(struct peer *p)
{
	struct message hello = { .type = MSG_HELLO, .value = nic.slot };
	struct sockaddr_un addr;
	socklen_t len = shared_address(p->slot, &addr);
	int err;

	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return -errno;
	if (connect(p->fd, (struct sockaddr *)&addr, len) < 0)
		err = -errno;
	else if (!shared_is_ours(p->fd, &p->target.pid))
		err = -EPERM;
	else
		err = message_send(p->fd, &hello, NULL, 0);
	if (!err && p->slot == nic.slot)
		err = welcome_self(p);
	return err ? err : softnic_loop_add(p->fd, EPOLLIN, handle, p);
}

int peer_get(uint32_t slot, struct peer **out)
{
	struct peer *p;
	int err;

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
	pthread_mutex_init(&p->tell_lock, NULL);
	pthread_mutex_init(&p->atomic_lock, NULL);
	err = connect_to(p);
	if (err) {
		p->users = 1;
		peer_put(p);
		return err;
	}
	p->users = 2;
	p->next = peers;
	peers = p;
	*out = p;
	return 0;
}

static void close_all(const struct peer *p)
{
	close(p->fd);
	if (p->target.mem_fd >= 0)
		close(p->target.mem_fd);
	if (p->atomic_fd >= 0)
		close(p->atomic_fd);
}

void peer_forget_all(void)
{
	for (; peers; peers = peers->next)
		close_all(peers);
}

/* Under tell_lock. */
static int send_later(struct peer *p, const struct message *m)
{
	struct unsent *u;

	if (p->num_unsent == UNSENT_MAX) {
		shutdown(p->fd, SHUT_RDWR);	/* the engine sees the end, and ends it */
		return -EPIPE;
	}
	u = malloc(sizeof(*u));
	if (!u)
		return -ENOMEM;
	*u = (struct unsent){ *m, NULL };
	*p->last = u;
	p->last = &u->next;
	if (!p->num_unsent++)
		softnic_loop_change(p->fd, EPOLLIN | EPOLLOUT);
	return 0;
}

int peer_tell(struct peer *p, const struct message *m)
{
	int err = -EAGAIN;

	if (load_acquire(&p->state) == PEER_DEAD)
		return -EPIPE;
	pthread_mutex_lock(&p->tell_lock);
	if (!p->first)
		err = message_send(p->fd, m, NULL, 0);
	if (err == -EAGAIN && m->type != MSG_ASK_QP)	/* that is asked again anyway */
		err = send_later(p, m);
	pthread_mutex_unlock(&p->tell_lock);
	return err;
}

enum { ATOMIC_TRIES = 20 };

static int ofd_lock(int fd, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) ? -errno : 0;
}

int peer_atomic_lock(struct peer *p)
{
	int i, err = -EAGAIN;

	pthread_mutex_lock(&p->atomic_lock);
	for (i = 0; i < ATOMIC_TRIES; i++) {
		err = ofd_lock(p->atomic_fd, F_WRLCK);
		if (!err)
			return 0;
		if (err != -EAGAIN && err != -EACCES)
			break;
		err = -EAGAIN;
		sched_yield();
	}
	pthread_mutex_unlock(&p->atomic_lock);
	return err;
}

void peer_atomic_unlock(struct peer *p)
{
	ofd_lock(p->atomic_fd, F_UNLCK);
	pthread_mutex_unlock(&p->atomic_lock);
}
