/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/blk/blk.h"
#include "apps/common/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Expected types of a reply's attributes. Attributes not listed are names or binary data. */
static const enum mnl_attr_data_type types[WEIR_BLK_ATTRIBUTE_MAX + 1] = {
	[WEIR_BLK_STATUS] = MNL_TYPE_U32,	 [WEIR_BLK_TEXT] = MNL_TYPE_NUL_STRING,
	[WEIR_BLK_NUMBER] = MNL_TYPE_U32,	 [WEIR_BLK_NAME] = MNL_TYPE_NUL_STRING,
	[WEIR_BLK_BYTES] = MNL_TYPE_U64,	 [WEIR_BLK_STATE] = MNL_TYPE_U32,
	[WEIR_BLK_OPENERS] = MNL_TYPE_U32,	 [WEIR_BLK_REPLICAS] = MNL_TYPE_U32,
	[WEIR_BLK_CIPHER] = MNL_TYPE_NUL_STRING, [WEIR_BLK_POOL] = MNL_TYPE_NUL_STRING,
	[WEIR_BLK_LOOK_FLAGS] = MNL_TYPE_U32,	 [WEIR_BLK_PROOF] = MNL_TYPE_U64,
	[WEIR_BLK_PERCENT] = MNL_TYPE_U32,	 [WEIR_BLK_COPIED] = MNL_TYPE_U64,
};

static int read_attribute(const struct nlattr *attr, void *data)
{
	const struct nlattr **attrs = data;
	uint16_t type = mnl_attr_get_type(attr);

	if (type > WEIR_BLK_ATTRIBUTE_MAX)
		return MNL_CB_OK; /* from a newer module */
	if (types[type] && mnl_attr_validate(attr, types[type]) < 0)
		return MNL_CB_ERROR;
	attrs[type] = attr;
	return MNL_CB_OK;
}

struct hearing {
	void (*heard)(const struct nlattr *const *attrs, void *arg);
	void *arg;
};

static int on_message(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *attrs[WEIR_BLK_ATTRIBUTE_MAX + 1] = { NULL };
	const struct hearing *hearing = data;

	if (mnl_attr_parse(message, sizeof(struct genlmsghdr), read_attribute, attrs) < 0)
		return MNL_CB_ERROR;
	hearing->heard(attrs, hearing->arg);
	return MNL_CB_OK;
}

static struct nlmsghdr *write_head(struct blk_netlink *talk, uint16_t type, uint8_t command,
				   uint8_t version, uint16_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(talk->message);
	struct genlmsghdr *head;

	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	message->nlmsg_seq = ++talk->sequence;
	head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	head->cmd = command;
	head->version = version;
	return message;
}

struct nlmsghdr *blk_netlink_message(struct blk_netlink *talk, enum weir_blk_command command,
				     uint16_t flags)
{
	return write_head(talk, talk->family, (uint8_t)command, WEIR_BLK_VERSION, flags);
}

/*
 * Sends and receives until the kernel acknowledges or ends a dump. Return: 0 or a negative errno.
 */
static int send_and_receive(struct blk_netlink *talk, const struct nlmsghdr *message,
			    mnl_cb_t callback, void *arg)
{
	unsigned int port = mnl_socket_get_portid(talk->socket), sequence = message->nlmsg_seq;
	int rc = MNL_CB_OK;

	if (mnl_socket_sendto(talk->socket, message, message->nlmsg_len) < 0)
		return -errno;
	while (rc == MNL_CB_OK) {
		char buffer[16384];
		ssize_t got = mnl_socket_recvfrom(talk->socket, buffer, sizeof(buffer));

		if (got < 0)
			return -errno;
		rc = mnl_cb_run(buffer, (size_t)got, sequence, port, callback, arg);
	}
	return rc == MNL_CB_ERROR ? -errno : 0;
}

/* The module has one multicast group. */
static void find_news(const struct nlattr *groups, struct blk_netlink *talk)
{
	const struct nlattr *group, *attr;

	mnl_attr_for_each_nested(group, groups) {
		mnl_attr_for_each_nested(attr, group) {
			if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_ID &&
			    !mnl_attr_validate(attr, MNL_TYPE_U32))
				talk->news = mnl_attr_get_u32(attr);
		}
	}
}

static int find_family(const struct nlattr *attr, void *data)
{
	struct blk_netlink *talk = data;

	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    !mnl_attr_validate(attr, MNL_TYPE_U16))
		talk->family = mnl_attr_get_u16(attr);
	if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GROUPS &&
	    !mnl_attr_validate(attr, MNL_TYPE_NESTED))
		find_news(attr, talk);
	return MNL_CB_OK;
}

static int on_family(const struct nlmsghdr *message, void *data)
{
	return mnl_attr_parse(message, sizeof(struct genlmsghdr), find_family, data);
}

int blk_netlink_try(struct blk_netlink *talk)
{
	struct nlmsghdr *message;
	int rc;

	talk->socket = mnl_socket_open(NETLINK_GENERIC);
	if (!talk->socket || mnl_socket_bind(talk->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	talk->sequence = (uint32_t)time(NULL);
	message = write_head(talk, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, 0);
	mnl_attr_put_strz(message, CTRL_ATTR_FAMILY_NAME, WEIR_BLK_FAMILY);
	rc = send_and_receive(talk, message, on_family, talk);
	return !rc && !talk->family ? -ENOENT : rc;
}

int blk_netlink_open(struct blk_netlink *talk, const char *cmd)
{
	int rc = blk_netlink_try(talk);

	if (rc == -ENOENT)
		return failure(cmd,
			       "the module weir_blk is not loaded: modprobe weir_blk");
	return rc ? failure(cmd, "the kernel does not answer: %s", strerror(-rc)) : 0;
}

void blk_netlink_close(struct blk_netlink *talk)
{
	if (talk->socket)
		mnl_socket_close(talk->socket);
}

bool blk_netlink_hear(struct blk_netlink *talk)
{
	int file = mnl_socket_get_fd(talk->socket);

	return talk->news &&
	       !mnl_socket_setsockopt(talk->socket, NETLINK_ADD_MEMBERSHIP, &talk->news,
				      sizeof(talk->news)) &&
	       !fcntl(file, F_SETFL, O_NONBLOCK);
}

void blk_netlink_await_news(const struct blk_netlink *talk, unsigned int timeout_ms)
{
	struct pollfd ready = { .fd = mnl_socket_get_fd(talk->socket), .events = POLLIN };
	char message[512];

	if (poll(&ready, 1, (int)timeout_ms) <= 0)
		return;
	while (read(ready.fd, message, sizeof(message)) > 0)
		;
}

int blk_netlink_ask(struct blk_netlink *talk, struct nlmsghdr *message,
		    void (*heard)(const struct nlattr *const *attrs, void *arg), void *arg)
{
	struct hearing hearing = { heard, arg };

	return send_and_receive(talk, message, on_message, &hearing);
}

int blk_netlink_request(struct blk_netlink *talk, const char *cmd, struct nlmsghdr *message,
			void (*heard)(const struct nlattr *const *attrs, void *arg), void *arg)
{
	int rc = blk_netlink_ask(talk, message, heard, arg);

	if (rc == -EPERM)
		return failure(cmd, "permission denied: use sudo");
	return rc ? failure(cmd, "the module does not answer: %s", strerror(-rc)) : 0;
}

/* The reply to an ATTACH, DETACH or RESIZE. */
struct blk_answer {
	const char *cmd;
	uint32_t number;
	int status;
};

static void on_answer(const struct nlattr *const *attrs, void *arg)
{
	struct blk_answer *answer = arg;
	const char *text = attrs[WEIR_BLK_TEXT] ? mnl_attr_get_str(attrs[WEIR_BLK_TEXT]) : "";
	int rc = attrs[WEIR_BLK_STATUS] ? (int)mnl_attr_get_u32(attrs[WEIR_BLK_STATUS]) : -EPROTO;

	if (attrs[WEIR_BLK_NUMBER])
		answer->number = mnl_attr_get_u32(attrs[WEIR_BLK_NUMBER]);
	answer->status = rc ? failure(answer->cmd, "%s", *text ? text : strerror(-rc)) : 0;
}

int blk_netlink_change(struct blk_netlink *talk, const char *cmd, struct nlmsghdr *message,
		       uint32_t *number)
{
	struct blk_answer answer = { .cmd = cmd };
	int status = blk_netlink_request(talk, cmd, message, on_answer, &answer);

	if (number)
		*number = answer.number;
	return status ? status : answer.status;
}
