/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Single objects of the running programs, over netlink: queue pairs, memory regions and contexts,
 * of this user. rdma(8) prints the lists: `rdma res show qp`.
 */
#ifndef WEIR_SOFTNIC_NETLINK_OBJECTS_H
#define WEIR_SOFTNIC_NETLINK_OBJECTS_H

#include "nldev.h"

/** objects_are_asked() - does a command of RDMA_NL_NLDEV ask for a list of softnic's? */
bool objects_are_asked(uint32_t command);

/**
 * objects_answer() - answer such a request: a dump, or a request for a single object
 *
 * Return: 0, -ENODEV if the device is not softnic's, -EINVAL if a request for a single object
 * has no number, -ENOENT if the object does not exist.
 */
int objects_answer(const struct nlmsghdr *request, nldev_sink *sink, void *arg);

#endif
