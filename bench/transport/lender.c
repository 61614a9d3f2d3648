/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The lender's process, its memory, and the socket between lender and borrower. */
#include "bench/transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

void must(bool good, const char *what, const char *why)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	_exit(1);
}

void send_all(int socket, const void *data, size_t size)
{
	must(send(socket, data, size, MSG_NOSIGNAL) == (ssize_t)size, "socket",
	     "the other process has ended");
}

void receive_all(int socket, void *data, size_t size)
{
	must(recv(socket, data, size, MSG_WAITALL) == (ssize_t)size, "socket",
	     "the other process has ended");
}

void until_over(int socket, void (*turn)(void))
{
	struct pollfd fd = { .fd = socket, .events = POLLIN };

	while (!poll(&fd, 1, turn ? 1 : -1))
		turn();
}

static void *map(size_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, 0);

	must(at != MAP_FAILED, "memory", "there is not enough");
	return at;
}

void *transport_memory(size_t bytes)
{
	return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* As weir's donor on softnic: a file that cannot shrink, which softnic accesses faster. */
static void *map_lent(size_t bytes)
{
	int fd = memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && !ftruncate(fd, (off_t)bytes), "memory", "there is not enough");
	must(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "memory", "cannot be sealed");
	return map(bytes, MAP_SHARED, fd);
}

pid_t transport_start_lender(const struct transport *transport, const struct transport_job *job,
			     int *socket)
{
	int sockets[2];
	pid_t pid;

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), "socket",
	     "no descriptors");
	pid = fork();
	must(pid >= 0, "fork", "no process");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sockets[0]);
		transport->lend(sockets[1], map_lent(job->lent_bytes), job);
		_exit(0);
	}
	close(sockets[1]);
	*socket = sockets[0];
	return pid;
}
