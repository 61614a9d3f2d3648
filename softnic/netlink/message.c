// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>

#include "message.h"

void nldev_begin(struct nldev_message *m, const struct nlmsghdr *request)
{
	*nldev_header(m) = (struct nlmsghdr){
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = request->nlmsg_type,
		.nlmsg_flags = request->nlmsg_flags & NLM_F_DUMP ? NLM_F_MULTI : 0,
		.nlmsg_seq = request->nlmsg_seq,
	};
}

static struct nlattr *add(struct nldev_message *m, uint16_t type, const void *value, size_t size)
{
	struct nlmsghdr *h = nldev_header(m);
	struct nlattr *a = (struct nlattr *)(m->bytes + h->nlmsg_len);

	memset(a, 0, NLA_HDRLEN + NLA_ALIGN(size));
	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	if (size)
		memcpy((uint8_t *)a + NLA_HDRLEN, value, size);
	h->nlmsg_len += NLA_HDRLEN + NLA_ALIGN(size);
	return a;
}

void nldev_put(struct nldev_message *m, uint16_t type, const void *value, size_t size)
{
	add(m, type, value, size);
}

void nldev_put_u8(struct nldev_message *m, uint16_t type, uint8_t value)
{
	add(m, type, &value, sizeof(value));
}

void nldev_put_u32(struct nldev_message *m, uint16_t type, uint32_t value)
{
	add(m, type, &value, sizeof(value));
}

void nldev_put_u64(struct nldev_message *m, uint16_t type, uint64_t value)
{
	add(m, type, &value, sizeof(value));
}

void nldev_put_text(struct nldev_message *m, uint16_t type, const char *text)
{
	add(m, type, text, strlen(text) + 1);
}

struct nlattr *nldev_open_nest(struct nldev_message *m, uint16_t type)
{
	return add(m, type | NLA_F_NESTED, NULL, 0);
}

void nldev_close_nest(struct nldev_message *m, struct nlattr *nest)
{
	nest->nla_len = (uint16_t)(m->bytes + nldev_header(m)->nlmsg_len - (uint8_t *)nest);
}

void nldev_put_device(struct nldev_message *m, uint32_t device)
{
	char name[16];

	snprintf(name, sizeof(name), "softnic%u", device);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX, NLDEV_INDEX_FIRST + device);
	nldev_put_text(m, RDMA_NLDEV_ATTR_DEV_NAME, name);
}

uint32_t nldev_asked(const struct nlmsghdr *request, uint16_t type, uint32_t missing)
{
	const uint8_t *at = (const uint8_t *)request + NLMSG_HDRLEN;
	size_t left = request->nlmsg_len - NLMSG_HDRLEN;
	const struct nlattr *a = (const struct nlattr *)at;
	uint32_t value;

	while (left >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= left) {
		if ((a->nla_type & NLA_TYPE_MASK) == type &&
		    a->nla_len == NLA_HDRLEN + sizeof(value)) {
			memcpy(&value, (const uint8_t *)a + NLA_HDRLEN, sizeof(value));
			return value;
		}
		if (NLA_ALIGN((size_t)a->nla_len) >= left)
			break;
		left -= NLA_ALIGN((size_t)a->nla_len);
		a = (const struct nlattr *)((const uint8_t *)a + NLA_ALIGN(a->nla_len));
	}
	return missing;
}
