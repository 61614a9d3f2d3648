/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers requests of the protocol NETLINK_RDMA: each goes to the kernel first, and softnic's
 * devices follow. The caller does the sending and receiving.
 */
#ifndef WEIR_SOFTNIC_NETLINK_SERVE_H
#define WEIR_SOFTNIC_NETLINK_SERVE_H

#include <linux/netlink.h>
#include <stddef.h>
#include <sys/types.h>

/* A message of the kernel to this process has at most so many bytes. */
enum { NETLINK_REPLY_MAX = 1 << 15 };

struct netlink_ends {
	/* Ask the kernel: 0, or a negative errno, -EPROTONOSUPPORT if the kernel has no RDMA. */
	int (*ask)(void *arg, const struct nlmsghdr *request);
	/* The kernel's next messages, aligned: their bytes, 0 if none is ready, negative errno. */
	ssize_t (*hear)(void *arg, void *bytes, size_t size);
	/* Hand a message to the program: 0 or a negative errno, after which no message follows. */
	int (*deliver)(void *arg, const struct nlmsghdr *message);
	void *arg;
};

/**
 * netlink_serve() - answer requests of a program
 * @requests: messages one after the other, aligned as struct nlmsghdr; may be malformed
 * @size: bytes of @requests
 *
 * Return: 0, or the first error of deliver().
 */
int netlink_serve(const struct netlink_ends *ends, const void *requests, size_t size);

#endif
