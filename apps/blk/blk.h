/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir blk: block devices of donors' memory, which weir_blk.ko makes. */
#ifndef WEIR_APPS_BLK_H
#define WEIR_APPS_BLK_H

#include "include/uapi/weir_blk.h"

#include <libmnl/libmnl.h>
#include <stdint.h>

/* Each of what follows has getopt at its first argument. Return: an exit status. */
int blk_attach(const char *cmd, int argc, char **argv);
int blk_list(const char *cmd, int argc, char **argv);
int blk_stat(const char *cmd, int argc, char **argv);

/* "0", "weir0", "/dev/weir0". Return: 0, or EXIT_USAGE, said. */
int blk_parse_device(const char *cmd, const char *text, uint32_t *number);

/**
 * struct blk_netlink - a conversation with the module; zeroed, blk_netlink_close() does nothing
 * @family: of its messages
 */
struct blk_netlink {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t sequence;
	char message[4096];
};

/* Says on standard error why it cannot. Return: 0 or EXIT_FAILED. */
int blk_netlink_open(struct blk_netlink *talk, const char *cmd);
void blk_netlink_close(struct blk_netlink *talk);

/* A message to be filled with attributes; of the answers only a dump has several. */
struct nlmsghdr *blk_netlink_message(struct blk_netlink *talk, enum weir_blk_command command,
				     uint16_t flags);

/**
 * blk_netlink_request() - send what was written, and hear each answer
 * @heard: called with the attributes of each, by their number; NULL: it is not there
 *
 * Says on standard error what went wrong. Return: 0 or EXIT_FAILED.
 */
int blk_netlink_request(struct blk_netlink *talk, const char *cmd, struct nlmsghdr *message,
			void (*heard)(const struct nlattr *const *attrs, void *arg), void *arg);

/* The same for an ATTACH or DETACH. @number: receives that of the device; may be NULL. */
int blk_netlink_change(struct blk_netlink *talk, const char *cmd, struct nlmsghdr *message,
		       uint32_t *number);

#endif
