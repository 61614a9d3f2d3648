// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Each process with the device open listens on a socket, which also takes requests for faults. The
 * kernel reports the owner of a socket, so the search does not disturb other processes.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "control.h"
#include "softnic/shm/shared.h"

enum { ANSWER_MS_MAX = 500 };

static int connect_to(pid_t wanted, int *fd)
{
	struct sockaddr_un addr;
	socklen_t len;
	uint32_t slot;
	pid_t pid;

	for (slot = 1; slot < SOFTNIC_SLOTS; slot++) {
		*fd = passed_fd_socket(SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (*fd < 0)
			return -errno;
		len = shared_address(slot, &addr);
		if (!connect(*fd, (struct sockaddr *)&addr, len) && shared_is_ours(*fd, &pid) &&
		    pid == wanted)
			return 0;
		passed_fd_close_socket(*fd);
	}
	return -ESRCH;
}

static int set_one(int fd, enum softnic_option option, uint64_t value)
{
	struct shm_msg m = { .type = MSG_SET_FAULT, .qpn = option, .value = value };
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	int rc;

	rc = shm_msg_send(fd, &m, NULL, 0);
	if (rc)
		return rc;
	if (poll(&answer, 1, ANSWER_MS_MAX) != 1)
		return -ETIMEDOUT;
	rc = shm_msg_receive(fd, &m, NULL);
	if (rc)
		return rc;
	return m.type == MSG_FAULT_SET ? -(int)m.value : -EPROTO;
}

/* Triggers are set last, because the other options describe the fault they start. */
static bool is_trigger(int option)
{
	return option == OPTION_PORT_DOWN_AFTER || option == OPTION_DEVICE_GONE_AFTER;
}

int softnic_control_set_faults(pid_t pid, const struct softnic_options *options)
{
	int rc, fd, i, triggers;

	rc = connect_to(pid, &fd);
	if (rc)
		return rc;
	for (triggers = 0; triggers <= 1; triggers++)
		for (i = OPTION_FIRST_FAULT; i < OPTIONS && !rc; i++)
			if (is_trigger(i) == triggers && (options->given & 1u << i))
				rc = set_one(fd, i, options->value[i]);
	passed_fd_close_socket(fd);
	return rc;
}
