// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Asynchronous events: a list, and an eventfd that counts the list. Each read takes one event.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "async.h"
#include "device.h"
#include "softnic/loop/fork.h"
#include "softnic/strict/strict.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *open_contexts;
static void (*on_device)(enum ibv_event_type type); /* open_lock */

/* In the child of a fork: its event descriptors are shared with the parent, so never written. */
static void reset_contexts(void)
{
	open_contexts = NULL;
}

const struct fork_part async_fork = { &open_lock, reset_contexts };

int async_init(struct context *c)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);

	if (fd < 0)
		return -errno;
	c->verbs.context.async_fd = fd;
	c->verbs.context.cmd_fd = fd; /* no commands: but the descriptor may be duplicated */
	pthread_mutex_init(&c->lock, NULL);
	c->last = &c->first;
	pthread_mutex_lock(&open_lock);
	c->next = open_contexts;
	open_contexts = c;
	pthread_mutex_unlock(&open_lock);
	return 0;
}

void async_fini(struct context *c)
{
	struct context **at = &open_contexts;
	struct async_event *e;

	pthread_mutex_lock(&open_lock);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at) /* in the child of a fork, a context of the parent is not in the list */
		*at = c->next;
	pthread_mutex_unlock(&open_lock);
	while ((e = c->first)) {
		c->first = e->next;
		free(e);
	}
	close(c->verbs.context.async_fd);
	pthread_mutex_destroy(&c->lock);
}

static void append_event(struct context *c, struct async_subject *subject,
			 const struct ibv_async_event *event)
{
	struct async_event *e = calloc(1, sizeof(*e));

	if (!e)
		return; /* completions with errors still report the problem */
	e->event = *event;
	e->subject = subject;
	pthread_mutex_lock(&c->lock);
	*c->last = e;
	c->last = &e->next;
	eventfd_write(c->verbs.context.async_fd, 1);
	pthread_mutex_unlock(&c->lock);
}

void async_raise(struct ibv_context *context, struct async_subject *subject,
		 enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.qp = subject->element, .event_type = type };

	append_event(to_context(context), subject, &event);
}

void async_raise_ports(enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type };
	struct context *c;

	pthread_mutex_lock(&open_lock);
	for (c = open_contexts; c; c = c->next) {
		for (event.element.port_num = SOFTNIC_PORT; device_has_port(event.element.port_num);
		     event.element.port_num++)
			append_event(c, NULL, &event);
	}
	pthread_mutex_unlock(&open_lock);
}

void async_raise_device(enum ibv_event_type type)
{
	const struct ibv_async_event event = { .event_type = type };
	void (*fn)(enum ibv_event_type type);
	struct context *c;

	pthread_mutex_lock(&open_lock);
	for (c = open_contexts; c; c = c->next)
		append_event(c, NULL, &event);
	fn = on_device;
	pthread_mutex_unlock(&open_lock);
	if (fn)
		fn(type);
}

void async_on_device(void (*fn)(enum ibv_event_type type))
{
	pthread_mutex_lock(&open_lock);
	on_device = fn;
	pthread_mutex_unlock(&open_lock);
}

static struct async_event *take_event(struct context *c, const struct async_subject *only)
{
	struct async_event **at = &c->first, *e;

	while ((e = *at) && only && e->subject != only)
		at = &e->next;
	if (!e)
		return NULL;
	*at = e->next;
	if (!e->next)
		c->last = at;
	return e;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct context *c = to_context(context);
	struct async_event *e;
	uint64_t one;

	do {
		if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
			return -1;
		pthread_mutex_lock(&c->lock);
		e = take_event(c, NULL);
		if (e && e->subject)
			e->subject->delivered++;
		pthread_mutex_unlock(&c->lock);
	} while (!e);
	*event = e->event;
	free(e);
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	default:
		break; /* events of ports and devices need no acknowledgement */
	}
}

void async_forget(struct ibv_context *context, struct async_subject *subject)
{
	struct context *c = to_context(context);
	struct async_event *e;
	uint32_t delivered;
	uint64_t one;
	struct iovec iov = { &one, sizeof(one) };

	pthread_mutex_lock(&c->lock);
	while ((e = take_event(c, subject))) {
		free(e);
		/* Another thread may have read the count already: it finds no event and rereads. */
		(void)!preadv2(context->async_fd, &iov, 1, -1, RWF_NOWAIT);
	}
	delivered = subject->delivered;
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_lock(subject->mutex);
	while (*subject->completed != delivered &&
	       strict_wait_for_ack(subject->cond, subject->mutex, "destroying its object",
				   delivered - *subject->completed))
		;
	pthread_mutex_unlock(subject->mutex);
}
