/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * client-TRANSPORT MEBIBYTES MOUNTPOINT - a file in another process's memory, by RDMA
 *
 * The other process is started by this one and ends with it. Without an RDMA device run it as
 * `weir run -- client-TRANSPORT ...`. Each transport is a program of its own: some of their libraries
 * change the process that they are in.
 */
#include "bench/fs/transport.h"
#include "bench/onefile.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *buffers;

/* Lanes that nobody uses. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t put;
	int lane[LANES];
	int count;
} lanes = { .lock = PTHREAD_MUTEX_INITIALIZER, .put = PTHREAD_COND_INITIALIZER };

void must(bool good, const char *what, const char *why)
{
	if (good)
		return;
	fprintf(stderr, "client-%s: %s: %s\n", transport.name, what, why);
	_exit(1);
}

void tell(int socket, const void *data, size_t size)
{
	must(send(socket, data, size, MSG_NOSIGNAL) == (ssize_t)size, "socket", "the other process has ended");
}

void hear(int socket, void *data, size_t size)
{
	must(recv(socket, data, size, MSG_WAITALL) == (ssize_t)size, "socket", "the other process has ended");
}

void until_over(int socket, void (*turn)(void))
{
	struct pollfd fd = { .fd = socket, .events = POLLIN };

	while (!poll(&fd, 1, turn ? 1 : -1))
		turn();
}

static int lane_get(void)
{
	int lane;

	pthread_mutex_lock(&lanes.lock);
	while (!lanes.count)
		pthread_cond_wait(&lanes.put, &lanes.lock);
	lane = lanes.lane[--lanes.count];
	pthread_mutex_unlock(&lanes.lock);
	return lane;
}

static void lane_put(int lane)
{
	pthread_mutex_lock(&lanes.lock);
	lanes.lane[lanes.count++] = lane;
	pthread_cond_signal(&lanes.put);
	pthread_mutex_unlock(&lanes.lock);
}

static void remote_read(fuse_req_t req, size_t size, off_t offset)
{
	int lane = lane_get();

	if (size)
		transport.read(lane, size, (uint64_t)offset);
	fuse_reply_buf(req, lane_buffer(buffers, lane), size);
	lane_put(lane);
}

static void remote_write(fuse_req_t req, struct fuse_bufvec *from, size_t size, off_t offset)
{
	struct fuse_bufvec to = FUSE_BUFVEC_INIT(size);
	int lane = lane_get();
	ssize_t copied;

	to.buf[0].mem = lane_buffer(buffers, lane);
	copied = fuse_buf_copy(&to, from, 0);
	if (copied > 0)
		transport.write(lane, (size_t)copied, (uint64_t)offset);
	if (copied < 0)
		fuse_reply_err(req, (int)-copied);
	else
		fuse_reply_write(req, (size_t)copied);
	lane_put(lane);
}

static const struct onefile_ops ops = { .read = remote_read, .write = remote_write };

/* Touched: what is measured is not the first time. */
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

/* As weir's donor has it: a file in memory that cannot shrink, which softnic reaches more quickly. */
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

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), "socket", "no descriptors");
	pid = fork();
	must(pid >= 0, "fork", "no process");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGINT, SIG_IGN); /* of the terminal: the mount ends first */
		close(sockets[0]);
		transport.lend(sockets[1], lent(bytes), bytes);
		_exit(0);
	}
	close(sockets[1]);
	*socket = sockets[0];
	return pid;
}

/* libfabric brings libraries that end the process on these, and would leave the mount behind. */
static void reclaim_signals(void)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	int status, socket;
	pid_t lender;

	if (!bytes) {
		fprintf(stderr, "Usage: client-%s MEBIBYTES MOUNTPOINT\n", transport.name);
		return 2;
	}
	lender = start_lender(&socket, bytes);
	buffers = memory((size_t)LANES * LANE_BYTES);
	transport.borrow(socket, buffers, bytes);
	while (lanes.count < LANES)
		lane_put(lanes.count);
	reclaim_signals();
	status = onefile_run(transport.name, argv[2], bytes, LANES, &ops);
	close(socket);
	waitpid(lender, NULL, 0);
	return status;
}
