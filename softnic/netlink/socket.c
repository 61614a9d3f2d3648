// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Sockets of the protocol NETLINK_RDMA. Such a socket becomes one of NETLINK_USERSOCK, on which
 * programs may send to each other: binding, naming, waiting and receiving stay the kernel's. Only
 * sending is softnic's, and the kernel drops what others send (channel.h). A request is relayed to
 * the kernel, if it has RDMA devices; softnic's devices are added to the answer, which is sent to
 * the socket's own address.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "channel.h"
#include "serve.h"
#include "softnic/sysfs/hook.h"
#include "softnic/verbs/device.h"

enum { REQUEST_MAX = 8192 };

#define NEXT(name) HOOK_NEXT_AS(__typeof__(&netlink_##name), #name)

int netlink_socket(int domain, int type, int protocol) HOOK(socket);
ssize_t netlink_send(int fd, const void *bytes, size_t size, int flags) HOOK(send);
ssize_t netlink_sendto(int fd, const void *bytes, size_t size, int flags,
		       const struct sockaddr *to, socklen_t length) HOOK(sendto);
ssize_t netlink_sendmsg(int fd, const struct msghdr *message, int flags) HOOK(sendmsg);

int netlink_socket(int domain, int type, int protocol)
{
	bool is_ours = domain == AF_NETLINK && protocol == NETLINK_RDMA && device_count();
	int fd = NEXT(socket)(domain, type, is_ours ? NETLINK_USERSOCK : protocol), rc;

	if (!is_ours || fd < 0)
		return fd;
	rc = channel_protect(fd);
	if (!rc)
		return fd;
	close(fd);
	errno = -rc;
	return -1;
}

/* Sockets between which one call of the program passes requests and answers. */
struct netlink_call {
	int from; /* sends the answer */
	struct sockaddr_nl to; /* the program's socket */
	int relay; /* asks the kernel about one request; -1 before the first */
};

static int open_protocol(int protocol)
{
	return NEXT(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
}

/*
 * The buffer of the program's socket may be full. Only the kernel can fail the next receive, so
 * that send() tells of the loss instead.
 */
static int deliver(void *arg, const struct nlmsghdr *message)
{
	struct netlink_call *call = arg;
	struct iovec parts[] = {
		{ (void *)message, message->nlmsg_len },
		{ (void *)channel_secret(), CHANNEL_WORDS * sizeof(uint32_t) },
	};
	const struct msghdr m = {
		.msg_name = &call->to,
		.msg_namelen = sizeof(call->to),
		.msg_iov = parts,
		.msg_iovlen = sizeof(parts) / sizeof(parts[0]),
	};

	if (NEXT(sendmsg)(call->from, &m, MSG_DONTWAIT) >= 0)
		return 0;
	return errno == EAGAIN ? -ENOBUFS : -errno;
}

static int ask(void *arg, const struct nlmsghdr *request)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct netlink_call *call = arg;

	if (call->relay >= 0)
		close(call->relay); /* with what is left of the answer before */
	call->relay = open_protocol(NETLINK_RDMA);
	if (call->relay < 0)
		return -EPROTONOSUPPORT;
	return NEXT(sendto)(call->relay, request, request->nlmsg_len, 0,
			    (const struct sockaddr *)&kernel, sizeof(kernel)) < 0 ?
		       -errno :
		       0;
}

/*
 * The kernel answers within the call that sends the request, and extends a dump within each call
 * that receives a part. If no message is ready now, none will come.
 */
static ssize_t hear(void *arg, void *bytes, size_t size)
{
	const struct netlink_call *call = arg;
	ssize_t n = recv(call->relay, bytes, size, MSG_DONTWAIT);

	if (n >= 0)
		return n;
	return errno == EAGAIN ? 0 : -errno;
}

/* A socket without an address gets one now, as the kernel does it for the first message. */
static int begin(struct netlink_call *call, int fd)
{
	socklen_t length = sizeof(call->to);

	if (getsockname(fd, (struct sockaddr *)&call->to, &length))
		return -errno;
	if (!call->to.nl_pid) {
		call->to = (struct sockaddr_nl){ .nl_family = AF_NETLINK };
		if (bind(fd, (struct sockaddr *)&call->to, sizeof(call->to)) ||
		    getsockname(fd, (struct sockaddr *)&call->to, &length))
			return -errno;
	}
	call->to.nl_groups = 0;
	call->from = open_protocol(NETLINK_USERSOCK);
	return call->from < 0 ? -errno : 0;
}

static ssize_t serve(int fd, const void *bytes, size_t size)
{
	_Alignas(struct nlmsghdr) uint8_t copy[REQUEST_MAX];
	struct netlink_call call = { .relay = -1 };
	const struct netlink_ends ends = { ask, hear, deliver, &call };
	int rc = size > sizeof(copy) ? -EMSGSIZE : begin(&call, fd), error = errno;

	if (!rc) {
		memcpy(copy, bytes, size);
		rc = netlink_serve(&ends, copy, size);
		close(call.from);
		if (call.relay >= 0)
			close(call.relay);
	}
	errno = rc ? -rc : error;
	return rc ? -1 : (ssize_t)size;
}

ssize_t netlink_send(int fd, const void *bytes, size_t size, int flags)
{
	return channel_is_protected(fd) ? serve(fd, bytes, size) :
					  NEXT(send)(fd, bytes, size, flags);
}

ssize_t netlink_sendto(int fd, const void *bytes, size_t size, int flags,
		       const struct sockaddr *to, socklen_t length)
{
	return channel_is_protected(fd) ? serve(fd, bytes, size) :
				 NEXT(sendto)(fd, bytes, size, flags, to, length);
}

ssize_t netlink_sendmsg(int fd, const struct msghdr *message, int flags)
{
	uint8_t bytes[REQUEST_MAX];
	size_t size = 0, i;

	if (!channel_is_protected(fd))
		return NEXT(sendmsg)(fd, message, flags);
	for (i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *v = &message->msg_iov[i];

		if (v->iov_len > sizeof(bytes) - size) {
			errno = EMSGSIZE;
			return -1;
		}
		memcpy(bytes + size, v->iov_base, v->iov_len);
		size += v->iov_len;
	}
	return serve(fd, bytes, size);
}
