// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Asynchronous events: a list, and an eventfd that counts it, one event a read.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "async.h"
#include "qp.h"

int async_init(struct context *c)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);

	if (fd < 0)
		return -errno;
	c->verbs.context.async_fd = fd;
	pthread_mutex_init(&c->lock, NULL);
	c->last = &c->first;
	return 0;
}

void async_fini(struct context *c)
{
	struct async_event *e;

	while ((e = c->first)) {
		c->first = e->next;
		free(e);
	}
	close(c->verbs.context.async_fd);
	pthread_mutex_destroy(&c->lock);
}

void async_raise(struct qp *qp, enum ibv_event_type type)
{
	struct context *c = to_context(qp->ibv.context);
	struct async_event *e = calloc(1, sizeof(*e));

	if (!e)
		return;		/* the completions tell, too */
	e->event.element.qp = &qp->ibv;
	e->event.event_type = type;
	pthread_mutex_lock(&c->lock);
	*c->last = e;
	c->last = &e->next;
	eventfd_write(c->verbs.context.async_fd, 1);
	pthread_mutex_unlock(&c->lock);
}

static struct async_event *take(struct context *c, struct ibv_qp *only)
{
	struct async_event **at = &c->first, *e;

	while ((e = *at) && only && e->event.element.qp != only)
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
		e = take(c, NULL);
		if (e)
			to_qp(e->event.element.qp)->events_delivered++;
		pthread_mutex_unlock(&c->lock);
	} while (!e);
	*event = e->event;
	free(e);
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_qp *qp = event->element.qp;

	pthread_mutex_lock(&qp->mutex);
	qp->events_completed++;
	pthread_cond_signal(&qp->cond);
	pthread_mutex_unlock(&qp->mutex);
}

void async_forget(struct qp *qp)
{
	struct context *c = to_context(qp->ibv.context);
	struct async_event *e;
	uint32_t delivered;
	uint64_t one;
	struct iovec iov = { &one, sizeof(one) };

	pthread_mutex_lock(&c->lock);
	while ((e = take(c, &qp->ibv))) {
		free(e);
		/* Another thread may be reading, too: whoever finds nothing reads on. */
		(void)!preadv2(c->verbs.context.async_fd, &iov, 1, -1, RWF_NOWAIT);
	}
	delivered = qp->events_delivered;
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_lock(&qp->ibv.mutex);
	while (qp->ibv.events_completed != delivered)
		pthread_cond_wait(&qp->ibv.cond, &qp->ibv.mutex);
	pthread_mutex_unlock(&qp->ibv.mutex);
}
