/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor and a session, with blocking calls, on memory registered beforehand as in all transports.
 */
#include "bench/transport/transport.h"

#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

static struct weir_region *region;
static struct weir_memory *memory;

/* The donor has its own memory. */
static void weir_lend(int socket, void *unused, const struct transport_job *job)
{
	struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = "127.0.0.1:0",
		.memory_bytes = job->lent_bytes + (64u << 20),
		.no_huge_pages = true, /* as weir serve on softnic */
	};
	struct weir_donor_info info;
	struct weir_donor *donor;
	struct weir_error error;

	(void)unused;
	must(!weir_donor_open(&options, &donor, &error), "donor", error.text);
	weir_donor_info(donor, &info, sizeof(info));
	send_all(socket, info.address, sizeof(info.address));
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

static void weir_borrow(int socket, void *buffers, const struct transport_job *job)
{
	const struct weir_session_options options = options_of_session();
	struct weir_session *session;
	char address[64], zeroes[4096] = "";
	struct weir_error error;
	uint64_t at;

	receive_all(socket, address, sizeof(address));
	must(!weir_session_open(address, &options, &session, &error), "session", error.text);
	must(!weir_region_create(session, NULL, job->lent_bytes, 0, &region, &error), "region",
	     error.text);
	/* touched, as in the other transports */
	for (at = 0; at < job->lent_bytes; at += sizeof(zeroes))
		must(!weir_write(region, at, zeroes, sizeof(zeroes)), "write", "failed");
	must(!weir_memory_register(session, buffers, job->buffers_bytes, &memory, &error), "memory",
	     error.text);
}

static void weir_post(int lane, bool is_read, void *buffer, size_t size, uint64_t offset)
{
	struct weir_iov iov = { buffer, size, memory };
	int rc = is_read ? weir_readv(region, offset, &iov, 1) :
			   weir_writev(region, offset, &iov, 1);

	(void)lane;
	must(!rc, is_read ? "read" : "write", weir_strerror(rc));
}

/* The blocking call has ended already. */
static int weir_reap(int lane)
{
	(void)lane;
	return 1;
}

const struct transport transport_weir = {
	.name = "weir",
	.lend = weir_lend,
	.borrow = weir_borrow,
	.post = weir_post,
	.reap = weir_reap,
};
