// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The engine thread serves the clients. The end of a client's connection means that the client's
 * process has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/cq/cq.h"
#include "softnic/control/fault.h"
#include "softnic/control/warning.h"
#include "client.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/gate.h"
#include "softnic/qp/piece.h"
#include "softnic/qp/qp.h"
#include "server.h"
#include "export.h"
#include "fd/passed_fd.h"
#include "tracer.h"
#include "softnic/rq/srq.h"

enum { SILENT_MAX = 256 };

static struct shm_client *clients; /* nic.lock */

void server_qp_ready(struct qp *qp)
{
	struct shm_client *g;

	for (g = clients; g; g = g->next)
		client_qp_ready(g, qp);
}

/*
 * A slot belongs to the process whose socket is bound to the slot's address. The kernel names the
 * PID behind both sockets, so no process can pass for another. In different PID namespaces both
 * PIDs are 0, and tracer.c asks for more.
 */
static bool has_slot(const struct shm_client *g, uint32_t slot)
{
	int fd = passed_fd_socket(SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct sockaddr_un addr;
	socklen_t len = shared_address(slot, &addr);
	pid_t pid;
	bool has;

	if (fd < 0)
		return false;
	has = !connect(fd, (struct sockaddr *)&addr, len) && shared_is_ours(fd, &pid) &&
	      pid == g->pid && (pid || tracer_is_same(fd, g->fd));
	passed_fd_close_socket(fd);
	return has;
}

/* A client that only reads has no slot. The slot's earlier client has ended: see take_over(). */
static void handle_hello(struct shm_client *g, uint32_t slot, bool is_client)
{
	const struct shm_msg m = { .type = MSG_WELCOME };
	int fds[] = { nic.pub_fd, -1 };

	if (is_client)
		g->doorbell_page = doorbell_page_create(&fds[1]);
	if (fds[1] < 0) {
		shm_msg_send(g->fd, &m, fds, !is_client);
		return;
	}
	g->slot = slot;
	shm_msg_send(g->fd, &m, fds, 2);
	close(fds[1]);
}

struct shm_client *server_find_client(const struct qp *qp, uint32_t user)
{
	struct shm_client *g;

	if (!qp_is_datagram(qp))
		return qp->client;
	for (g = clients; g; g = g->next)
		if (g->slot == user >> SOFTNIC_QP_INDEX_BITS)
			return g;
	return NULL;
}

/* A client that misses the message sees the queue pair gone on the next send. */
void server_announce_gone(const struct qp *qp)
{
	const struct copy_guards *guards = &qp->segment.guards;
	struct shm_msg m = { .type = MSG_GONE_QP, .from = qp->ibv.qp_num };
	struct shm_client *g;
	uint32_t i;

	for (i = 0; qp_is_datagram(qp) && i < guards->num; i++) {
		m.qpn = load_acquire(&guards->at[i].user);
		g = m.qpn ? server_find_client(qp, m.qpn) : NULL;
		if (g)
			shm_msg_send(g->fd, &m, NULL, 0);
	}
}

/* Queue pairs connected within this process use nic.doorbell_page. */
const struct shared_doorbells *server_doorbells(const struct qp *qp)
{
	return qp->client && qp->client->slot != nic.slot ? qp->client->doorbell_page->shared :
							    nic.doorbell_page;
}

static void handle_from_user(struct shm_client *g, const struct shm_msg *m)
{
	struct qp *qp = nic_qp(m->qpn);

	if (!qp || server_find_client(qp, m->from) != g)
		return;
	if (!qp_is_datagram(qp) && qp->attr.dest_qp_num != m->from)
		return;
	if (m->type == MSG_BYE_QP)
		qp->client = NULL;
	else if (m->type == MSG_CQ_OVERRUN)
		cq_may_have_overrun(to_cq(qp->ibv.recv_cq));
	else if (m->type == MSG_SRQ_LIMIT)
		srq_check_limit(qp);
	else if (m->type == MSG_TRAY_FULL)
		piece_take(g, qp, m);
	else
		qp_peer_reported_error(qp, m->value);
}

/* A client in our PID namespace could kill us by a signal anyway. */
static bool may_end_us(const struct shm_client *g)
{
	return g->pid && tracer_shares_namespace(g->pid, "pid");
}

static void handle_fault(struct shm_client *g, const struct shm_msg *m)
{
	struct shm_msg done = {
		.type = MSG_FAULT_SET,
		.value = may_end_us(g) ? -fault_set(m->qpn, m->value) : EPERM,
	};

	shm_msg_send(g->fd, &done, NULL, 0);
}

static void end_client(struct shm_client *g)
{
	struct shm_client **at = &clients;

	softnic_loop_del(g->fd);
	pthread_mutex_lock(&nic.lock);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	qp_client_ended(g, g->slot);
	if (g->doorbell_page)
		doorbell_detach_all(g->doorbell_page);
	pthread_mutex_unlock(&nic.lock);
	passed_fd_close_socket(g->fd);
	client_drop_lookups(g);
	free(g);
}

static void handle_message(struct shm_client *g, const struct shm_msg *m, const void *bytes)
{
	pthread_mutex_lock(&nic.lock);
	switch (m->type) {
	case MSG_ASK_QP:
		client_lookup(g, m);
		break;
	case MSG_ASK_FILE:
		if (g->is_admitted && g->may_trace)
			export_send(g->fd, m->value);
		break;
	case MSG_GATE_SEND:
		gate_take(g, m, bytes);
		break;
	case MSG_BYE_QP:
	case MSG_CQ_OVERRUN:
	case MSG_SRQ_LIMIT:
	case MSG_QP_ERROR:
	case MSG_TRAY_FULL:
		handle_from_user(g, m);
		break;
	}
	pthread_mutex_unlock(&nic.lock);
}

static uint8_t message_bytes[SHM_MSG_BYTES_MAX]; /* of the message being handled */

enum { LAST_WORDS_MAX = 4096 };

/*
 * An ending process frees the slot shortly before we see its hang-up. A new process with the same
 * slot may connect first. Cleanup by slot, such as releasing the dead client's receives, must not
 * hit the new client. So we read the old client's last messages, then end it.
 */
static void take_over(uint32_t slot)
{
	struct shm_client *old;
	struct shm_msg m;
	uint32_t i;

	/* Only this thread, the engine, changes the list. */
	for (old = clients; old && old->slot != slot; old = old->next)
		;
	if (!old)
		return;
	for (i = 0; i < LAST_WORDS_MAX && !shm_msg_receive_bytes(old->fd, &m, message_bytes); i++)
		handle_message(old, &m, message_bytes);
	end_client(old);
}

static void greet(struct shm_client *g, uint32_t slot)
{
	bool is_client = slot && slot < SOFTNIC_SLOTS && !g->doorbell_page && has_slot(g, slot);

	if (is_client)
		take_over(slot);
	pthread_mutex_lock(&nic.lock);
	handle_hello(g, slot, is_client);
	pthread_mutex_unlock(&nic.lock);
}

static void client_socket_ready(void *arg, uint32_t events)
{
	static struct warning_limit limit; /* anyone of the user can call */
	struct shm_client *g = arg;
	struct shm_msg m;
	int rc;

	(void)events;
	rc = shm_msg_receive_bytes(g->fd, &m, message_bytes);
	if (rc == -EAGAIN)
		return;
	/* An older client sees only the end of the connection. */
	if (rc == -EPROTONOSUPPORT)
		warning_write(&limit, SHARED_REFUSAL, (int)g->pid, SHARED_OTHER_VERSION);
	if (rc)
		end_client(g);
	else if (m.type == MSG_SET_FAULT)
		handle_fault(g, &m);
	else if (m.type == MSG_HELLO)
		greet(g, m.value);
	else
		handle_message(g, &m, message_bytes);
}

enum { ACCEPT_AGAIN_NS = 100000000 };

static void accept_again(struct softnic_timer *t)
{
	if (softnic_loop_add(nic.listen_fd, EPOLLIN, server_accept, NULL))
		softnic_timer_arm(t, ACCEPT_AGAIN_NS, accept_again);
}

/* Without a free descriptor the client keeps waiting; a timer keeps us from spinning. */
static void accept_later(void)
{
	static struct softnic_timer later;

	softnic_loop_del(nic.listen_fd);
	softnic_timer_arm(&later, ACCEPT_AGAIN_NS, accept_again);
}

/* Runs before any client gets our memory, on the engine thread, which is the last to end. */
static int start_life(void)
{
	int rc = nic.lives ? 0 : shared_life_begin(&nic.pub->life);

	nic.lives = !rc;
	return rc;
}

/*
 * A client with a slot names the slot at once. Clients without a slot are few, such as a program
 * that sets faults, but each costs a descriptor. Beyond SILENT_MAX, the oldest is dropped.
 */
static void drop_silent_client(void)
{
	struct shm_client *g, *oldest = NULL;
	unsigned int silent = 0;

	for (g = clients; g; g = g->next) {
		if (g->slot)
			continue;
		silent++;
		oldest = g;
	}
	if (silent > SILENT_MAX)
		end_client(oldest);
}

void server_accept(void *arg, uint32_t events)
{
	struct shm_client *g;
	pid_t pid;
	int fd;

	(void)arg;
	(void)events;
	fd = passed_fd_accept(nic.listen_fd, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			accept_later();
		return;
	}
	g = shared_is_ours(fd, &pid) && !start_life() ? calloc(1, sizeof(*g)) : NULL;
	if (!g) {
		passed_fd_close_socket(fd);
		return;
	}
	g->fd = fd;
	g->pid = pid;
	g->may_trace = tracer_is_allowed(fd, pid);
	pthread_mutex_lock(&nic.lock);
	g->next = clients;
	clients = g;
	pthread_mutex_unlock(&nic.lock);
	if (softnic_loop_add(fd, EPOLLIN, client_socket_ready, g))
		end_client(g);
	drop_silent_client();
}

void server_announce_files(void)
{
	const struct shm_msg m = { .type = MSG_FILES };
	struct shm_client *g;

	pthread_mutex_lock(&nic.lock);
	for (g = clients; g; g = g->next)
		if (g->slot)
			shm_msg_send(g->fd, &m, NULL, 0);
	pthread_mutex_unlock(&nic.lock);
}

void server_reset(void)
{
	for (; clients; clients = clients->next)
		close(clients->fd);
}

void server_disconnect(struct shm_client *g)
{
	shutdown(g->fd, SHUT_RDWR);
}
