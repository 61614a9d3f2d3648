// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "nldev.h"
#include "serve.h"

/* The answer to one request. */
struct netlink_answer {
	const struct netlink_ends *ends;
	int rc; /* of the first delivery that failed */
};

static void deliver(void *arg, const struct nlmsghdr *message)
{
	struct netlink_answer *a = arg;

	if (!a->rc)
		a->rc = a->ends->deliver(a->ends->arg, message);
}

/*
 * Does a whole message begin at @h? The last message need not fill its alignment: NLMSG_NEXT()
 * would then subtract more than is left.
 */
static bool is_whole(const struct nlmsghdr *h, size_t left)
{
	return left >= sizeof(*h) && h->nlmsg_len >= sizeof(*h) && h->nlmsg_len <= left;
}

static struct nlmsghdr *next_of(struct nlmsghdr *h, size_t *left)
{
	size_t bytes = NLMSG_ALIGN((size_t)h->nlmsg_len);

	if (bytes > *left)
		bytes = *left;
	*left -= bytes;
	return (struct nlmsghdr *)((uint8_t *)h + bytes);
}

/* The last message: of a dump, or an acknowledgement. */
static void end(struct netlink_answer *a, const struct nlmsghdr *request, int rc)
{
	struct {
		struct nlmsghdr h;
		int error;
		struct nlmsghdr request;
	} m = { .h = { .nlmsg_seq = request->nlmsg_seq }, .error = rc, .request = *request };

	if ((request->nlmsg_flags & NLM_F_DUMP) && !rc) {
		m.h.nlmsg_type = NLMSG_DONE;
		m.h.nlmsg_flags = NLM_F_MULTI;
		m.h.nlmsg_len = NLMSG_LENGTH(sizeof(m.error));
	} else if (rc || (request->nlmsg_flags & NLM_F_ACK)) {
		m.h.nlmsg_type = NLMSG_ERROR;
		m.h.nlmsg_len = sizeof(m);
	} else {
		return;
	}
	deliver(a, &m.h);
}

static int error_of(struct nlmsghdr *h)
{
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(int)))
		return -EPROTO;
	return *(const int *)NLMSG_DATA(h);
}

/* Deliver the kernel's messages except the last; *rc becomes its error. False: no more follow. */
static bool relay_part(struct netlink_answer *a, struct nlmsghdr *h, size_t left, int *rc)
{
	for (; is_whole(h, left); h = next_of(h, &left)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return false;
		if (h->nlmsg_type == NLMSG_ERROR) {
			*rc = error_of(h);
			return false;
		}
		h->nlmsg_pid = 0; /* was the address of the relay's socket */
		deliver(a, h);
	}
	return !a->rc;
}

/* Return: 0, the kernel's error, or -EPROTONOSUPPORT if the kernel has no RDMA. */
static int relay(struct netlink_answer *a, const struct nlmsghdr *request)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[NETLINK_REPLY_MAX];
	int rc = a->ends->ask(a->ends->arg, request);
	ssize_t n;

	if (rc)
		return rc;
	do {
		n = a->ends->hear(a->ends->arg, bytes, sizeof(bytes));
		if (n < 0)
			rc = (int)n;
	} while (n > 0 && relay_part(a, (struct nlmsghdr *)bytes, (size_t)n, &rc));
	return rc;
}

static void answer(struct netlink_answer *a, const struct nlmsghdr *request)
{
	bool is_ours = nldev_is_about_ours(request), is_dump = request->nlmsg_flags & NLM_F_DUMP;
	int rc = is_ours ? -EPROTONOSUPPORT : relay(a, request);

	if (is_dump ? !rc || rc == -EPROTONOSUPPORT : rc == -EPROTONOSUPPORT)
		rc = nldev_answer(request, deliver, a);
	end(a, request, rc);
}

int netlink_serve(const struct netlink_ends *ends, const void *requests, size_t size)
{
	struct nlmsghdr *request = (struct nlmsghdr *)requests;
	struct netlink_answer a = { .ends = ends };

	for (; is_whole(request, size) && !a.rc; request = next_of(request, &size))
		if (RDMA_NL_GET_CLIENT(request->nlmsg_type) == RDMA_NL_NLDEV)
			answer(&a, request);
		else
			end(&a, request, -EINVAL);
	return a.rc;
}
