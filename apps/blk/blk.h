/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir blk: block devices in donors' memory, made by weir_blk.ko. */
#ifndef WEIR_APPS_BLK_BLK_H
#define WEIR_APPS_BLK_BLK_H

#include "include/uapi/weir_blk.h"

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

/* The commands. argv[0] is the command's name for getopt. Return: an exit status. */
int blk_attach(const char *cmd, int argc, char **argv);
int blk_agent(const char *cmd, int argc, char **argv);
int blk_list(const char *cmd, int argc, char **argv);
int blk_stat(const char *cmd, int argc, char **argv);

/* Parses "0", "weir0" or "/dev/weir0". Return: 0, or EXIT_USAGE after a message. */
int blk_parse_device(const char *cmd, const char *text, uint32_t *number);

/**
 * struct blk_netlink - a connection to the module; all zero: not open
 * @socket: the netlink socket
 * @family: the module's message type; @news: its multicast group, or 0
 * @sequence: of the last message sent
 * @message: the message being built
 */
struct blk_netlink {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t news, sequence;
	char message[72 * 1024]; /* a map is the longest */
};

/*
 * Opens without a message to people. The caller owes blk_netlink_close() in any case. Return: 0;
 * -ENOENT the module is not loaded; errors of netlink.
 */
int blk_netlink_try(struct blk_netlink *talk);

/* On failure prints the reason. Return: 0 or EXIT_FAILED. */
int blk_netlink_open(struct blk_netlink *talk, const char *cmd);
void blk_netlink_close(struct blk_netlink *talk);

/*
 * From now on the connection only hears of news. Return: whether it does: an older module tells
 * none.
 */
bool blk_netlink_hear(struct blk_netlink *talk);

/* Waits for news, or a signal. Context: only after blk_netlink_hear(). */
void blk_netlink_await_news(const struct blk_netlink *talk, unsigned int timeout_ms);

/* Begins a message, to be filled with attributes. Only a dump has several replies. */
struct nlmsghdr *blk_netlink_message(struct blk_netlink *talk, enum weir_blk_command command,
				     uint16_t flags);

/* As blk_netlink_request(), without a message to people. Return: 0 or a negative errno. */
int blk_netlink_ask(struct blk_netlink *talk, struct nlmsghdr *message,
		    void (*heard)(const struct nlattr *const *attrs, void *arg), void *arg);

/**
 * blk_netlink_request() - send a message and handle each reply
 * @heard: called with a reply's attributes, indexed by number; NULL for absent attributes
 *
 * On failure prints the reason.
 *
 * Return: 0 or EXIT_FAILED.
 */
int blk_netlink_request(struct blk_netlink *talk, const char *cmd, struct nlmsghdr *message,
			void (*heard)(const struct nlattr *const *attrs, void *arg), void *arg);

/* The same for ATTACH, DETACH and RESIZE. @number: receives the device's number; may be NULL. */
int blk_netlink_change(struct blk_netlink *talk, const char *cmd, struct nlmsghdr *message,
		       uint32_t *number);

#endif
