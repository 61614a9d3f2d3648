// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A network that loses the messages by which two softnics agree on keys, and nothing else:
 * preloaded, in place of an attacker on the path.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

#include "softnic/seal/agree.h"

typedef int send_fn(int fd, struct mmsghdr *messages, unsigned int count, int flags);

static int is_agreement(const struct mmsghdr *m)
{
	const struct iovec *iov = m->msg_hdr.msg_iov;

	return iov->iov_len && *(const uint8_t *)iov->iov_base == AGREE_OPCODE;
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	void *found = dlsym(RTLD_NEXT, "sendmmsg");
	unsigned int passed = 0;
	send_fn *next;

	memcpy(&next, &found, sizeof(next));
	if (is_agreement(messages))
		return 1; /* as if sent */
	while (passed < count && !is_agreement(&messages[passed]))
		passed++;
	return next(fd, messages, passed, flags);
}
