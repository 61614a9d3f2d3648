// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Datagram sockets, because only of these a peer cannot shut down our end. A wakeup is lost
 * when the socket buffer is full, but then the sleeper has others to read and checks all armed
 * flags.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"
#include "fd/passed_fd.h"

static struct wakeup *find_wakeup(const struct shm_doorbell_page *doorbell_page,
				  const struct comp_channel *channel)
{
	struct wakeup *wakeup = doorbell_page->wakeups;

	while (wakeup && wakeup->channel != channel)
		wakeup = wakeup->next_of_page;
	return wakeup;
}

static int create_wakeup(struct shm_doorbell_page *doorbell_page, struct comp_channel *channel,
			 struct wakeup **out)
{
	struct wakeup *wakeup = malloc(sizeof(*wakeup));
	int fds[2], err;

	if (!wakeup)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0) {
		err = -errno;
		goto memory;
	}
	passed_fd_refuse(fds[0]);
	passed_fd_refuse(fds[1]);
	*wakeup = (struct wakeup){
		fds[0], fds[1], doorbell_page, channel, doorbell_page->wakeups, channel->wakeups
	};
	err = comp_channel_watch(channel, wakeup);
	if (err)
		goto sockets;
	*out = doorbell_page->wakeups = channel->wakeups = wakeup;
	return 0;

sockets:
	close(fds[0]);
	close(fds[1]);
memory:
	free(wakeup);
	return err;
}

int wakeup_get(struct shm_doorbell_page *doorbell_page, struct comp_channel *channel,
	       struct wakeup **wakeup)
{
	*wakeup = find_wakeup(doorbell_page, channel);
	return *wakeup ? 0 : create_wakeup(doorbell_page, channel, wakeup);
}

void wakeup_destroy(struct wakeup *wakeup)
{
	struct wakeup **at;

	for (at = &wakeup->doorbell_page->wakeups; *at != wakeup; at = &(*at)->next_of_page)
		;
	*at = wakeup->next_of_page;
	for (at = &wakeup->channel->wakeups; *at != wakeup; at = &(*at)->next_of_channel)
		;
	*at = wakeup->next_of_channel;
	comp_channel_unwatch(wakeup->channel, wakeup);
	passed_fd_close_socket(wakeup->fd);
	/* A peer with this socket may have connected it to others, which send. */
	passed_fd_close_socket(wakeup->far_fd);
	free(wakeup);
}

/* Bounded, because a peer may send for ever. */
void wakeup_drain(const struct wakeup *wakeup)
{
	enum { TIMES = 1024 };
	char byte;
	int i;

	for (i = 0; i < TIMES; i++)
		if (passed_fd_recv(wakeup->fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0)
			break;
}

int waker_get(struct waker **wakers, uint64_t channel, int *fd, struct waker **out)
{
	struct waker *p;

	for (p = *wakers; p; p = p->next) {
		if (p->channel == channel) {
			p->users++;
			*out = p;
			return 0;
		}
	}
	if (!passed_fd_is_socket(*fd, SOCK_DGRAM))
		return -EPROTO;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct waker){ channel, *fd, 1, *wakers };
	*fd = -1;
	*out = *wakers = p;
	return 0;
}

void waker_put(struct waker **wakers, struct waker *waker)
{
	struct waker **at = wakers;

	if (--waker->users)
		return;
	while (*at != waker)
		at = &(*at)->next;
	*at = waker->next;
	passed_fd_close(waker->fd);
	free(waker);
}

void waker_wake(const struct waker *waker)
{
	(void)!send(waker->fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL);
}
