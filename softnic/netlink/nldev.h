/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's answers about RDMA devices over netlink (RDMA_NL_NLDEV), for softnic's devices:
 * devices, ports, sums of objects, and counters. rdma(8) asks for them.
 */
#ifndef WEIR_SOFTNIC_NETLINK_NLDEV_H
#define WEIR_SOFTNIC_NETLINK_NLDEV_H

#include <linux/netlink.h>
#include <stdbool.h>

/* One message at most. libmnl's readers have room for 8 KiB. */
enum { NLDEV_MESSAGE_MAX = 4096 };

/* The kernel numbers its devices from 0, and never uses a number again. */
enum { NLDEV_INDEX_FIRST = 1000 };

/* Takes each message of an answer, in order. */
typedef void nldev_sink(void *arg, const struct nlmsghdr *message);

/** nldev_is_about_ours() - does a request name one of softnic's devices? */
bool nldev_is_about_ours(const struct nlmsghdr *request);

/**
 * nldev_answer() - answer a request, without the acknowledgement
 * @request: a whole message of the type RDMA_NL_NLDEV
 *
 * A dump has a message for each device or port.
 *
 * Return: 0, or a negative errno: -EOPNOTSUPP for what softnic does not tell, -ENODEV.
 */
int nldev_answer(const struct nlmsghdr *request, nldev_sink *sink, void *arg);

#endif
