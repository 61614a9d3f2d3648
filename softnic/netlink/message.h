/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of RDMA_NL_NLDEV, attribute by attribute.
 */
#ifndef WEIR_SOFTNIC_NETLINK_MESSAGE_H
#define WEIR_SOFTNIC_NETLINK_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "nldev.h"

/* A growing message. The caller adds no more attributes than NLDEV_MESSAGE_MAX has room for. */
struct nldev_message {
	_Alignas(struct nlmsghdr) uint8_t bytes[NLDEV_MESSAGE_MAX];
};

static inline struct nlmsghdr *nldev_header(struct nldev_message *m)
{
	return (struct nlmsghdr *)m->bytes;
}

/** nldev_begin() - begin an answer to @request */
void nldev_begin(struct nldev_message *m, const struct nlmsghdr *request);

void nldev_put(struct nldev_message *m, uint16_t type, const void *value, size_t size);
void nldev_put_u8(struct nldev_message *m, uint16_t type, uint8_t value);
void nldev_put_u32(struct nldev_message *m, uint16_t type, uint32_t value);
void nldev_put_u64(struct nldev_message *m, uint16_t type, uint64_t value);
void nldev_put_text(struct nldev_message *m, uint16_t type, const char *text);

/** nldev_open_nest() - put the following attributes into a nest, until nldev_close_nest() */
struct nlattr *nldev_open_nest(struct nldev_message *m, uint16_t type);
void nldev_close_nest(struct nldev_message *m, struct nlattr *nest);

/** nldev_put_device() - put the index and the name of a device of softnic */
void nldev_put_device(struct nldev_message *m, uint32_t device);

/** nldev_asked() - the value of a number among a request's attributes, or @missing */
uint32_t nldev_asked(const struct nlmsghdr *request, uint16_t type, uint32_t missing);

#endif
