// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Datagrams, for of these sockets alone a peer cannot shut the end that is ours. When the
 * queue between them is full the pull is lost, but then the sleeper has others to hear, and
 * looks at all arms when it does.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"
#include "softnic/shm/passed_fd.h"

static struct cord *find(const struct bell *bell, const struct channel *channel)
{
	struct cord *cord = bell->cords;

	while (cord && cord->channel != channel)
		cord = cord->next_of_bell;
	return cord;
}

static int create(struct bell *bell, struct channel *channel, struct cord **out)
{
	struct cord *cord = malloc(sizeof(*cord));
	int fds[2], err;

	if (!cord)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0) {
		err = -errno;
		goto memory;
	}
	*cord = (struct cord){ fds[0], fds[1], bell, channel, bell->cords, channel->cords };
	err = channel_watch(channel, cord);
	if (err)
		goto sockets;
	*out = bell->cords = channel->cords = cord;
	return 0;

sockets:
	close(fds[0]);
	close(fds[1]);
memory:
	free(cord);
	return err;
}

int cord_get(struct bell *bell, struct channel *channel, struct cord **cord)
{
	*cord = find(bell, channel);
	return *cord ? 0 : create(bell, channel, cord);
}

void cord_cut(struct cord *cord)
{
	struct cord **at;

	for (at = &cord->bell->cords; *at != cord; at = &(*at)->next_of_bell)
		;
	*at = cord->next_of_bell;
	for (at = &cord->channel->cords; *at != cord; at = &(*at)->next_of_channel)
		;
	*at = cord->next_of_channel;
	channel_unwatch(cord->channel, cord);
	close(cord->fd);
	close(cord->far_fd);
	free(cord);
}

/* A peer that pulls for ever must not hold us. */
void cord_hear(const struct cord *cord)
{
	enum { ONCE = 4, TIMES = 256 };
	struct mmsghdr pulls[ONCE] = { 0 };
	int i;

	for (i = 0; i < TIMES; i++)
		if (recvmmsg(cord->fd, pulls, ONCE, MSG_DONTWAIT, NULL) < ONCE)
			break;
}

int pull_get(struct pull **pulls, uint64_t channel, int *fd, struct pull **out)
{
	struct pull *p;

	for (p = *pulls; p; p = p->next) {
		if (p->channel == channel) {
			p->users++;
			*out = p;
			return 0;
		}
	}
	if (!passed_is_socket(*fd, SOCK_DGRAM))
		return -EPROTO;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct pull){ channel, *fd, 1, *pulls };
	*fd = -1;
	*out = *pulls = p;
	return 0;
}

void pull_put(struct pull **pulls, struct pull *pull)
{
	struct pull **at = pulls;

	if (--pull->users)
		return;
	while (*at != pull)
		at = &(*at)->next;
	*at = pull->next;
	close(pull->fd);
	free(pull);
}

void pull_once(const struct pull *pull)
{
	(void)!send(pull->fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL);
}
