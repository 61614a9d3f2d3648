/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/size.h"
#include "lib/base/error.h"

static const struct {
	int status;
	const char *text;
} meanings[] = {
	{ 0, "success" },
	{ -EACCES, "access denied" },
	{ -E2BIG, "an option is unknown to this libweir" },
	{ -EADDRINUSE, "the address is already in use" },
	{ -EAGAIN, "no room now: try again" },
	{ -EBADMSG, "altered: the data fails its authentication" },
	{ -EBUSY, "in use" },
	{ -ECANCELED, "canceled" },
	{ -ECONNREFUSED, "nobody listens there" },
	{ -ECONNRESET, "outcome unknown: the channel failed" },
	{ -EDQUOT, "over this client's quota" },
	{ -EEXIST, "the name exists" },
	{ -EFAULT, "local memory is not registered for this" },
	{ -EHOSTUNREACH, "no route to the donor" },
	{ -EINPROGRESS, "in progress: it will complete" },
	{ -EINVAL, "invalid argument" },
	{ -EIO, "the device reported an error" },
	{ -EKEYREJECTED, "the key was not proven" },
	{ -EMSGSIZE, "the message is too long" },
	{ -ENODEV, "no verbs device" },
	{ -ENOENT, "no such name" },
	{ -ENOMEM, "not enough memory" },
	{ -ENOSPC, "the donor is full" },
	{ -ENOTCONN, "the session is down, or the other end has closed" },
	{ -EOPNOTSUPP, "not supported here" },
	{ -EPERM, "not permitted" },
	{ -EPROTO, "the peer broke the protocol" },
	{ -EPROTONOSUPPORT, "the peer speaks another version" },
	{ -ESTALE, "outdated: a forgotten session, or data rolled back" },
	{ -ETIMEDOUT, "timed out" },
};

const char *weir_strerror(int status)
{
	const char *text;
	size_t i;

	for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].status == status)
			return meanings[i].text;
	text = strerrordesc_np(-status);
	return text ? text : "unknown error";
}

int weir_error_set(struct weir_error *error, int status, const char *format, ...)
{
	va_list args;

	if (!error)
		return status;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return status;
}

int weir_error_set_memlock(struct weir_error *error, const char *what, size_t bytes, int status)
{
	struct rlimit limit;

	if (status != -ENOMEM && status != -EAGAIN && status != -EPERM)
		return weir_error_set(error, status, "cannot register %s (%s): %s", what,
				      weir_size_format(bytes).text, strerrordesc_np(-status));
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return weir_error_set(error, -ENOMEM,
				      "cannot register %s (%s): not enough memory", what,
				      weir_size_format(bytes).text);
	return weir_error_set(
		error, -ENOMEM,
		"cannot register %s (%s): the locked-memory limit is %s; "
		"raise it with 'ulimit -l' or LimitMEMLOCK=",
		what, weir_size_format(bytes).text, weir_size_format(limit.rlim_cur).text);
}

/* Soft-RoCE reports LOC_QP_OP_ERR when a packet cannot be sent, for example with the link down. */
int weir_error_of_wc(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_REM_ABORT_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
		return -ECONNRESET;
	case IBV_WC_REM_ACCESS_ERR:
		return -EACCES;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return -EFAULT;
	default:
		return -EIO;
	}
}
