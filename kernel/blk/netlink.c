// SPDX-License-Identifier: GPL-2.0-only
#include <keys/user-type.h>
#include <linux/in6.h>
#include <linux/key.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "kernel/blk/device.h"
#include "kernel/blk/netlink.h"
#include "kernel/blk/pool/pool.h"
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
	[WEIR_BLK_ENCRYPT] = { .type = NLA_FLAG },
	[WEIR_BLK_POOL] = { .type = NLA_NUL_STRING, .len = WEIR_BLK_POOL_MAX },
	[WEIR_BLK_LAYOUT] = NLA_POLICY_EXACT_LEN(sizeof(struct weir_blk_layout)),
	[WEIR_BLK_GROUPS] = { .type = NLA_BINARY, .len = WEIR_BLK_EXTENTS_MAX * sizeof(u16) },
	[WEIR_BLK_POOL_DONORS] = {
		.type = NLA_BINARY,
		.len = WEIR_BLK_POOL_DONORS_MAX * sizeof(struct weir_blk_pool_donor),
	},
	[WEIR_BLK_MEMBERS] = {
		.type = NLA_BINARY,
		.len = WEIR_BLK_MEMBERS_MAX * sizeof(struct weir_blk_member),
	},
	[WEIR_BLK_MAP_FLAGS] = { .type = NLA_U32 },
	[WEIR_BLK_PROOF] = { .type = NLA_U64 },
	[WEIR_BLK_AGENT] = { .type = NLA_BINARY, .len = WEIR_BLK_AGENT_MAX },
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

/* An attribute that is a list. The message is aligned for 32 bits only: copy before use. */
static u32 count_of(const struct nlattr *attr, size_t bytes)
{
	return attr ? nla_len(attr) / bytes : 0;
}

static u32 read_agent(const struct genl_info *info, u8 *agent)
{
	const struct nlattr *attr = info->attrs[WEIR_BLK_AGENT];

	if (attr)
		memcpy(agent, nla_data(attr), nla_len(attr));
	return attr ? nla_len(attr) : 0;
}

static int read_pool(const struct genl_info *info, struct weir_blk_pool_setup *pool,
		     struct kweir_error *error)
{
	if (!info->attrs[WEIR_BLK_LAYOUT] || !info->attrs[WEIR_BLK_GROUPS])
		return kweir_fail(error, -EINVAL, "a pool's volume needs a layout");
	nla_strscpy(pool->name, info->attrs[WEIR_BLK_POOL], sizeof(pool->name));
	memcpy(&pool->layout, nla_data(info->attrs[WEIR_BLK_LAYOUT]), sizeof(pool->layout));
	pool->group_of = nla_data(info->attrs[WEIR_BLK_GROUPS]);
	pool->nr_extents = count_of(info->attrs[WEIR_BLK_GROUPS], sizeof(u16));
	pool->agent_bytes = read_agent(info, pool->agent);
	return 0;
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
	setup->encrypt = info->attrs[WEIR_BLK_ENCRYPT];
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

/* Too large for the stack. */
struct attachment {
	struct weir_blk_setup setup;
	struct weir_blk_pool_setup pool;
};

static int attach(struct genl_info *info, u32 *number, struct kweir_error *error)
{
	struct attachment *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int rc = 0;

	if (!a)
		return kweir_fail(error, -ENOMEM, "out of memory");
	if (info->attrs[WEIR_BLK_POOL]) {
		a->setup.pool = &a->pool;
		rc = read_pool(info, &a->pool, error);
	}
	if (!rc)
		rc = read_setup(info, &a->setup, error);
	if (!rc) {
		rc = weir_blk_attach(&a->setup, number, error);
		key_put(a->setup.key);
	}
	kfree(a);
	return rc;
}

static int do_attach(struct sk_buff *skb, struct genl_info *info)
{
	struct kweir_error error = {};
	struct sk_buff *message;
	u32 number = 0;
	int rc;

	if (!is_administrator(skb))
		return -EPERM;
	message = new_answer();
	if (!message)
		return -ENOMEM;
	rc = attach(info, &number, &error);
	return send_answer(message, info, rc, number, &error);
}

/* Return: the layout that a message about a pool's device must have, or NULL. */
static const struct weir_blk_layout *layout_of(struct genl_info *info)
{
	if (GENL_REQ_ATTR_CHECK(info, WEIR_BLK_NUMBER) ||
	    GENL_REQ_ATTR_CHECK(info, WEIR_BLK_LAYOUT))
		return NULL;
	return nla_data(info->attrs[WEIR_BLK_LAYOUT]);
}

static int set_map(struct weir_blk *blk, void *arg)
{
	struct weir_blk_map **map = arg;

	*map = weir_blk_pool_set_map(&blk->volume, *map);
	return 0;
}

/* A volume of another layout refuses the map, so that its number of groups need not be right. */
static int read_map(struct genl_info *info, const struct weir_blk_layout *layout,
		    struct weir_blk_map **map, struct kweir_error *error)
{
	const struct nlattr *donors = info->attrs[WEIR_BLK_POOL_DONORS];
	const struct nlattr *members = info->attrs[WEIR_BLK_MEMBERS];
	int rc;

	if (layout->groups > WEIR_BLK_GROUPS_MAX)
		return kweir_fail(error, -EINVAL, "%u groups: at most %u", layout->groups,
				  WEIR_BLK_GROUPS_MAX);
	rc = weir_blk_map_new(donors ? nla_data(donors) : NULL,
			      count_of(donors, sizeof(struct weir_blk_pool_donor)),
			      members ? nla_data(members) : NULL,
			      count_of(members, sizeof(struct weir_blk_member)), layout->groups,
			      map, error);
	if (rc)
		return rc;
	(*map)->flags = u32_of(info, WEIR_BLK_MAP_FLAGS);
	(*map)->proof = u64_of(info, WEIR_BLK_PROOF);
	(*map)->agent_bytes = read_agent(info, (*map)->agent);
	return 0;
}

static int do_map(struct sk_buff *skb, struct genl_info *info)
{
	const struct weir_blk_layout *layout = layout_of(info);
	u32 number = u32_of(info, WEIR_BLK_NUMBER);
	struct weir_blk_map *map = NULL;
	struct kweir_error error = {};
	struct sk_buff *message;
	int rc;

	if (!is_administrator(skb))
		return -EPERM;
	if (!layout)
		return -EINVAL;
	message = new_answer();
	if (!message)
		return -ENOMEM;
	rc = read_map(info, layout, &map, &error);
	if (!rc)
		rc = weir_blk_visit_pool(number, layout, set_map, &map, &error);
	weir_blk_map_free(map);
	return send_answer(message, info, rc, number, &error);
}

static int look_at_pool(struct weir_blk *blk, void *arg)
{
	struct weir_blk_look *look = arg;

	weir_blk_pool_look(&blk->volume, look);
	look->flags |= blk->disk ? WEIR_BLK_LOOK_STARTED : 0;
	return 0;
}

static int put_look(struct sk_buff *message, const struct weir_blk_look *look)
{
	if (nla_put_u32(message, WEIR_BLK_LOOK_FLAGS, look->flags) ||
	    nla_put_u32(message, WEIR_BLK_PERCENT, look->percent) ||
	    nla_put_u64_64bit(message, WEIR_BLK_PROOF, look->proof, WEIR_BLK_PAD) ||
	    nla_put_u64_64bit(message, WEIR_BLK_COPIED, look->copied, WEIR_BLK_PAD) ||
	    nla_put(message, WEIR_BLK_FAILED, look->nr_failed * sizeof(look->failed[0]),
		    look->failed))
		return -EMSGSIZE;
	return nla_put(message, WEIR_BLK_READY, look->nr_ready * sizeof(look->ready[0]),
		       look->ready);
}

static int send_look(struct sk_buff *message, struct genl_info *info, int status, u32 number,
		     const struct weir_blk_look *look, const struct kweir_error *error)
{
	void *head = genlmsg_put_reply(message, info, &family, 0, info->genlhdr->cmd);

	if (head && !nla_put_s32(message, WEIR_BLK_STATUS, status) &&
	    !nla_put_u32(message, WEIR_BLK_NUMBER, number) &&
	    !nla_put_string(message, WEIR_BLK_TEXT, status ? error->text : look->refusal.text) &&
	    (status || !put_look(message, look))) {
		genlmsg_end(message, head);
		return genlmsg_reply(message, info);
	}
	nlmsg_free(message);
	return -EMSGSIZE;
}

static int do_look(struct sk_buff *skb, struct genl_info *info)
{
	const struct weir_blk_layout *layout = layout_of(info);
	u32 number = u32_of(info, WEIR_BLK_NUMBER);
	struct weir_blk_look *found = NULL;
	struct kweir_error error = {};
	struct sk_buff *message;
	int rc;

	if (!is_administrator(skb))
		return -EPERM;
	if (!layout)
		return -EINVAL;
	found = kzalloc(sizeof(*found), GFP_KERNEL);
	message = new_answer();
	if (!found || !message) {
		kfree(found);
		nlmsg_free(message);
		return -ENOMEM;
	}
	rc = weir_blk_visit_pool(number, layout, look_at_pool, found, &error);
	rc = send_look(message, info, rc, number, found, &error);
	kfree(found);
	return rc;
}

void weir_blk_netlink_tell(u32 number)
{
	struct sk_buff *message = genlmsg_new(nla_total_size(sizeof(number)), GFP_KERNEL);
	void *head;

	if (!message)
		return;
	head = genlmsg_put(message, 0, 0, &family, 0, WEIR_BLK_NEWS);
	if (!head || nla_put_u32(message, WEIR_BLK_NUMBER, number)) {
		nlmsg_free(message);
		return;
	}
	genlmsg_end(message, head);
	genlmsg_multicast(&family, message, 0, 0, GFP_KERNEL); /* fails if nobody listens */
}

static int do_start(struct sk_buff *skb, struct genl_info *info)
{
	const struct weir_blk_layout *layout = layout_of(info);
	u32 number = u32_of(info, WEIR_BLK_NUMBER);
	struct kweir_error error = {};
	struct sk_buff *message;

	if (!is_administrator(skb))
		return -EPERM;
	if (!layout)
		return -EINVAL;
	message = new_answer();
	if (!message)
		return -ENOMEM;
	return send_answer(message, info, weir_blk_start(number, layout, &error), number, &error);
}

static int do_detach(struct sk_buff *skb, struct genl_info *info)
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
	rc = weir_blk_detach(number, &error);
	if (!rc)
		weir_blk_netlink_tell(number);
	return send_answer(message, info, rc, number, &error);
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
static int put_where(struct sk_buff *skb, struct weir_blk *blk, const struct weir_blk_facts *facts)
{
	struct weir_blk_pool *pool = blk->volume.pool;
	u8 agent[WEIR_BLK_AGENT_MAX];
	u32 bytes;

	if (put_donors(skb, facts) || nla_put_string(skb, WEIR_BLK_NAME, blk->volume.name))
		return -EMSGSIZE;
	if (!pool)
		return 0;
	spin_lock_bh(&blk->volume.lock);
	bytes = pool->agent_bytes;
	memcpy(agent, pool->agent, bytes);
	spin_unlock_bh(&blk->volume.lock);
	return nla_put_string(skb, WEIR_BLK_POOL, pool->name) ||
			       nla_put(skb, WEIR_BLK_LAYOUT, sizeof(pool->layout), &pool->layout) ||
			       nla_put(skb, WEIR_BLK_AGENT, bytes, agent) ?
		       -EMSGSIZE :
		       0;
}

static int put_all(struct sk_buff *skb, struct weir_blk *blk, const struct weir_blk_facts *facts,
		   bool is_admin)
{
	u64 counters[WEIR_BLK_COUNTERS_NR];

	if (is_admin && put_where(skb, blk, facts))
		return -EMSGSIZE;
	if (nla_put_u32(skb, WEIR_BLK_NUMBER, blk->number) ||
	    nla_put_u64_64bit(skb, WEIR_BLK_BYTES, blk->volume.bytes, WEIR_BLK_PAD) ||
	    nla_put_u32(skb, WEIR_BLK_REPLICAS, blk->volume.core.replicas) ||
	    nla_put_u32(skb, WEIR_BLK_STATE, state_of_all(facts)) ||
	    nla_put_u32(skb, WEIR_BLK_OPENERS, blk->disk ? disk_openers(blk->disk) : 0))
		return -EMSGSIZE;
	if (blk->volume.cipher.aead &&
	    nla_put_string(skb, WEIR_BLK_CIPHER, blk->volume.cipher.name))
		return -EMSGSIZE;
	weir_blk_counters(facts, counters);
	return nla_put(skb, WEIR_BLK_COUNTERS, sizeof(counters), counters);
}

static int put_facts(struct sk_buff *skb, struct weir_blk *blk, bool is_admin)
{
	struct weir_blk_facts *facts = kmalloc(sizeof(*facts), GFP_KERNEL);
	int rc;

	if (!facts)
		return -ENOMEM;
	weir_blk_volume_facts(&blk->volume, facts);
	rc = put_all(skb, blk, facts, is_admin);
	kfree(facts);
	return rc;
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
	{ .cmd = WEIR_BLK_MAP, .doit = do_map, .flags = GENL_ADMIN_PERM },
	{ .cmd = WEIR_BLK_LOOK, .doit = do_look, .flags = GENL_ADMIN_PERM },
	{ .cmd = WEIR_BLK_START, .doit = do_start, .flags = GENL_ADMIN_PERM },
};

static const struct genl_multicast_group groups[] = {
	{ .name = WEIR_BLK_NEWS_GROUP },
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
	.resv_start_op = WEIR_BLK_START + 1,
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
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
