/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of the running programs of this user, over netlink. rdma(8) prints the lists, such
 * as `rdma res show qp`, and the sums, `rdma res`.
 */
#ifndef WEIR_SOFTNIC_NETLINK_OBJECTS_H
#define WEIR_SOFTNIC_NETLINK_OBJECTS_H

#include <stdint.h>

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

struct object_sums {
	uint64_t pd, cq, qp, cm_id, mr, ctx, srq;
};

/** objects_sum() - count the objects of a device; asks each process once; 0 or a negative errno */
int objects_sum(uint32_t device, struct object_sums *sums);

#endif
