/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * client-TRANSPORT MEBIBYTES MOUNTPOINT - a file in another process's memory, by RDMA
 *
 * This program starts the other process, which ends with it. Without an RDMA device run `weir run
 * -- client-TRANSPORT ...`. Each transport is a separate program, because some of their libraries
 * change the whole process.
 */
#include "bench/onefile.h"
#include "bench/transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LANES 4 /* as many as threads of weir mount */

static const struct transport *const transport = &TRANSPORT;

static void move(unsigned int lane, bool is_read, void *data, size_t size, uint64_t offset)
{
	transport->post((int)lane, is_read, data, size, offset);
	while (!transport->reap((int)lane))
		;
	if (!is_read && transport->settle)
		transport->settle((int)lane);
}

static const char *remote_read(unsigned int lane, char *data, size_t size, uint64_t offset)
{
	move(lane, true, data, size, offset);
	return data;
}

static void remote_write(unsigned int lane, const char *data, size_t size, uint64_t offset)
{
	move(lane, false, (void *)(uintptr_t)data, size, offset);
}

static const struct onefile_ops ops = { .read = remote_read, .write = remote_write };

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	struct transport_job job = {
		.lanes = LANES,
		.depth = 1,
		.request_bytes = ONEFILE_IO_MAX,
		.buffers_bytes = (size_t)LANES * ONEFILE_BUFFER,
	};
	int status, socket;
	void *buffers;
	pid_t lender;

	if (!bytes) {
		fprintf(stderr, "Usage: client-%s MEBIBYTES MOUNTPOINT\n", transport->name);
		return 2;
	}
	/* libfabric loads libraries that end the process on these signals */
	onefile_block_signals();
	job.lent_bytes = bytes;
	lender = transport_start_lender(transport, &job, &socket);
	buffers = transport_memory(job.buffers_bytes);
	transport->borrow(socket, buffers, &job);
	status = onefile_run(transport->name, argv[2], bytes, LANES, buffers, &ops);
	close(socket);
	waitpid(lender, NULL, 0);
	return status;
}
