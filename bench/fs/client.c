/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * client-TRANSPORT MEBIBYTES MOUNTPOINT - a file in another process's memory, by RDMA
 *
 * This program starts the other process, which ends with it. Without an RDMA device run `weir run
 * -- client-TRANSPORT ...`. Each transport is a separate program, because some of their libraries
 * change the whole process.
 */
#include "bench/fs/transport.h"
#include "bench/onefile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void must(bool good, const char *what, const char *why)
{
	if (good)
		return;
	fprintf(stderr, "client-%s: %s: %s\n", transport.name, what, why);
	_exit(1);
}

void tell(int socket, const void *data, size_t size)
{
	must(send(socket, data, size, MSG_NOSIGNAL) == (ssize_t)size, "socket",
	     "the other process has ended");
}

void hear(int socket, void *data, size_t size)
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

static const char *remote_read(unsigned int lane, char *data, size_t size, uint64_t offset)
{
	transport.read((int)lane, size, offset);
	return data;
}

/* The data is already in the lane's buffer. */
static void remote_write(unsigned int lane, const char *data, size_t size, uint64_t offset)
{
	(void)data;
	transport.write((int)lane, size, offset);
}

static const struct onefile_ops ops = { .read = remote_read, .write = remote_write };

/* Touched, so that no first touch is measured. */
static void *map(size_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, 0);

	must(at != MAP_FAILED, "memory", "there is not enough");
	return at;
}

static void *memory(size_t bytes)
{
	return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* As weir's donor: a memory file that cannot shrink, which softnic accesses faster. */
static void *lent(size_t bytes)
{
	int fd = memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && !ftruncate(fd, (off_t)bytes), "memory", "there is not enough");
	must(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "memory", "cannot be sealed");
	return map(bytes, MAP_SHARED, fd);
}

static pid_t start_lender(int *socket, size_t bytes)
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
		transport.lend(sockets[1], lent(bytes), bytes);
		_exit(0);
	}
	close(sockets[1]);
	*socket = sockets[0];
	return pid;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	int status, socket;
	void *buffers;
	pid_t lender;

	if (!bytes) {
		fprintf(stderr, "Usage: client-%s MEBIBYTES MOUNTPOINT\n", transport.name);
		return 2;
	}
	/* libfabric loads libraries that end the process on these signals */
	onefile_block_signals();
	lender = start_lender(&socket, bytes);
	buffers = memory(LANES_BYTES);
	transport.borrow(socket, buffers, bytes);
	status = onefile_run(transport.name, argv[2], bytes, LANES, buffers, &ops);
	close(socket);
	waitpid(lender, NULL, 0);
	return status;
}
