/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Talks to the module about the device. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/blk/agent/internal.h"

size_t blk_agent_read_list(const struct nlattr *attr, void *to, size_t size, size_t bytes)
{
	size_t length = attr ? mnl_attr_get_payload_len(attr) : 0;

	if (length > size)
		length = size;
	if (length)
		memcpy(to, mnl_attr_get_payload(attr), length);
	return length / bytes;
}

static void on_look(const struct nlattr *const *attrs, void *arg)
{
	struct blk_look *look = arg;
	const struct nlattr *text = attrs[WEIR_BLK_TEXT];

	look->status = attrs[WEIR_BLK_STATUS] ? (int)mnl_attr_get_u32(attrs[WEIR_BLK_STATUS]) :
						-EPROTO;
	if (text)
		snprintf(look->text, sizeof(look->text), "%s", mnl_attr_get_str(text));
	if (attrs[WEIR_BLK_LOOK_FLAGS])
		look->flags = mnl_attr_get_u32(attrs[WEIR_BLK_LOOK_FLAGS]);
	if (attrs[WEIR_BLK_PERCENT])
		look->percent = mnl_attr_get_u32(attrs[WEIR_BLK_PERCENT]);
	if (attrs[WEIR_BLK_PROOF])
		look->proof = mnl_attr_get_u64(attrs[WEIR_BLK_PROOF]);
	if (attrs[WEIR_BLK_COPIED])
		look->copied = mnl_attr_get_u64(attrs[WEIR_BLK_COPIED]);
	look->nr_failed = blk_agent_read_list(attrs[WEIR_BLK_FAILED], look->failed,
					      sizeof(look->failed), sizeof(look->failed[0]));
	look->nr_ready = blk_agent_read_list(attrs[WEIR_BLK_READY], look->ready,
					     sizeof(look->ready), sizeof(look->ready[0]));
}

/* Begins a message about the device. */
static struct nlmsghdr *begin_message(const struct blk_agent *a, struct blk_netlink *talk,
				      enum weir_blk_command command)
{
	struct nlmsghdr *message = blk_netlink_message(talk, command, 0);

	mnl_attr_put_u32(message, WEIR_BLK_NUMBER, a->number);
	mnl_attr_put(message, WEIR_BLK_LAYOUT, sizeof(a->layout), &a->layout);
	return message;
}

int blk_agent_look(struct blk_agent *a, struct blk_netlink *talk, struct blk_look *look)
{
	struct nlmsghdr *message = begin_message(a, talk, WEIR_BLK_LOOK);
	int rc;

	*look = (struct blk_look){ .status = -EPROTO };
	rc = blk_netlink_ask(talk, message, on_look, look);
	return rc ? rc : look->status;
}

int blk_agent_send_map(struct blk_agent *a, struct blk_netlink *talk, uint32_t flags,
		       uint64_t proof)
{
	struct nlmsghdr *message = begin_message(a, talk, WEIR_BLK_MAP);
	struct blk_look answer = { .status = -EPROTO };
	int rc;

	pthread_mutex_lock(&a->lock);
	flags |= a->kept.claim.was_blank ? WEIR_BLK_MAP_BLANK : 0;
	flags |= a->is_over ? WEIR_BLK_MAP_OVER : 0;
	mnl_attr_put(message, WEIR_BLK_POOL_DONORS, a->out->nr_donors * sizeof(a->out->donor[0]),
		     a->out->donor);
	mnl_attr_put(message, WEIR_BLK_MEMBERS, a->out->nr_members * sizeof(a->out->member[0]),
		     a->out->member);
	mnl_attr_put_u32(message, WEIR_BLK_MAP_FLAGS, flags);
	mnl_attr_put_u64(message, WEIR_BLK_PROOF, proof);
	mnl_attr_put(message, WEIR_BLK_AGENT, sizeof(a->kept), &a->kept);
	rc = blk_netlink_ask(talk, message, on_look, &answer);
	pthread_mutex_unlock(&a->lock);
	return rc ? rc : answer.status;
}

void blk_agent_detach(struct blk_agent *a)
{
	struct nlmsghdr *message = blk_netlink_message(&a->talk, WEIR_BLK_DETACH, 0);
	struct blk_look answer;

	mnl_attr_put_u32(message, WEIR_BLK_NUMBER, a->number);
	(void)blk_netlink_ask(&a->talk, message, on_look, &answer);
}

int blk_agent_send_start(struct blk_agent *a)
{
	struct nlmsghdr *message = begin_message(a, &a->talk, WEIR_BLK_START);

	return blk_netlink_change(&a->talk, a->cmd, message, NULL);
}
