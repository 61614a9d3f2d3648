// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Listeners and their children. A child is a connection that the engine has accepted and the user
 * has not yet fetched.
 */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "cm.h"
#include "event.h"
#include "softnic/cm_far/cm_far.h"
#include "softnic/control/config.h"

enum {
	ACCEPTS_A_TURN = 16, /* then the engine serves other sockets */
	SILENT_MAX = 256, /* children that have sent no message yet */
	REST_MS = 100,
};

struct cm_id *cm_listen_add_child(struct cm_id *listener, int fd)
{
	struct cm_id *child;

	if (listener->state != CM_LISTENING || listener->nr_children == CM_BACKLOG_MAX)
		return NULL;
	/* Until fetched, the child uses the listener's channel and owns no event there. */
	if (cm_id_new(cm_channel(listener->id.channel), NULL, listener->id.ps, listener->id.qp_type,
		      &child))
		return NULL;
	child->fd = fd;
	cm_id_set_state(child, CM_REQ_WAIT);
	child->ack_timeout = listener->ack_timeout;
	child->listener = listener;
	TAILQ_INSERT_TAIL(&listener->children, child, child_link);
	listener->nr_children++;
	return child;
}

void cm_listen_forget(struct cm_id *child)
{
	TAILQ_REMOVE(&child->listener->children, child, child_link);
	child->listener->nr_children--;
	child->listener = NULL;
}

/*
 * A correct client sends its request at once. Beyond SILENT_MAX silent children, returns the
 * oldest for removal; else NULL. Context: cm_lock held.
 */
static struct cm_id *most_silent(const struct cm_id *listener)
{
	struct cm_id *child, *oldest = NULL;
	int silent = 0;

	TAILQ_FOREACH(child, &listener->children, child_link) {
		if (child->state != CM_REQ_WAIT)
			continue;
		if (!silent++)
			oldest = child;
	}
	return silent > SILENT_MAX ? oldest : NULL;
}

static void accept_child(struct cm_id *listener, int fd)
{
	struct cm_id *child = NULL, *leaving = NULL;

	pthread_mutex_lock(&cm_lock);
	if (cm_port_peer_is_ours(fd))
		child = cm_listen_add_child(listener, fd);
	if (child)
		leaving = most_silent(listener);
	if (leaving)
		cm_listen_forget(leaving);
	pthread_mutex_unlock(&cm_lock);
	if (leaving)
		cm_id_free(leaving);
	if (!child) {
		passed_fd_close_socket(fd);
		return;
	}
	if (!cm_conn_watch(child))
		return;

	pthread_mutex_lock(&cm_lock);
	cm_listen_forget(child);
	pthread_mutex_unlock(&cm_lock);
	cm_id_free(child);
}

static void pause_accepting(struct cm_id *listener);

static void listener_socket_ready(struct cm_id *listener, int fd)
{
	int i, conn;

	for (i = 0; i < ACCEPTS_A_TURN; i++) {
		conn = passed_fd_accept(fd, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (conn < 0)
			break;
		accept_child(listener, conn);
	}
	if (i < ACCEPTS_A_TURN && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		pause_accepting(listener);
}

static void listener_ready(void *arg, uint32_t events)
{
	struct cm_id *listener = arg;

	(void)events;
	listener_socket_ready(listener, listener->fd);
}

static void listener_ipv4_ready(void *arg, uint32_t events)
{
	struct cm_id *listener = arg;

	(void)events;
	listener_socket_ready(listener, listener->fd_ipv4);
}

static int watch_sockets(struct cm_id *listener)
{
	int rc = softnic_loop_add(listener->fd, EPOLLIN, listener_ready, listener);

	if (!rc && listener->fd_ipv4 >= 0)
		rc = softnic_loop_add(listener->fd_ipv4, EPOLLIN, listener_ipv4_ready, listener);
	if (rc)
		softnic_loop_del(listener->fd);
	return rc;
}

static void unwatch_sockets(struct cm_id *listener)
{
	softnic_loop_del(listener->fd);
	softnic_loop_del(listener->fd_ipv4);
}

static void resume_accepting(struct softnic_timer *timer)
{
	struct cm_id *listener = (void *)((char *)timer - offsetof(struct cm_id, timer));

	if (watch_sockets(listener))
		softnic_timer_arm(timer, REST_MS * 1000000ull, resume_accepting);
}

/*
 * Without a free descriptor accept() fails and the socket stays ready. The engine stops polling
 * the socket for REST_MS, so as not to spin.
 */
static void pause_accepting(struct cm_id *listener)
{
	pthread_mutex_lock(&cm_lock);
	if (listener->state == CM_LISTENING) {
		unwatch_sockets(listener);
		softnic_timer_arm(&listener->timer, REST_MS * 1000000ull, resume_accepting);
	}
	pthread_mutex_unlock(&cm_lock);
}

void cm_listen_stop(struct cm_id *id)
{
	struct cm_id *child;

	if (id->fd < 0)
		return;
	softnic_timer_disarm(&id->timer);
	unwatch_sockets(id);
	for (;;) {
		pthread_mutex_lock(&cm_lock);
		child = TAILQ_FIRST(&id->children);
		if (child) {
			cm_listen_forget(child);
			cm_conn_reject(child, CM_REASON_CONSUMER_DEFINED, NULL, 0);
		}
		pthread_mutex_unlock(&cm_lock);
		if (!child)
			break;
		cm_id_free(child);
	}
}

static int bind_wildcard(struct rdma_cm_id *id)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	return rdma_bind_addr(id, (struct sockaddr *)&any);
}

static void begin_listening(struct cm_id *id)
{
	cm_id_set_state(id, CM_LISTENING);
	cm_listing_begin(id);
}

static int start_listening(struct cm_id *id, int backlog)
{
	int rc = 0;

	pthread_mutex_lock(&cm_lock);
	if (id->state != CM_BOUND)
		rc = -EINVAL;
	else
		rc = cm_port_make_unique(id);
	if (rc)
		goto unlock;
	if (listen(id->fd, SOMAXCONN) < 0 ||
	    (id->fd_ipv4 >= 0 && listen(id->fd_ipv4, SOMAXCONN) < 0))
		rc = -errno;
	else
		begin_listening(id);
	id->backlog = backlog > 0 && backlog < CM_BACKLOG_MAX ? backlog : CM_BACKLOG_MAX;
unlock:
	pthread_mutex_unlock(&cm_lock);
	return rc ? rc : watch_sockets(id);
}

/* By other hosts: they do not reach the loopback interface. */
static bool is_reachable(const struct cm_id *id)
{
	union cm_addr addr;

	cm_id_src(id, &addr);
	return !cm_addr_is_loopback(&addr) || !config_get()->value[OPTION_NEAR];
}

int rdma_listen(struct rdma_cm_id *rid, int backlog)
{
	const struct cm_device *device;
	struct cm_id *id = cm_id(rid);
	int rc;

	rc = cm_device_get(&device); /* the engine thread binds requests to the device */
	if (rc)
		return cm_return(rc);
	if (id->state == CM_IDLE && bind_wildcard(rid) < 0)
		return -1;
	if (is_reachable(id))
		cm_far_open(); /* without UDP, only processes of this host connect */
	return cm_return(start_listening(id, backlog));
}

int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **rid)
{
	struct cm_id *id = cm_id(listener);
	struct ibv_qp_init_attr attr;
	int rc;

	if (!id->sync)
		return cm_return(-EINVAL);
	rc = cm_event_complete(id);
	if (!rc && listener->event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		rc = -EINVAL;
	if (!rc && id->qp_init_attr) {
		attr = *id->qp_init_attr;
		if (rdma_create_qp(listener->event->id, listener->pd, &attr) < 0)
			rc = -errno;
	}
	if (rc)
		return cm_return(rc);
	*rid = listener->event->id;
	(*rid)->event = listener->event;
	listener->event = NULL;
	return 0;
}
