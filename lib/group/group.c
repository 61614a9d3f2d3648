/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/exchange/wait.h"
#include "lib/group/group.h"

struct weir_group *weir_group_new(unsigned int member, unsigned int size)
{
	struct weir_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->member = member;
	group->size = size;
	group->failed = -1;
	group->peers = calloc(size, sizeof(*group->peers));
	group->fds = calloc(size, sizeof(*group->fds));
	if (group->peers && group->fds)
		return group;
	weir_group_close(group);
	return NULL;
}

int weir_group_add_peer(struct weir_group *group, unsigned int peer, struct weir_exchange *x)
{
	struct weir_group_peer *p = &group->peers[peer];
	struct weir_exchange_info info;

	weir_exchange_info(x, &info, sizeof(info));
	p->held = calloc(info.peer_slots, sizeof(*p->held));
	if (!p->held)
		return -ENOMEM;
	p->held_max = info.peer_slots;
	p->x = x;
	return 0;
}

void weir_group_close(struct weir_group *group)
{
	unsigned int i;

	if (!group)
		return;
	for (i = 0; group->peers && i < group->size; i++) {
		weir_exchange_close(group->peers[i].x);
		free(group->peers[i].held);
	}
	free(group->peers);
	free(group->fds);
	free(group);
}

unsigned int weir_group_member(const struct weir_group *group)
{
	return group->member;
}

unsigned int weir_group_size(const struct weir_group *group)
{
	return group->size;
}

int weir_group_failed(const struct weir_group *group)
{
	return group->failed;
}

const struct weir_exchange *weir_group_exchange(const struct weir_group *group, unsigned int member)
{
	return member < group->size ? group->peers[member].x : NULL;
}

/* Return: 0 if an operation on @length bytes at @data may begin. */
static int may_begin(const struct weir_group *group, const void *data, size_t length)
{
	unsigned int i;

	if (group->status)
		return -ECONNRESET;
	for (i = 0; i < group->size; i++)
		if (weir_group_is_owed(&group->peers[i]))
			return -EBUSY;
	return length && !data ? -EINVAL : 0;
}

static void begin_operation(struct weir_group *group)
{
	group->add = NULL;
	group->turn = 0;
	group->inquired_ns = weir_now_ns();
}

static void send_to(struct weir_group *group, unsigned int member, const void *data, size_t length)
{
	struct weir_group_peer *peer = &group->peers[member];

	if (!peer->x)
		return;
	peer->out = data;
	peer->out_left = length;
	peer->out_owed = true;
	peer->flush_owed = true;
}

static void receive_from(struct weir_group *group, unsigned int member, void *data, size_t length)
{
	struct weir_group_peer *peer = &group->peers[member];

	if (!peer->x)
		return;
	peer->in = data;
	peer->in_left = length;
	peer->in_owed = true;
}

/* The place of @member among equal parts. */
static char *part_at(void *all, unsigned int member, size_t length)
{
	return length ? (char *)all + member * length : all;
}

int weir_group_broadcast(struct weir_group *group, unsigned int from, void *data, size_t length)
{
	int status = may_begin(group, data, length);
	unsigned int i;

	if (status)
		return status;
	if (from >= group->size)
		return -EINVAL;
	begin_operation(group);
	if (from != group->member)
		receive_from(group, from, data, length);
	for (i = 0; from == group->member && i < group->size; i++)
		send_to(group, i, data, length);
	return 0;
}

static int receive_all(struct weir_group *group, const void *data, size_t length, void *all)
{
	int status = weir_group_copy(group, part_at(all, group->member, length), data, length);
	unsigned int i;

	for (i = 0; !status && i < group->size; i++)
		receive_from(group, i, part_at(all, i, length), length);
	return status;
}

int weir_group_gather(struct weir_group *group, unsigned int to, const void *data, size_t length,
		      void *all)
{
	int status = may_begin(group, data, length);

	if (status)
		return status;
	if (to >= group->size || (to == group->member && length && !all))
		return -EINVAL;
	begin_operation(group);
	if (to == group->member)
		return receive_all(group, data, length, all);
	send_to(group, to, data, length);
	return 0;
}

int weir_group_all_gather(struct weir_group *group, const void *data, size_t length, void *all)
{
	int status = may_begin(group, data, length);
	unsigned int i;

	if (status)
		return status;
	if (length && !all)
		return -EINVAL;
	begin_operation(group);
	status = receive_all(group, data, length, all);
	for (i = 0; !status && i < group->size; i++)
		send_to(group, i, part_at(all, group->member, length), length);
	return status;
}

int weir_group_reduce_scatter(struct weir_group *group, const void *data, size_t length, void *sum,
			      weir_group_add_fn *add, void *arg)
{
	int status = may_begin(group, data, length);
	unsigned int i;

	if (status)
		return status;
	if (!add || (length && !sum))
		return -EINVAL;
	begin_operation(group);
	group->add = add;
	group->add_arg = arg;
	group->mine = part_at((void *)data, group->member, length);
	group->sum = sum;
	group->part = length;
	for (i = 0; i < group->size; i++) {
		receive_from(group, i, sum, length);
		send_to(group, i, part_at((void *)data, i, length), length);
	}
	return 0;
}

int weir_group_barrier(struct weir_group *group)
{
	return weir_group_all_gather(group, NULL, 0, NULL);
}

int weir_group_finish(struct weir_group *group)
{
	int status = may_begin(group, NULL, 0);
	unsigned int i;

	if (status)
		return status;
	begin_operation(group);
	for (i = 0; i < group->size; i++)
		group->peers[i].finish_owed = group->peers[i].x;
	return 0;
}

/* A descriptor does not report a peer that vanished silently, so probe all peers with work left. */
static void probe_silent_peers(struct weir_group *group)
{
	uint64_t now_ns = weir_now_ns();
	unsigned int i;

	if (now_ns - group->inquired_ns < WEIR_EXCHANGE_REST_MS_MAX * WEIR_NS_PER_MS)
		return;
	group->inquired_ns = now_ns;
	for (i = 0; i < group->size; i++)
		if (group->peers[i].x && weir_group_is_owed(&group->peers[i]))
			weir_exchange_probe_peer(group->peers[i].x);
}

/* Sleeps on the descriptors of peers with work left, after each exchange reported none. */
static void wait_for_peers(struct weir_group *group, uint64_t deadline_ns)
{
	int ms = weir_poll_ms(deadline_ns);
	unsigned int i;
	nfds_t count = 0;

	for (i = 0; i < group->size; i++) {
		struct weir_group_peer *peer = &group->peers[i];

		if (!peer->x || !weir_group_is_owed(peer))
			continue;
		if (weir_exchange_process(peer->x))
			return;
		group->fds[count++] = (struct pollfd){ weir_exchange_fd(peer->x), POLLIN, 0 };
	}
	if (ms < 0 || ms > WEIR_EXCHANGE_REST_MS_MAX)
		ms = WEIR_EXCHANGE_REST_MS_MAX;
	poll(group->fds, count, ms);
}

int weir_group_wait(struct weir_group *group, uint64_t timeout_ns)
{
	uint64_t deadline_ns = timeout_ns ? weir_after_ns(weir_now_ns(), timeout_ns) : 0;
	bool moved;

	while (!group->status) {
		moved = false;
		group->status = weir_group_step(group, &moved);
		if (group->status != -EAGAIN)
			break;
		group->status = 0;
		if (moved)
			continue;
		probe_silent_peers(group);
		if (!timeout_ns)
			return -EAGAIN;
		if (weir_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		wait_for_peers(group, deadline_ns);
	}
	return group->status;
}
