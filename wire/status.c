/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/platform.h"
#include "wire/status.h"

int wire_status(int status)
{
	switch (status) {
	case 0:
	case -E2BIG:
	case -EACCES:
	case -EADDRINUSE:
	case -EAGAIN:
	case -EBUSY:
	case -ECANCELED:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EDQUOT:
	case -EEXIST:
	case -EFAULT:
	case -EHOSTUNREACH:
	case -EINPROGRESS:
	case -EINVAL:
	case -EIO:
	case -EKEYREJECTED:
	case -EMSGSIZE:
	case -ENODEV:
	case -ENOENT:
	case -ENOMEM:
	case -ENOSPC:
	case -ENOTCONN:
	case -EPERM:
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -ESTALE:
	case -ETIMEDOUT:
		return status;
	default:
		return -EIO;
	}
}

int wire_status_fs(int status)
{
	switch (status) {
	case -EBADF:
	case -EDEADLK:
	case -EFBIG:
	case -EINTR:
	case -EISDIR:
	case -EMLINK:
	case -ENAMETOOLONG:
	case -ENFILE:
	case -ENODATA:
	case -ENOLCK:
	case -ENOTDIR:
	case -ENOTEMPTY:
	case -EOPNOTSUPP:
		return status;
	default:
		return wire_status(status);
	}
}
