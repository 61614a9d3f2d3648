/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UCX's ucp_put and ucp_get, with a worker and an endpoint for each lane. A put is done when
 * flushed. Unless UCX_TLS says otherwise, data goes over rc_verbs, and datagrams set up the
 * connection.
 */
#include "bench/fs/transport.h"

#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define BLOB_MAX 4096

/* Sent by the lender: the addresses of its worker and memory. */
struct fs_ucx_lender {
	uint64_t memory;
	size_t address_size, key_size;
	char address[BLOB_MAX], key[BLOB_MAX];
};

static ucp_context_h context;
static ucp_worker_h worker[LANES];
static ucp_ep_h ep[LANES];
static ucp_rkey_h key[LANES];
static struct fs_ucx_lender lender;
static void *all_buffers;

static void ok(ucs_status_t status, const char *what)
{
	must(status == UCS_OK, what, ucs_status_string(status));
}

static void make_context(void)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
				.features = UCP_FEATURE_RMA };
	ucp_config_t *config;

	ok(ucp_config_read(NULL, NULL, &config), "configuration");
	if (!getenv("UCX_TLS"))
		ok(ucp_config_modify(config, "TLS", "rc_v"), "configuration");
	ok(ucp_init(&params, config, &context), "context");
	ucp_config_release(config);
}

static ucp_worker_h make_worker(void)
{
	ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SERIALIZED };
	ucp_worker_h made;

	ok(ucp_worker_create(context, &params, &made), "worker");
	return made;
}

static ucp_mem_h map(void *memory, size_t bytes)
{
	ucp_mem_map_params_t params = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
					.address = memory,
					.length = bytes };
	ucp_mem_h mapped;

	ok(ucp_mem_map(context, &params, &mapped), "memory");
	return mapped;
}

static void put_blob(char *to, size_t *to_size, const void *blob, size_t size)
{
	must(size <= BLOB_MAX, "address", "too long");
	memcpy(to, blob, size);
	*to_size = size;
}

static void progress_lender(void)
{
	while (ucp_worker_progress(worker[0]))
		;
}

static void ucx_lend(int socket, void *memory, size_t bytes)
{
	ucp_address_t *address;
	size_t size;
	void *packed;

	make_context();
	worker[0] = make_worker();
	ok(ucp_rkey_pack(context, map(memory, bytes), &packed, &size), "key");
	put_blob(lender.key, &lender.key_size, packed, size);
	ok(ucp_worker_get_address(worker[0], &address, &size), "address");
	put_blob(lender.address, &lender.address_size, address, size);
	lender.memory = (uintptr_t)memory;
	tell(socket, &lender, sizeof(lender));
	until_over(socket, progress_lender);
}

/* Returns when @request is done on @lane. */
static void finish(int lane, ucs_status_ptr_t request, const char *what)
{
	ucs_status_t status = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS : UCS_PTR_STATUS(request);

	while (status == UCS_INPROGRESS) {
		ucp_worker_progress(worker[lane]);
		status = ucp_request_check_status(request);
	}
	if (UCS_PTR_IS_PTR(request))
		ucp_request_free(request);
	ok(status, what);
}

static void ucx_read(int lane, size_t size, uint64_t offset)
{
	const ucp_request_param_t param = { 0 };

	finish(lane,
	       ucp_get_nbx(ep[lane], lane_buffer(all_buffers, lane), size, lender.memory + offset,
			   key[lane], &param),
	       "get");
}

static void ucx_write(int lane, size_t size, uint64_t offset)
{
	const ucp_request_param_t param = { 0 };

	finish(lane,
	       ucp_put_nbx(ep[lane], lane_buffer(all_buffers, lane), size, lender.memory + offset,
			   key[lane], &param),
	       "put");
	finish(lane, ucp_ep_flush_nbx(ep[lane], &param), "flush");
}

/* The first transfer of each lane completes its connection. */
static void ucx_borrow(int socket, void *buffers, size_t bytes)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
				   .address = (ucp_address_t *)lender.address };
	int i;

	(void)bytes;
	all_buffers = buffers;
	make_context();
	map(buffers, LANES_BYTES);
	hear(socket, &lender, sizeof(lender));
	for (i = 0; i < LANES; i++) {
		worker[i] = make_worker();
		ok(ucp_ep_create(worker[i], &params, &ep[i]), "endpoint");
		ok(ucp_ep_rkey_unpack(ep[i], lender.key, &key[i]), "key");
		ucx_write(i, LANE_BYTES, 0);
	}
}

const struct fs_transport transport = {
	.name = "ucx",
	.lend = ucx_lend,
	.borrow = ucx_borrow,
	.read = ucx_read,
	.write = ucx_write,
};
