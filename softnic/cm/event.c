// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Event channels and events.
 *
 * A channel's descriptor is an eventfd semaphore with one count per event. A fetching thread first
 * takes a count, and read() obeys the user's O_NONBLOCK and signals. Then the thread takes an event
 * off the list. In between, the event may be withdrawn because its id is destroyed or migrates; the
 * thread then waits for another count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cm.h"
#include "event.h"
#include "softnic/control/warning.h"

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

int cm_channel_create(struct cm_channel **channel)
{
	struct cm_channel *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	TAILQ_INIT(&c->events);
	c->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (c->channel.fd < 0) {
		rc = -errno;
		free(c);
		return rc;
	}
	*channel = c;
	return 0;
}

void cm_channel_destroy(struct cm_channel *c)
{
	struct cm_event *e;

	while ((e = TAILQ_FIRST(&c->events))) {
		TAILQ_REMOVE(&c->events, e, link);
		free(e);
	}
	close(c->channel.fd);
	free(c);
}

static void channel_append(struct cm_channel *c, struct cm_event *e)
{
	TAILQ_INSERT_TAIL(&c->events, e, link);
	eventfd_write(c->channel.fd, 1);
}

/* Takes the event's count back. If a thread has the count, the next thread finds no event. */
static void channel_withdraw(struct cm_channel *c, struct cm_event *e)
{
	uint64_t count;
	struct iovec iov = { &count, sizeof(count) };

	TAILQ_REMOVE(&c->events, e, link);
	if (preadv2(c->channel.fd, &iov, 1, -1, RWF_NOWAIT) < 0)
		c->withdrawn++;
}

static void fill_conn(struct cm_event *e, const struct cm_msg *msg)
{
	struct rdma_conn_param *conn = &e->event.param.conn;

	memcpy(e->private_data, msg->private_data, msg->private_len);
	conn->private_data = e->private_data;
	conn->private_data_len = (uint8_t)cm_msg_private_max(msg->type);
	if (msg->type == CM_MSG_REJ)
		return;
	/* The receiver serves the reads that the sender issues, and vice versa. */
	conn->responder_resources = msg->initiator_depth;
	conn->initiator_depth = msg->responder_resources;
	conn->flow_control = msg->flow_control;
	conn->retry_count = msg->retry_count;
	conn->rnr_retry_count = msg->rnr_retry_count;
	conn->srq = msg->srq;
	conn->qp_num = msg->qp_num;
}

static void fill_ud(struct cm_event *e, const struct cm_id *id, const struct cm_msg *msg)
{
	struct rdma_ud_param *ud = &e->event.param.ud;

	memcpy(e->private_data, msg->private_data, msg->private_len);
	ud->private_data = e->private_data;
	ud->private_data_len = (uint8_t)cm_msg_private_max(msg->type);
	if (e->event.event != RDMA_CM_EVENT_ESTABLISHED)
		return;
	cm_qp_path(id, &ud->ah_attr);
	ud->qp_num = msg->qp_num;
	ud->qkey = RDMA_UDP_QKEY;
}

struct cm_event *cm_event_push(struct cm_id *owner, struct cm_id *id, enum rdma_cm_event_type type,
			       int status, const struct cm_msg *msg)
{
	static struct warning_limit limit; /* a peer chooses how many events there are */
	struct cm_event *e = calloc(1, sizeof(*e));

	if (!e) {
		warning_write(&limit, "out of memory: %s is lost", rdma_event_str(type));
		return NULL;
	}
	e->owner = owner;
	e->event.id = &id->id;
	e->event.listen_id = owner == id ? NULL : &owner->id;
	e->event.event = type;
	e->event.status = status;
	if (msg && cm_id_is_datagram(id))
		fill_ud(e, id, msg);
	else if (msg)
		fill_conn(e, msg);
	channel_append(cm_channel(owner->id.channel), e);
	return e;
}

/* Move an owner's unfetched events to another channel; NULL: drop the events. */
static void move_events(struct cm_id *owner, struct cm_channel *to)
{
	struct cm_channel *from = cm_channel(owner->id.channel);
	struct cm_event *e, *next;

	for (e = TAILQ_FIRST(&from->events); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->owner != owner)
			continue;
		channel_withdraw(from, e);
		if (to)
			channel_append(to, e);
		else
			free(e);
	}
}

void cm_event_drop(struct cm_id *owner)
{
	move_events(owner, NULL);
}

void cm_event_drop_group(struct cm_id *owner, struct cm_group *group)
{
	struct cm_channel *c = cm_channel(owner->id.channel);
	struct cm_event *e;

	TAILQ_FOREACH(e, &c->events, link)
		if (e->group == group)
			break;
	if (!e)
		return;
	channel_withdraw(c, e);
	free(e);
}

static void wait_acked(const unsigned int *events_out)
{
	pthread_mutex_lock(&cm_lock);
	while (*events_out)
		pthread_cond_wait(&acked, &cm_lock);
	pthread_mutex_unlock(&cm_lock);
}

void cm_event_wait_acked(struct cm_id *owner)
{
	wait_acked(&owner->events_out);
}

void cm_event_wait_group_acked(struct cm_group *group)
{
	wait_acked(&group->events_out);
}

void cm_event_ack_last(struct cm_id *id)
{
	if (!id->sync || !id->id.event)
		return;
	rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
}

/*
 * A request leaves the listener and becomes the user's id. With a synchronous listener, the id
 * gets a private channel.
 */
static int adopt_child(struct cm_id *listener, struct cm_id *child)
{
	struct cm_channel *channel = cm_channel(listener->id.channel);
	int rc;

	if (listener->sync) {
		rc = cm_channel_create(&channel);
		if (rc)
			return rc;
	}
	TAILQ_REMOVE(&listener->children, child, child_link);
	listener->nr_children--;
	listener->nr_requests--;
	child->listener = NULL;
	child->sync = listener->sync;
	child->id.channel = &channel->channel;
	child->id.context = listener->id.context;
	return 0;
}

/* Return: the next event, counted as fetched, or NULL. */
static struct cm_event *fetch_event(struct cm_channel *c, int *rc)
{
	struct cm_event *e;

	pthread_mutex_lock(&cm_lock);
	*rc = 0;
	e = c->withdrawn ? NULL : TAILQ_FIRST(&c->events);
	if (c->withdrawn)
		c->withdrawn--;
	if (e && e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		*rc = adopt_child(e->owner, cm_id(e->event.id));
	if (e && *rc) {
		/* Out of descriptors: a later fetch retries the request. */
		eventfd_write(c->channel.fd, 1);
		e = NULL;
	}
	if (e) {
		TAILQ_REMOVE(&c->events, e, link);
		e->owner->events_out++;
		if (e->group)
			e->group->events_out++;
	}
	pthread_mutex_unlock(&cm_lock);
	return e;
}

static void apply_response(struct cm_id *id, struct rdma_cm_event *event)
{
	int rc;

	if (!id->id.qp)
		return;
	rc = cm_qp_connect(id);
	if (!rc)
		rc = cm_connect_finish(id);
	event->event = rc ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	event->status = rc;
	if (!rc)
		return;
	cm_qp_fail(id);
	pthread_mutex_lock(&cm_lock);
	cm_conn_reject(id, CM_REASON_CONSUMER_DEFINED, NULL, 0);
	cm_event_drop(id);
	pthread_mutex_unlock(&cm_lock);
}

/* Changes the QP's state before the user gets the event. */
static void apply_event(struct cm_event *e)
{
	struct rdma_cm_event *event = &e->event;
	struct cm_id *id = cm_id(event->id);

	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		cm_qp_fail(id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		apply_response(id, event);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		event->status = cm_mcast_attach(id, e->group);
		if (event->status)
			event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
		break;
	default:
		break;
	}
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct cm_event *e = NULL;
	eventfd_t count;
	int rc = 0;

	if (!channel || !event)
		return cm_return(-EINVAL);
	while (!e && !rc) {
		if (eventfd_read(channel->fd, &count) < 0)
			return -1;
		e = fetch_event(cm_channel(channel), &rc);
	}
	if (rc)
		return cm_return(rc);
	apply_event(e);
	*event = &e->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct cm_event *e = (struct cm_event *)event;

	if (!event)
		return cm_return(-EINVAL);
	pthread_mutex_lock(&cm_lock);
	e->owner->events_out--;
	if (e->group)
		e->group->events_out--;
	pthread_cond_broadcast(&acked);
	pthread_mutex_unlock(&cm_lock);
	free(e);
	return 0;
}

int cm_event_complete(struct cm_id *id)
{
	struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	cm_event_ack_last(id);
	if (rdma_get_cm_event(id->id.channel, &id->id.event) < 0)
		return -errno;
	event = id->id.event;
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel = NULL;
	int rc = cm_channel_create(&channel);

	if (rc) {
		errno = -rc;
		return NULL;
	}
	return &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel)
		cm_channel_destroy(cm_channel(channel));
}

int rdma_migrate_id(struct rdma_cm_id *rid, struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id(rid);
	struct cm_channel *to, *own = id->sync ? cm_channel(rid->channel) : NULL;
	int rc;

	if (id->sync && !channel)
		return cm_return(-EINVAL);
	if (channel) {
		to = cm_channel(channel);
	} else {
		rc = cm_channel_create(&to);
		if (rc)
			return cm_return(rc);
	}
	cm_event_ack_last(id);

	pthread_mutex_lock(&cm_lock);
	move_events(id, to);
	rid->channel = &to->channel;
	id->sync = !channel;
	pthread_mutex_unlock(&cm_lock);
	cm_event_wait_acked(id);
	if (own)
		cm_channel_destroy(own);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((size_t)event >= sizeof(names) / sizeof(names[0]))
		return cm_lookup_event_str((int)event);
	return names[event];
}
