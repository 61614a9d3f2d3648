/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's module, or an older or newer one, answers 'weir blk' with arbitrary messages. The
 * command reads nothing beyond them, and ends.
 *
 * The input is a list of messages: a byte with flags, one with the length.
 */
#include <assert.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>

#include "apps/blk/blk.h"
#include "apps/common/cmd.h"

#define FAMILY 31
#define IS_RAW 1
#define ENDS 2
#define IS_ERROR 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *at;
	size_t left;
	uint32_t sequence;
} kernel;

/* ---- in place of the socket and of messages to people ---- */

struct mnl_socket *mnl_socket_open(int bus)
{
	assert(bus == NETLINK_GENERIC);
	return (struct mnl_socket *)&kernel;
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
	(void)socket;
	return 0;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *socket)
{
	(void)socket;
	return 7;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *socket, const void *message, size_t length)
{
	(void)socket;
	assert(length <= sizeof(((struct blk_netlink *)0)->message));
	kernel.sequence = ((const struct nlmsghdr *)message)->nlmsg_seq;
	return (ssize_t)length;
}

int failure(const char *cmd, const char *format, ...)
{
	assert(cmd && format);
	return EXIT_FAILED;
}

/* Attributes with lengths that fit most of the time. */
static void add_attributes(struct nlmsghdr *message, const uint8_t *bytes, size_t length)
{
	while (length >= 2) {
		uint16_t type = bytes[0] % (WEIR_BLK_ATTRIBUTE_MAX + 3), wanted = bytes[1] % 64;
		uint16_t part = wanted < length - 2 ? wanted : (uint16_t)(length - 2);

		mnl_attr_put(message, type, part, bytes + 2);
		bytes += 2 + part;
		length -= 2u + part;
	}
}

static size_t make_message(char *to, const uint8_t *bytes, size_t length, uint8_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(to);
	int error;

	message->nlmsg_seq = kernel.sequence;
	message->nlmsg_pid = 7;
	message->nlmsg_type = flags & IS_ERROR ? NLMSG_ERROR : FAMILY;
	if (flags & IS_ERROR) {
		error = length ? -(int)bytes[0] : 0;
		memcpy(mnl_nlmsg_put_extra_header(message, sizeof(struct nlmsgerr)), &error,
		       sizeof(error));
		return message->nlmsg_len;
	}
	if (flags & ENDS)
		message->nlmsg_type = NLMSG_DONE;
	mnl_nlmsg_put_extra_header(message, sizeof(struct genlmsghdr));
	add_attributes(message, bytes, length);
	return message->nlmsg_len;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *socket, void *buffer, size_t room)
{
	static _Alignas(struct nlmsghdr) char message[4096];
	const uint8_t *bytes = kernel.at + 2;
	size_t length, taken;
	uint8_t flags;

	(void)socket;
	if (kernel.left < 2) {
		errno = ENOBUFS;
		return -1;
	}
	flags = kernel.at[0];
	length = taken = kernel.at[1] < kernel.left - 2 ? kernel.at[1] : kernel.left - 2;
	memset(message, 0, sizeof(message));
	if (flags & IS_RAW) { /* but for the length, which the kernel's core writes */
		memcpy(message, bytes, length);
		((struct nlmsghdr *)message)->nlmsg_len = (uint32_t)length;
	} else {
		length = make_message(message, bytes, length, flags);
	}
	kernel.at += 2 + taken;
	kernel.left -= 2 + taken;
	assert(length <= room);
	memcpy(buffer, message, length);
	return (ssize_t)length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blk_netlink talk = { 0 };
	uint32_t number;

	kernel.at = data;
	kernel.left = size;
	blk_netlink_open(&talk, "weir blk");
	talk.family = FAMILY; /* whatever the answer was */
	blk_netlink_change(&talk, "weir blk", blk_netlink_message(&talk, WEIR_BLK_DETACH, 0),
			   &number);
	blk_netlink_close(&talk);
	return 0;
}
