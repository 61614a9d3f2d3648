/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UCX's ucp_put and ucp_get, with a worker and an endpoint for each lane. A put ends when its
 * buffer may be reused, and takes effect when flushed. Unless UCX_TLS says otherwise, data goes
 * over rc_verbs, and datagrams set up the connection.
 */
#include "bench/transport/transport.h"

#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define BLOB_MAX 4096

/* Sent by the lender: the addresses of its worker and memory. */
struct ucx_lender {
	uint64_t memory;
	uint32_t address_size, key_size;
	char address[BLOB_MAX], key[BLOB_MAX];
};

/* A lane and its requests. */
struct ucx_lane {
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_rkey_h key;
	int done; /* completed and not yet reported; used by the lane's thread only */
};

static ucp_context_h context;
static struct ucx_lane lanes[LANES_MAX];
static struct ucx_lender lender;

static void ok(ucs_status_t status, const char *what)
{
	must(status == UCS_OK, what, ucs_status_string(status));
}

static ucp_worker_h make_worker(void)
{
	ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SERIALIZED };
	ucp_worker_h worker;

	ok(ucp_worker_create(context, &params, &worker), "worker");
	return worker;
}

static ucp_mem_h make(void *memory, size_t bytes)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
				.features = UCP_FEATURE_RMA };
	ucp_mem_map_params_t map = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						   UCP_MEM_MAP_PARAM_FIELD_LENGTH,
				     .address = memory,
				     .length = bytes };
	ucp_config_t *config;
	ucp_mem_h mapped;

	ok(ucp_config_read(NULL, NULL, &config), "configuration");
	if (!getenv("UCX_TLS"))
		ok(ucp_config_modify(config, "TLS", "rc_v"), "configuration");
	ok(ucp_init(&params, config, &context), "context");
	ucp_config_release(config);
	ok(ucp_mem_map(context, &map, &mapped), "memory");
	return mapped;
}

static uint32_t put_blob(char *to, const void *blob, size_t bytes)
{
	must(bytes <= BLOB_MAX, "address", "too long");
	memcpy(to, blob, bytes);
	return (uint32_t)bytes;
}

static void progress_lender(void)
{
	while (ucp_worker_progress(lanes[0].worker))
		;
}

static void ucx_lend(int socket, void *memory, const struct transport_job *job)
{
	ucp_mem_h mapped = make(memory, job->lent_bytes);
	ucp_address_t *address;
	size_t bytes;
	void *packed;

	lanes[0].worker = make_worker();
	ok(ucp_rkey_pack(context, mapped, &packed, &bytes), "key");
	lender.key_size = put_blob(lender.key, packed, bytes);
	ok(ucp_worker_get_address(lanes[0].worker, &address, &bytes), "address");
	lender.address_size = put_blob(lender.address, address, bytes);
	lender.memory = (uintptr_t)memory;
	send_all(socket, &lender, sizeof(lender));
	until_over(socket, progress_lender);
}

static void request_done(void *request, ucs_status_t status, void *arg)
{
	struct ucx_lane *lane = arg;

	ok(status, "request");
	lane->done++;
	ucp_request_free(request);
}

static void ucx_post(int number, bool is_read, void *buffer, size_t size, uint64_t offset)
{
	struct ucx_lane *lane = &lanes[number];
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = request_done,
		.user_data = lane,
	};
	uint64_t at = lender.memory + offset;
	ucs_status_ptr_t request =
		is_read ? ucp_get_nbx(lane->ep, buffer, size, at, lane->key, &param) :
			  ucp_put_nbx(lane->ep, buffer, size, at, lane->key, &param);

	if (UCS_PTR_IS_PTR(request))
		return;
	ok(UCS_PTR_STATUS(request), "post");
	lane->done++;
}

static int ucx_reap(int number)
{
	struct ucx_lane *lane = &lanes[number];
	int done;

	ucp_worker_progress(lane->worker);
	done = lane->done;
	lane->done = 0;
	return done;
}

static void ucx_settle(int number)
{
	const ucp_request_param_t param = { 0 };
	ucs_status_ptr_t request = ucp_ep_flush_nbx(lanes[number].ep, &param);
	ucs_status_t status = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS : UCS_PTR_STATUS(request);

	while (status == UCS_INPROGRESS) {
		ucp_worker_progress(lanes[number].worker);
		status = ucp_request_check_status(request);
	}
	if (UCS_PTR_IS_PTR(request))
		ucp_request_free(request);
	ok(status, "flush");
}

/* The first transfer of each lane completes its connection. */
static void ucx_borrow(int socket, void *buffers, const struct transport_job *job)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
				   .address = (ucp_address_t *)lender.address };
	int i, in_flight;

	make(buffers, job->buffers_bytes);
	receive_all(socket, &lender, sizeof(lender));
	for (i = 0; i < job->lanes; i++) {
		lanes[i].worker = make_worker();
		ok(ucp_ep_create(lanes[i].worker, &params, &lanes[i].ep), "endpoint");
		ok(ucp_ep_rkey_unpack(lanes[i].ep, lender.key, &lanes[i].key), "key");
		ucx_post(i, false, buffers, job->request_bytes, 0);
		for (in_flight = 1; in_flight;)
			in_flight -= ucx_reap(i);
		ucx_settle(i);
	}
}

const struct transport transport_ucx = {
	.name = "ucx",
	.lend = ucx_lend,
	.borrow = ucx_borrow,
	.post = ucx_post,
	.reap = ucx_reap,
	.settle = ucx_settle,
};
