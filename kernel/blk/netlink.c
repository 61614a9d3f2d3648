// SPDX-License-Identifier: GPL-2.0-only
#include <keys/user-type.h>
#include <linux/in6.h>
#include <linux/key.h>
#include <linux/module.h>
#include <net/genetlink.h>

#include "kernel/blk/device.h"
#include "kernel/blk/netlink.h"
#include "kernel/blk/stat.h"
#include "kernel/weir/weir.h"

static struct genl_family family;

/* The netlink numbers equal the module's own. */
static_assert((int)WEIR_BLK_MERGE == (int)KWEIR_BATCHING_MERGE &&
	      (int)WEIR_BLK_DOORBELL == (int)KWEIR_BATCHING_DOORBELL &&
	      (int)WEIR_BLK_SINGLE == (int)KWEIR_BATCHING_SINGLE &&
	      (int)WEIR_BLK_MR_PRE == (int)KWEIR_MR_PRE);

static const struct nla_policy policy[WEIR_BLK_ATTRIBUTE_MAX + 1] = {
	[WEIR_BLK_NUMBER] = { .type = NLA_U32 },
	[WEIR_BLK_DONORS] = {
		.type = NLA_BINARY,
		.len = WEIR_BLK_DONORS_MAX * sizeof(struct weir_blk_donor),
	},
	[WEIR_BLK_NAME] = { .type = NLA_NUL_STRING, .len = WIRE_CONTROL_NAME_MAX },
	[WEIR_BLK_BYTES] = { .type = NLA_U64 },
	[WEIR_BLK_HAS_KEY] = { .type = NLA_FLAG },
	[WEIR_BLK_CHANNELS] = { .type = NLA_U32 },
	[WEIR_BLK_DEPTH] = { .type = NLA_U32 },
	[WEIR_BLK_TIMEOUT_MS] = { .type = NLA_U32 },
	[WEIR_BLK_WINDOW_BYTES] = { .type = NLA_U64 },
	[WEIR_BLK_POLLING] = { .type = NLA_U32 },
	[WEIR_BLK_REPLICAS] = { .type = NLA_U32 },
	[WEIR_BLK_RESERVE] = { .type = NLA_U64 },
	[WEIR_BLK_BATCHING] = { .type = NLA_U32 },
	[WEIR_BLK_MR] = { .type = NLA_U32 },
	[WEIR_BLK_LOCAL] = { .type = NLA_NUL_STRING, .len = PATH_MAX - 1 },
};

static u32 u32_of(const struct genl_info *info, enum weir_blk_attribute attribute)
{
	return info->attrs[attribute] ? nla_get_u32(info->attrs[attribute]) : 0;
}

static u64 u64_of(const struct genl_info *info, enum weir_blk_attribute attribute)
{
	return info->attrs[attribute] ? nla_get_u64(info->attrs[attribute]) : 0;
}

static int read_donor(const struct weir_blk_donor *from, struct sockaddr_storage *donor,
		      struct kweir_error *error)
{
	memset(donor, 0, sizeof(*donor));
	memcpy(donor, from->address, sizeof(from->address));
	if (donor->ss_family == AF_INET || donor->ss_family == AF_INET6)
		return 0;
	return kweir_fail(error, -EINVAL, "the donor's address is neither IPv4 nor IPv6");
}

static int read_donors(const struct nlattr *attr, struct weir_blk_setup *setup,
		       struct kweir_error *error)
{
	const struct weir_blk_donor *donors = attr ? nla_data(attr) : NULL;
	unsigned int i;
	int rc = 0;

	setup->nr_donors = attr ? nla_len(attr) / sizeof(*donors) : 0;
	for (i = 0; !rc && i < setup->nr_donors; i++)
		rc = read_donor(&donors[i], &setup->donor[i], error);
	return rc;
}

/* The caller owes a key_put(). */
static int read_key(const struct genl_info *info, struct key **key, struct kweir_error *error)
{
	*key = NULL;
	if (!info->attrs[WEIR_BLK_HAS_KEY])
		return 0;
	*key = request_key(&key_type_logon, WEIR_BLK_KEY, NULL);
	if (!IS_ERR(*key))
		return 0;
	return kweir_fail(error, PTR_ERR(*key), "none of your keyrings has a logon key '%s' (%ld)",
			  WEIR_BLK_KEY, PTR_ERR(*key));
}

static int read_setup(const struct genl_info *info, struct weir_blk_setup *setup,
		      struct kweir_error *error)
{
	int rc = read_donors(info->attrs[WEIR_BLK_DONORS], setup, error);

	if (rc)
		return rc;
	if (info->attrs[WEIR_BLK_NAME])
		nla_strscpy(setup->name, info->attrs[WEIR_BLK_NAME], sizeof(setup->name));
	if (info->attrs[WEIR_BLK_LOCAL])
		setup->local = nla_data(info->attrs[WEIR_BLK_LOCAL]);
	setup->bytes = u64_of(info, WEIR_BLK_BYTES);
	setup->reserve_bytes = u64_of(info, WEIR_BLK_RESERVE);
	setup->replicas = u32_of(info, WEIR_BLK_REPLICAS) ?: 1;
	setup->options = (struct kweir_options){
		.channels = u32_of(info, WEIR_BLK_CHANNELS),
		.depth = u32_of(info, WEIR_BLK_DEPTH),
		.timeout_ms = u32_of(info, WEIR_BLK_TIMEOUT_MS),
		.window_bytes = u64_of(info, WEIR_BLK_WINDOW_BYTES),
		.polling = u32_of(info, WEIR_BLK_POLLING),
		.batching = u32_of(info, WEIR_BLK_BATCHING),
		.mr = u32_of(info, WEIR_BLK_MR),
	};
	return read_key(info, &setup->key, error);
}

/* Allocates the reply before any change, so that every change can be reported. */
static struct sk_buff *new_answer(void)
{
	return genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
}

static int send_answer(struct sk_buff *message, struct genl_info *info, int status, u32 number,
		       const struct kweir_error *error)
{
	void *head = genlmsg_put_reply(message, info, &family, 0, info->genlhdr->cmd);

	if (head && !nla_put_s32(message, WEIR_BLK_STATUS, status) &&
	    !nla_put_u32(message, WEIR_BLK_NUMBER, number) &&
	    !nla_put_string(message, WEIR_BLK_TEXT, error->text)) {
		genlmsg_end(message, head);
		return genlmsg_reply(message, info);
	}
	nlmsg_free(message);
	return -EMSGSIZE;
}

/*
 * CAP_NET_ADMIN must not suffice to write to any disk, which --local does, and GENL_ADMIN_PERM
 * checks for no more.
 */
static bool is_administrator(const struct sk_buff *skb)
{
	return netlink_capable(skb, CAP_SYS_ADMIN);
}

static int do_attach(struct sk_buff *skb, struct genl_info *info)
{
	struct weir_blk_setup setup = {};
	struct kweir_error error = {};
	struct sk_buff *message;
	u32 number = 0;
	int rc;

	if (!is_administrator(skb))
		return -EPERM;
	message = new_answer();
	if (!message)
		return -ENOMEM;
	rc = read_setup(info, &setup, &error);
	if (!rc) {
		rc = weir_blk_attach(&setup, &number, &error);
		key_put(setup.key);
	}
	return send_answer(message, info, rc, number, &error);
}

static int do_detach(struct sk_buff *skb, struct genl_info *info)
{
	u32 number = u32_of(info, WEIR_BLK_NUMBER);
	struct kweir_error error = {};
	struct sk_buff *message;

	if (!is_administrator(skb))
		return -EPERM;
	if (GENL_REQ_ATTR_CHECK(info, WEIR_BLK_NUMBER))
		return -EINVAL;
	message = new_answer();
	if (!message)
		return -ENOMEM;
	return send_answer(message, info, weir_blk_detach(number, &error), number, &error);
}

static int do_resize(struct sk_buff *skb, struct genl_info *info)
{
	u32 number = u32_of(info, WEIR_BLK_NUMBER);
	struct kweir_error error = {};
	struct sk_buff *message;
	int rc;

	if (!is_administrator(skb))
		return -EPERM;
	if (GENL_REQ_ATTR_CHECK(info, WEIR_BLK_NUMBER))
		return -EINVAL;
	message = new_answer();
	if (!message)
		return -ENOMEM;
	rc = weir_blk_resize(number, u64_of(info, WEIR_BLK_BYTES), &error);
	return send_answer(message, info, rc, number, &error);
}

/* Translates to include/uapi/weir_blk.h, which does not include weir.h. */
static enum weir_blk_state state_of(enum kweir_session_state state)
{
	switch (state) {
	case KWEIR_SESSION_UP:
		return WEIR_BLK_UP;
	case KWEIR_SESSION_RECONNECTING:
		return WEIR_BLK_RECONNECTING;
	default:
		return WEIR_BLK_LOST;
	}
}

static enum weir_blk_state state_of_all(const struct weir_blk_facts *facts)
{
	unsigned int i;

	if (facts->census.bare)
		return WEIR_BLK_LOST;
	if (facts->census.lean || facts->census.local)
		return WEIR_BLK_DEGRADED;
	for (i = 0; i < facts->nr_donors; i++) {
		if (facts->donor[i].state == KWEIR_SESSION_RECONNECTING)
			return WEIR_BLK_RECONNECTING;
	}
	return WEIR_BLK_UP;
}

/* One donor at a time: an array of all would exceed the stack, which already holds the facts. */
static int put_donors(struct sk_buff *skb, const struct weir_blk_facts *facts)
{
	const size_t bytes = sizeof(struct weir_blk_donor);
	struct nlattr *attr = nla_reserve(skb, WEIR_BLK_DONORS, facts->nr_donors * bytes);
	unsigned int i;

	if (!attr)
		return -EMSGSIZE;
	for (i = 0; i < facts->nr_donors; i++) {
		struct weir_blk_donor donor = {
			.state = state_of(facts->donor[i].state),
			.bytes = facts->donor[i].bytes,
		};

		memcpy(donor.address, &facts->donor[i].address, sizeof(donor.address));
		memcpy(nla_data(attr) + i * bytes, &donor, bytes); /* the attribute may be unaligned
								    */
	}
	return 0;
}

/* Only an administrator learns where the data are, and under which name. */
static int put_facts(struct sk_buff *skb, struct weir_blk *blk, bool is_admin)
{
	struct weir_blk_facts facts;
	u64 counters[WEIR_BLK_COUNTERS_NR];

	weir_blk_volume_facts(&blk->volume, &facts);
	if (is_admin &&
	    (put_donors(skb, &facts) || nla_put_string(skb, WEIR_BLK_NAME, blk->volume.name)))
		return -EMSGSIZE;
	if (nla_put_u32(skb, WEIR_BLK_NUMBER, blk->number) ||
	    nla_put_u64_64bit(skb, WEIR_BLK_BYTES, blk->volume.bytes, WEIR_BLK_PAD) ||
	    nla_put_u32(skb, WEIR_BLK_REPLICAS, blk->volume.core.replicas) ||
	    nla_put_u32(skb, WEIR_BLK_STATE, state_of_all(&facts)) ||
	    nla_put_u32(skb, WEIR_BLK_OPENERS, disk_openers(blk->disk)))
		return -EMSGSIZE;
	weir_blk_counters(&facts, counters);
	return nla_put(skb, WEIR_BLK_COUNTERS, sizeof(counters), counters);
}

struct dump {
	struct sk_buff *skb;
	struct netlink_callback *callback;
};

/* args[0]: the next number. */
static int dump_device(struct weir_blk *blk, void *arg)
{
	struct netlink_callback *callback = ((struct dump *)arg)->callback;
	struct sk_buff *skb = ((struct dump *)arg)->skb;
	void *head = genlmsg_put(skb, NETLINK_CB(callback->skb).portid, callback->nlh->nlmsg_seq,
				 &family, NLM_F_MULTI, WEIR_BLK_LIST);

	if (!head)
		return -EMSGSIZE;
	if (put_facts(skb, blk, is_administrator(callback->skb))) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	callback->args[0] = blk->number + 1;
	return 0;
}

static int dump_devices(struct sk_buff *skb, struct netlink_callback *callback)
{
	struct dump dump = { skb, callback };

	weir_blk_for_each(callback->args[0], dump_device, &dump);
	return skb->len;
}

static const struct genl_small_ops small_ops[] = {
	{ .cmd = WEIR_BLK_ATTACH, .doit = do_attach, .flags = GENL_ADMIN_PERM },
	{ .cmd = WEIR_BLK_DETACH, .doit = do_detach, .flags = GENL_ADMIN_PERM },
	{ .cmd = WEIR_BLK_LIST, .dumpit = dump_devices },
	{ .cmd = WEIR_BLK_RESIZE, .doit = do_resize, .flags = GENL_ADMIN_PERM },
};

/*
 * Attaching may take long; with parallel_ops other generic netlink requests go on meanwhile. But
 * genl_rcv() holds cb_lock for reading during the call. Registering or unregistering a family waits
 * for this call to end, and later requests wait behind the registration.
 */
static struct genl_family family = {
	.name = WEIR_BLK_FAMILY,
	.version = WEIR_BLK_VERSION,
	.maxattr = WEIR_BLK_ATTRIBUTE_MAX,
	.policy = policy,
	.small_ops = small_ops,
	.n_small_ops = ARRAY_SIZE(small_ops),
	.resv_start_op = WEIR_BLK_RESIZE + 1,
	.parallel_ops = true,
	.module = THIS_MODULE,
};

int weir_blk_netlink_init(void)
{
	return genl_register_family(&family);
}

void weir_blk_netlink_exit(void)
{
	genl_unregister_family(&family);
}
