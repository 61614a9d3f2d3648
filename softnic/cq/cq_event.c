// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The verbs of completion channels.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"
#include "softnic/control/fault.h"
#include "softnic/strict/strict.h"
#include "softnic/verbs/nic.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	static uint64_t created;
	struct comp_channel *c;
	int rc;

	if (fault_is_gone()) {
		errno = EIO;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	rc = comp_channel_init(c);
	if (rc) {
		free(c);
		errno = -rc;
		return NULL;
	}
	c->ibv.context = context;
	c->number = add_ordered(&created, 1);
	return &c->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct comp_channel *c = to_comp_channel(ibv);

	if (c->cqs) {
		strict_busy("ibv_destroy_comp_channel()", "CQs use the channel");
		return EBUSY;
	}
	pthread_mutex_lock(&nic.lock);
	while (c->wakeups)
		wakeup_destroy(c->wakeups);
	pthread_mutex_unlock(&nic.lock);
	comp_channel_fini(c);
	free(c);
	return 0;
}

/* A fault of the thread itself, which cannot occur while it waits. */
static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
	       signal == SIGTRAP || signal == SIGABRT || signal == SIGSYS;
}

/*
 * read() resumes after a signal whose handler has SA_RESTART, and programs count on that.
 * epoll_wait() never resumes and does not name the signal. So we resume unless some handler
 * lacks SA_RESTART.
 */
static bool goes_on_after_signals(void)
{
	struct sigaction s;
	int i;

	for (i = 1; i < NSIG; i++)
		if (!is_fault(i) && !sigaction(i, NULL, &s) && s.sa_handler != SIG_DFL &&
		    s.sa_handler != SIG_IGN && !(s.sa_flags & SA_RESTART))
			return false;
	return true;
}

static int wait_for_event(int fd, struct comp_channel_news *news)
{
	struct epoll_event found[CHANNEL_SOURCES];
	int forever = fcntl(fd, F_GETFL) & O_NONBLOCK ? 0 : -1, i, n;

	do
		n = epoll_wait(fd, found, CHANNEL_SOURCES, forever);
	while (n < 0 && errno == EINTR && goes_on_after_signals());
	if (n <= 0) {
		errno = n ? errno : EAGAIN;
		return -1;
	}
	for (i = 0; i < n; i++)
		news->pulled |= found[i].data.u32 == CHANNEL_WAKEUPS;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **cq_context)
{
	struct comp_channel_news news = { 0 };
	struct cq *cq;

	while (!(cq = comp_channel_take(to_comp_channel(channel), &news)))
		if (wait_for_event(channel->fd, &news))
			return -1;
	*out = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	count(cq_events, 1);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
