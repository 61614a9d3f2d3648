/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stands in for weir_blk.ko: preloaded into 'weir blk', answers in the place of a netlink socket.
 * The state of the only device is in the file $WEIR_TEST_MODULE, which all processes and the test
 * share. Regions are open at once, and copies are filled at once. A write to the file is news.
 */
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "include/uapi/weir_blk.h"

#define FAMILY 31
#define NEWS 8
#define PORT 7
#define MOVES 5

/* The test reads and writes the first six, as native integers of 64 bits. */
struct fake_module {
	uint64_t maps; /* received since ATTACH */
	uint64_t failed; /* the incarnation of a donor that does not answer */
	uint64_t is_unproven; /* pieces without data need a proof */
	uint64_t is_over;
	uint64_t is_started;
	uint64_t is_filling; /* the copies are not equal yet */
	uint64_t bytes;
	uint32_t is_attached, nr_members, agent_bytes;
	struct weir_blk_layout layout;
	char pool[WEIR_BLK_POOL_MAX + 1];
	uint8_t agent[WEIR_BLK_AGENT_MAX];
	struct weir_blk_member member[WEIR_BLK_MEMBERS_MAX];
};

struct mnl_socket {
	int news; /* wakes a listener */
	char reply[16384];
	size_t length;
	const struct nlattr *attrs[WEIR_BLK_ATTRIBUTE_MAX + 1];
};

static struct fake_module *fake;

struct mnl_socket *mnl_socket_open(int bus)
{
	int file = open(getenv("WEIR_TEST_MODULE"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct mnl_socket *socket;

	(void)bus;
	if (file < 0 || ftruncate(file, sizeof(*fake)))
		abort();
	fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (fake == MAP_FAILED)
		return NULL;
	socket = calloc(1, sizeof(*socket));
	if (socket)
		socket->news = inotify_init1(IN_CLOEXEC);
	return socket;
}

int mnl_socket_get_fd(const struct mnl_socket *socket)
{
	return socket->news;
}

int mnl_socket_setsockopt(const struct mnl_socket *socket, int type, void *group, socklen_t size)
{
	(void)size;
	if (type != NETLINK_ADD_MEMBERSHIP || *(const uint32_t *)group != NEWS)
		abort();
	return inotify_add_watch(socket->news, getenv("WEIR_TEST_MODULE"), IN_MODIFY) < 0;
}

/* As a write by the test does. */
static void tell_listeners(void)
{
	if (truncate(getenv("WEIR_TEST_MODULE"), sizeof(*fake)))
		abort();
}

int mnl_socket_bind(struct mnl_socket *socket, unsigned int groups, pid_t pid)
{
	(void)socket;
	(void)groups;
	(void)pid;
	return 0;
}

int mnl_socket_close(struct mnl_socket *socket)
{
	close(socket->news);
	free(socket);
	return 0;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *socket)
{
	(void)socket;
	return PORT;
}

static struct nlmsghdr *begin(struct mnl_socket *socket, const struct nlmsghdr *request,
			      uint16_t type, uint16_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(socket->reply + socket->length);

	message->nlmsg_type = type;
	message->nlmsg_flags = flags;
	message->nlmsg_seq = request->nlmsg_seq;
	message->nlmsg_pid = PORT;
	return message;
}

static struct nlmsghdr *begin_generic(struct mnl_socket *socket, const struct nlmsghdr *request,
				      uint16_t flags)
{
	struct nlmsghdr *message = begin(socket, request, request->nlmsg_type, flags);

	mnl_nlmsg_put_extra_header(message, sizeof(struct genlmsghdr));
	return message;
}

static void finish(struct mnl_socket *socket, const struct nlmsghdr *message)
{
	socket->length += MNL_ALIGN(message->nlmsg_len);
}

static void acknowledge(struct mnl_socket *socket, const struct nlmsghdr *request, uint16_t type)
{
	struct nlmsghdr *message = begin(socket, request, type, 0);

	mnl_nlmsg_put_extra_header(message, sizeof(struct nlmsgerr));
	finish(socket, message);
}

static int note(const struct nlattr *attr, void *arg)
{
	struct mnl_socket *socket = arg;

	if (mnl_attr_get_type(attr) <= WEIR_BLK_ATTRIBUTE_MAX)
		socket->attrs[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static void keep_agent(const struct nlattr *attr)
{
	fake->agent_bytes = mnl_attr_get_payload_len(attr);
	memcpy(fake->agent, mnl_attr_get_payload(attr), fake->agent_bytes);
}

static int attach(const struct nlattr *const *attrs)
{
	fake->is_attached = true;
	fake->maps = fake->failed = fake->is_over = fake->is_started = 0;
	fake->bytes = mnl_attr_get_u64(attrs[WEIR_BLK_BYTES]);
	snprintf(fake->pool, sizeof(fake->pool), "%s", mnl_attr_get_str(attrs[WEIR_BLK_POOL]));
	memcpy(&fake->layout, mnl_attr_get_payload(attrs[WEIR_BLK_LAYOUT]), sizeof(fake->layout));
	keep_agent(attrs[WEIR_BLK_AGENT]);
	return 0;
}

static int take_map(const struct nlattr *const *attrs)
{
	uint32_t flags = mnl_attr_get_u32(attrs[WEIR_BLK_MAP_FLAGS]);
	const struct nlattr *members = attrs[WEIR_BLK_MEMBERS];

	fake->maps++;
	fake->is_over |= flags & WEIR_BLK_MAP_OVER;
	if (flags & WEIR_BLK_MAP_PROVEN && mnl_attr_get_u64(attrs[WEIR_BLK_PROOF]) == MOVES)
		fake->is_unproven = 0;
	fake->nr_members = mnl_attr_get_payload_len(members) / sizeof(fake->member[0]);
	memcpy(fake->member, mnl_attr_get_payload(members), mnl_attr_get_payload_len(members));
	keep_agent(attrs[WEIR_BLK_AGENT]);
	return 0;
}

static void put_look(struct nlmsghdr *message)
{
	struct weir_blk_ready ready[WEIR_BLK_READY_MAX] = { 0 };
	uint32_t flags = 0, count = 0;

	if (fake->is_unproven)
		flags |= WEIR_BLK_LOOK_UNPROVEN;
	else if (fake->maps && !fake->is_filling)
		flags |= WEIR_BLK_LOOK_EQUAL;
	if (fake->is_over)
		flags |= WEIR_BLK_LOOK_OVER;
	for (uint32_t i = 0; i < fake->nr_members && count < WEIR_BLK_READY_MAX; i++) {
		if (!(fake->member[i].flags & WEIR_BLK_MEMBER_SERVES))
			ready[count++] = (struct weir_blk_ready){ .joined = fake->member[i].joined,
								  .group = fake->member[i].group };
	}
	mnl_attr_put_u32(message, WEIR_BLK_LOOK_FLAGS, flags);
	mnl_attr_put_u32(message, WEIR_BLK_PERCENT, 100);
	mnl_attr_put_u64(message, WEIR_BLK_PROOF, MOVES);
	mnl_attr_put(message, WEIR_BLK_FAILED, fake->failed ? sizeof(fake->failed) : 0,
		     &fake->failed);
	mnl_attr_put(message, WEIR_BLK_READY, count * sizeof(ready[0]), ready);
}

/* DETACH is by number only. */
static bool is_same(const struct nlattr *layout)
{
	return !layout ||
	       !memcmp(mnl_attr_get_payload(layout), &fake->layout, sizeof(fake->layout));
}

static int change(uint8_t command, const struct nlattr *const *attrs)
{
	if (command == WEIR_BLK_ATTACH)
		return attach(attrs);
	if (!fake->is_attached || !is_same(attrs[WEIR_BLK_LAYOUT]))
		return -ENODEV;
	if (command == WEIR_BLK_MAP)
		return take_map(attrs);
	fake->is_attached = command != WEIR_BLK_DETACH;
	fake->is_started |= command == WEIR_BLK_START;
	if (command == WEIR_BLK_DETACH)
		tell_listeners();
	return 0;
}

static void list(struct mnl_socket *socket, const struct nlmsghdr *request)
{
	uint64_t counters[WEIR_BLK_COUNTERS_NR];
	struct nlmsghdr *message;

	for (unsigned int i = 0; i < WEIR_BLK_COUNTERS_NR; i++)
		counters[i] = 100 + i;
	if (fake->is_attached) {
		message = begin_generic(socket, request, NLM_F_MULTI);
		mnl_attr_put_u32(message, WEIR_BLK_NUMBER, 0);
		mnl_attr_put_u64(message, WEIR_BLK_BYTES, fake->bytes);
		mnl_attr_put_strz(message, WEIR_BLK_POOL, fake->pool);
		mnl_attr_put(message, WEIR_BLK_COUNTERS, sizeof(counters), counters);
		mnl_attr_put(message, WEIR_BLK_LAYOUT, sizeof(fake->layout), &fake->layout);
		mnl_attr_put(message, WEIR_BLK_AGENT, fake->agent_bytes, fake->agent);
		finish(socket, message);
	}
	acknowledge(socket, request, NLMSG_DONE);
}

static void find_family(struct mnl_socket *socket, const struct nlmsghdr *request)
{
	struct nlmsghdr *message = begin_generic(socket, request, 0);
	struct nlattr *groups, *group;

	mnl_attr_put_u16(message, CTRL_ATTR_FAMILY_ID, FAMILY);
	groups = mnl_attr_nest_start(message, CTRL_ATTR_MCAST_GROUPS);
	group = mnl_attr_nest_start(message, 1);
	mnl_attr_put_strz(message, CTRL_ATTR_MCAST_GRP_NAME, WEIR_BLK_NEWS_GROUP);
	mnl_attr_put_u32(message, CTRL_ATTR_MCAST_GRP_ID, NEWS);
	mnl_attr_nest_end(message, group);
	mnl_attr_nest_end(message, groups);
	finish(socket, message);
	acknowledge(socket, request, NLMSG_ERROR);
}

static void answer(struct mnl_socket *socket, const struct nlmsghdr *request, uint8_t command)
{
	struct nlmsghdr *message;
	int status;

	memset(socket->attrs, 0, sizeof(socket->attrs));
	mnl_attr_parse(request, sizeof(struct genlmsghdr), note, socket);
	status = change(command, socket->attrs);
	message = begin_generic(socket, request, 0);
	if (!status && command == WEIR_BLK_LOOK)
		put_look(message);
	mnl_attr_put_u32(message, WEIR_BLK_STATUS, (uint32_t)status);
	mnl_attr_put_u32(message, WEIR_BLK_NUMBER, 0);
	mnl_attr_put_strz(message, WEIR_BLK_TEXT, "");
	finish(socket, message);
	acknowledge(socket, request, NLMSG_ERROR);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *to, const void *data, size_t length)
{
	struct mnl_socket *socket = (struct mnl_socket *)(uintptr_t)to;
	const struct nlmsghdr *request = data;
	const struct genlmsghdr *head = mnl_nlmsg_get_payload(request);

	socket->length = 0;
	if (request->nlmsg_type == GENL_ID_CTRL)
		find_family(socket, request);
	else if (head->cmd == WEIR_BLK_LIST)
		list(socket, request);
	else
		answer(socket, request, head->cmd);
	return (ssize_t)length;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *socket, void *buffer, size_t size)
{
	if (socket->length > size)
		abort();
	memcpy(buffer, socket->reply, socket->length);
	return (ssize_t)socket->length;
}
