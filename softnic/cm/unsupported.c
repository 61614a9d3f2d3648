// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * librdmacm's rsockets, not supported by softnic. Each call fails with EOPNOTSUPP. Without these
 * definitions, librdmacm's rsockets would run and mistake our ids for librdmacm's.
 */
#include "cm.h"
#pragma GCC visibility push(default)
#include <rdma/rsocket.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define UNSUPPORTED(type, name, ...) \
	type name(__VA_ARGS__)       \
	{                            \
		errno = EOPNOTSUPP;  \
		return (type)-1;     \
	}

UNSUPPORTED(int, rsocket, int domain, int type, int protocol)
UNSUPPORTED(int, rbind, int s, const struct sockaddr *addr, socklen_t len)
UNSUPPORTED(int, rlisten, int s, int backlog)
UNSUPPORTED(int, raccept, int s, struct sockaddr *addr, socklen_t *len)
UNSUPPORTED(int, rconnect, int s, const struct sockaddr *addr, socklen_t len)
UNSUPPORTED(int, rshutdown, int s, int how)
UNSUPPORTED(int, rclose, int s)
UNSUPPORTED(ssize_t, rrecv, int s, void *buf, size_t len, int flags)
UNSUPPORTED(ssize_t, rrecvfrom, int s, void *buf, size_t len, int flags, struct sockaddr *src,
	    socklen_t *src_len)
UNSUPPORTED(ssize_t, rrecvmsg, int s, struct msghdr *msg, int flags)
UNSUPPORTED(ssize_t, rsend, int s, const void *buf, size_t len, int flags)
UNSUPPORTED(ssize_t, rsendto, int s, const void *buf, size_t len, int flags,
	    const struct sockaddr *dst, socklen_t dst_len)
UNSUPPORTED(ssize_t, rsendmsg, int s, const struct msghdr *msg, int flags)
UNSUPPORTED(ssize_t, rread, int s, void *buf, size_t len)
UNSUPPORTED(ssize_t, rreadv, int s, const struct iovec *iov, int nr)
UNSUPPORTED(ssize_t, rwrite, int s, const void *buf, size_t len)
UNSUPPORTED(ssize_t, rwritev, int s, const struct iovec *iov, int nr)
UNSUPPORTED(int, rpoll, struct pollfd *fds, nfds_t nr, int timeout)
UNSUPPORTED(int, rselect, int nr, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
UNSUPPORTED(int, rgetpeername, int s, struct sockaddr *addr, socklen_t *len)
UNSUPPORTED(int, rgetsockname, int s, struct sockaddr *addr, socklen_t *len)
UNSUPPORTED(int, rsetsockopt, int s, int level, int name, const void *value, socklen_t len)
UNSUPPORTED(int, rgetsockopt, int s, int level, int name, void *value, socklen_t *len)
UNSUPPORTED(int, rfcntl, int s, int cmd, ...)
UNSUPPORTED(off_t, riomap, int s, void *buf, size_t len, int prot, int flags, off_t offset)
UNSUPPORTED(int, riounmap, int s, void *buf, size_t len)
UNSUPPORTED(size_t, riowrite, int s, const void *buf, size_t len, off_t offset, int flags)
