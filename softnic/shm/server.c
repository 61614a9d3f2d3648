// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * That a guest's connection ended is how we learn that its process did.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softnic/cq/cq.h"
#include "softnic/control/fault.h"
#include "client.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "server.h"
#include "export.h"
#include "softnic/rq/srq.h"

enum { SILENT_MAX = 256 };

static struct guest *guests;	/* nic.lock */

void serve_ready(struct qp *qp)
{
	struct guest *g;

	for (g = guests; g; g = g->next)
		guest_ready(g, qp);
}

/*
 * A slot is whose socket is bound to it; so by the kernel's word on both sockets a process
 * cannot pass for another. Between PID namespaces it does not know them apart.
 */
static bool has_slot(const struct guest *g, uint32_t slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	socklen_t len = shared_address(slot, &addr);
	pid_t pid;
	bool has;

	if (fd < 0)
		return false;
	has = !connect(fd, (struct sockaddr *)&addr, len) && shared_is_ours(fd, &pid) &&
	      pid == g->pid;
	close(fd);
	return has;
}

/* Who only wants to look has none. Whoever had the slot before has ended, see take_over(). */
static void handle_hello(struct guest *g, uint32_t slot, bool is_guest)
{
	const struct message m = { .type = MSG_WELCOME };
	int fds[] = { nic.pub_fd, -1 };

	if (is_guest)
		g->bell = line_create_bell(&fds[1]);
	if (fds[1] < 0) {
		message_send(g->fd, &m, fds, !is_guest);
		return;
	}
	g->slot = slot;
	message_send(g->fd, &m, fds, 2);
	close(fds[1]);
}

struct guest *serve_guest(const struct qp *qp, uint32_t user)
{
	struct guest *g;

	if (!qp_is_datagram(qp))
		return qp->guest;
	for (g = guests; g; g = g->next)
		if (g->slot == user >> SOFTNIC_QP_INDEX_BITS)
			return g;
	return NULL;
}

/* Who does not hear it learns when it sends there again. */
void serve_gone(const struct qp *qp)
{
	const struct guards *guards = &qp->segment.guards;
	struct message m = { .type = MSG_GONE_QP, .from = qp->ibv.qp_num };
	struct guest *g;
	uint32_t i;

	for (i = 0; qp_is_datagram(qp) && i < guards->num; i++) {
		m.qpn = load_acquire(&guards->at[i].user);
		g = m.qpn ? serve_guest(qp, m.qpn) : NULL;
		if (g)
			message_send(g->fd, &m, NULL, 0);
	}
}

/* What we do to ourselves rings our own. */
const struct shared_bell *serve_bell(const struct qp *qp)
{
	return qp->guest && qp->guest->slot != nic.slot ? qp->guest->bell->shared : nic.bell;
}

static void handle_from_user(struct guest *g, const struct message *m)
{
	struct qp *qp = nic_qp(m->qpn);

	if (!qp || serve_guest(qp, m->from) != g)
		return;
	if (!qp_is_datagram(qp) && qp->attr.dest_qp_num != m->from)
		return;
	if (m->type == MSG_BYE_QP)
		qp->guest = NULL;
	else if (m->type == MSG_CQ_OVERRUN)
		cq_may_have_overrun(to_cq(qp->ibv.recv_cq));
	else if (m->type == MSG_SRQ_LIMIT)
		srq_check_limit(qp);
	else
		qp_peer_complains(qp, m->value);
}

/* Of the same PID namespace: who could end us by a signal as well. */
static bool may_end_us(const struct guest *g)
{
	char path[32];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%ld/ns/pid", (long)g->pid);
	return g->pid && !stat(path, &theirs) && !stat("/proc/self/ns/pid", &ours) &&
	       theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

static void handle_fault(struct guest *g, const struct message *m)
{
	struct message done = {
		.type = MSG_FAULT_SET,
		.value = may_end_us(g) ? -fault_set(m->qpn, m->value) : EPERM,
	};

	message_send(g->fd, &done, NULL, 0);
}

static void end(struct guest *g)
{
	struct guest **at = &guests;

	softnic_loop_del(g->fd);
	pthread_mutex_lock(&nic.lock);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	qp_guest_ended(g, g->slot);
	if (g->bell)
		line_end_all(g->bell);
	pthread_mutex_unlock(&nic.lock);
	close(g->fd);
	guest_forget_asks(g);
	free(g);
}

static void do_as_told(struct guest *g, const struct message *m)
{
	pthread_mutex_lock(&nic.lock);
	switch (m->type) {
	case MSG_ASK_QP:
		guest_ask(g, m);
		break;
	case MSG_ASK_FILE:
		if (g->is_let_in)
			share_send(g->fd, m->value);
		break;
	case MSG_BYE_QP:
	case MSG_CQ_OVERRUN:
	case MSG_SRQ_LIMIT:
	case MSG_QP_ERROR:
		handle_from_user(g, m);
		break;
	}
	pthread_mutex_unlock(&nic.lock);
}

enum { LAST_WORDS_MAX = 4096 };

/*
 * One that ends leaves its slot a little before we are told that it did, and another may come from
 * there first. What is done by slot, as taking back what the dead had taken, must not meet the
 * living: so the old guest's last words are heard, and then it has ended.
 */
static void take_over(uint32_t slot)
{
	struct guest *old;
	struct message m;
	uint32_t i;

	/* Only the engine's thread, which this is, changes the list. */
	for (old = guests; old && old->slot != slot; old = old->next)
		;
	if (!old)
		return;
	for (i = 0; i < LAST_WORDS_MAX && !message_receive(old->fd, &m, NULL); i++)
		do_as_told(old, &m);
	end(old);
}

static void greet(struct guest *g, uint32_t slot)
{
	bool is_guest = slot && slot < SOFTNIC_SLOTS && !g->bell && has_slot(g, slot);

	if (is_guest)
		take_over(slot);
	pthread_mutex_lock(&nic.lock);
	handle_hello(g, slot, is_guest);
	pthread_mutex_unlock(&nic.lock);
}

static void handle(void *arg, uint32_t events)
{
	struct guest *g = arg;
	struct message m;
	int err;

	(void)events;
	err = message_receive(g->fd, &m, NULL);
	if (err == -EAGAIN)
		return;
	if (err)
		end(g);
	else if (m.type == MSG_SET_FAULT)
		handle_fault(g, &m);
	else if (m.type == MSG_HELLO)
		greet(g, m.value);
	else
		do_as_told(g, &m);
}

enum { ACCEPT_AGAIN_NS = 100000000 };

static void accept_again(struct softnic_timer *t)
{
	if (softnic_loop_add(nic.listen_fd, EPOLLIN, serve_accept, NULL))
		softnic_timer_arm(t, ACCEPT_AGAIN_NS, accept_again);
}

/* Without a free descriptor the guest stays waiting; we must not look at it all the time. */
static void accept_later(void)
{
	static struct softnic_timer later;

	softnic_loop_del(nic.listen_fd);
	softnic_timer_arm(&later, ACCEPT_AGAIN_NS, accept_again);
}

/* Before anybody is shown our memory, and on the engine's thread, which ends last. */
static int begin_life(void)
{
	int err = nic.lives ? 0 : shared_life_begin(&nic.pub->life);

	nic.lives = !err;
	return err;
}

/*
 * Who says a slot does so at once. Others cost us descriptors and are few: a program that sets
 * faults. Beyond a limit the one who has been silent for longest goes.
 */
static void end_silent(void)
{
	struct guest *g, *oldest = NULL;
	unsigned int silent = 0;

	for (g = guests; g; g = g->next) {
		if (g->slot)
			continue;
		silent++;
		oldest = g;
	}
	if (silent > SILENT_MAX)
		end(oldest);
}

void serve_accept(void *arg, uint32_t events)
{
	struct guest *g;
	pid_t pid;
	int fd;

	(void)arg;
	(void)events;
	fd = accept4(nic.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			accept_later();
		return;
	}
	g = shared_is_ours(fd, &pid) && !begin_life() ? calloc(1, sizeof(*g)) : NULL;
	if (!g) {
		close(fd);
		return;
	}
	g->fd = fd;
	g->pid = pid;
	pthread_mutex_lock(&nic.lock);
	g->next = guests;
	guests = g;
	pthread_mutex_unlock(&nic.lock);
	if (softnic_loop_add(fd, EPOLLIN, handle, g))
		end(g);
	end_silent();
}

void serve_tell_files(void)
{
	const struct message m = { .type = MSG_FILES };
	struct guest *g;

	pthread_mutex_lock(&nic.lock);
	for (g = guests; g; g = g->next)
		if (g->slot)
			message_send(g->fd, &m, NULL, 0);
	pthread_mutex_unlock(&nic.lock);
}

void serve_forget_all(void)
{
	for (; guests; guests = guests->next)
		close(guests->fd);
}

void serve_cut_off(struct guest *g)
{
	shutdown(g->fd, SHUT_RDWR);
}
