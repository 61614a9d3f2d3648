/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor and a session, with blocking calls, on memory registered beforehand as in all transports.
 */
#include "bench/fs/transport.h"

#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

static struct weir_region *region;
static struct weir_memory *memory;
static void *all_buffers;

/* The donor has its own memory. */
static void weir_lend(int socket, void *unused, size_t bytes)
{
	struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = "127.0.0.1:0",
		.memory_bytes = bytes + (64u << 20),
		.no_huge_pages = true, /* as weir serve on softnic */
	};
	struct weir_donor_info info;
	struct weir_donor *donor;
	struct weir_error error;

	(void)unused;
	must(!weir_donor_open(&options, &donor, &error), "donor", error.text);
	weir_donor_info(donor, &info, sizeof(info));
	tell(socket, info.address, sizeof(info.address));
	until_over(socket, NULL);
	weir_donor_close(donor);
}

/* BENCH_FS_PRESET=single: without the engine's handling of concurrent requests. */
static struct weir_session_options options_of_session(void)
{
	const char *preset = getenv("BENCH_FS_PRESET");
	bool single = preset && !strcmp(preset, "single");

	must(!preset || single, "BENCH_FS_PRESET", "single, or nothing");
	return (struct weir_session_options){
		.size = sizeof(struct weir_session_options),
		.preset = single ? WEIR_PRESET_SINGLE : WEIR_PRESET_DEFAULT,
	};
}

static void weir_borrow(int socket, void *buffers, size_t bytes)
{
	const struct weir_session_options options = options_of_session();
	struct weir_session *session;
	char address[64], zeroes[4096] = "";
	struct weir_error error;
	uint64_t at;

	hear(socket, address, sizeof(address));
	must(!weir_session_open(address, &options, &session, &error), "session", error.text);
	must(!weir_region_create(session, NULL, bytes, 0, &region, &error), "region", error.text);
	for (at = 0; at < bytes; at += sizeof(zeroes)) /* touched, as in the other transports */
		must(!weir_write(region, at, zeroes, sizeof(zeroes)), "write", "failed");
	must(!weir_memory_register(session, buffers, LANES_BYTES, &memory, &error), "memory",
	     error.text);
	all_buffers = buffers;
}

static struct weir_iov lane_iov(int lane, size_t size)
{
	return (struct weir_iov){ lane_buffer(all_buffers, lane), size, memory };
}

static void weir_transport_read(int lane, size_t size, uint64_t offset)
{
	struct weir_iov iov = lane_iov(lane, size);
	int rc = weir_readv(region, offset, &iov, 1);

	must(!rc, "read", weir_strerror(rc));
}

static void weir_transport_write(int lane, size_t size, uint64_t offset)
{
	struct weir_iov iov = lane_iov(lane, size);
	int rc = weir_writev(region, offset, &iov, 1);

	must(!rc, "write", weir_strerror(rc));
}

const struct fs_transport transport = {
	.name = "weir",
	.lend = weir_lend,
	.borrow = weir_borrow,
	.read = weir_transport_read,
	.write = weir_transport_write,
};
