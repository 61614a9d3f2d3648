/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of a tenant, which several threads may have outstanding at once. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/futex.h"
#include "lib/mux/local/local.h"
#include "lib/mux/proxy/proxy.h"

struct proxy_call {
	struct weir_list link;
	uint32_t number;
	struct weir_mux_ipc_reply *answer;
	int *fds;
	bool is_done;
};

int weir_mux_proxy_call(struct weir_mux_proxy *tenant, struct weir_mux_ipc_request *ask,
			struct weir_mux_ipc_reply *answer, int *fds)
{
	struct proxy_call call = { .answer = answer, .fds = fds };
	int rc = -ECONNRESET;

	pthread_mutex_lock(&tenant->lock);
	ask->number = call.number = ++tenant->number;
	weir_list_add_tail(&tenant->calls, &call.link);
	if (!tenant->is_lost)
		rc = weir_mux_ipc_send(tenant->socket, ask, sizeof(*ask), NULL, 0);
	while (!rc && !call.is_done && !tenant->is_lost)
		pthread_cond_wait(&tenant->answered, &tenant->lock);
	weir_list_del(&call.link);
	if (!rc)
		rc = call.is_done ? answer->status : -ECONNRESET;
	/* The kernel drops a descriptor for which there is no room. */
	if (!rc && fds && fds[0] < 0)
		rc = -EMFILE;
	pthread_mutex_unlock(&tenant->lock);
	return rc;
}

static struct proxy_call *find_call(const struct weir_mux_proxy *tenant, uint32_t number)
{
	struct weir_list *at;

	for (at = tenant->calls.next; at != &tenant->calls; at = at->next)
		if (weir_list_entry(at, struct proxy_call, link)->number == number)
			return weir_list_entry(at, struct proxy_call, link);
	return NULL;
}

static void close_fds(const int *fds)
{
	unsigned int i;

	for (i = 0; i < WEIR_MUX_IPC_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void answered(struct weir_mux_proxy *tenant, const struct weir_mux_ipc_reply *answer,
		     const int *fds)
{
	struct proxy_call *call;

	pthread_mutex_lock(&tenant->lock);
	call = find_call(tenant, answer->number);
	if (call) {
		*call->answer = *answer;
		call->is_done = true;
	}
	if (call && call->fds)
		memcpy(call->fds, fds, WEIR_MUX_IPC_FDS_MAX * sizeof(*fds));
	else
		close_fds(fds);
	pthread_cond_broadcast(&tenant->answered);
	pthread_mutex_unlock(&tenant->lock);
}

/* Completes all operations, taken or not: the daemon is gone. */
static void cancel_ops(struct weir_mux_conn_shm *shm)
{
	uint32_t state;

	for (state = WEIR_MUX_RDMA_OP_SUBMITTED; state <= WEIR_MUX_RDMA_OP_STARTED; state++) {
		weir_mux_rdma_op_desc_cancel(&shm->rdma_op, state, -ECONNRESET);
		weir_mux_rdma_op_desc_cancel(&shm->zc_send, state, -ECONNRESET);
	}
}

/*
 * The daemon is gone, and so are all connections. Descriptors are pipes whose other end the
 * daemon held.
 */
static void fail_all(struct weir_mux_proxy *tenant)
{
	struct weir_list *at;

	pthread_mutex_lock(&tenant->lock);
	tenant->is_lost = true;
	for (at = tenant->conns.next; at != &tenant->conns; at = at->next) {
		struct weir_mux_conn_shm *shm =
			weir_list_entry(at, struct weir_mux_proxy_conn, link)->app.shm;

		__atomic_store_n(&shm->status, -ECONNRESET, __ATOMIC_SEQ_CST);
		weir_mux_ring_wake(&shm->out, &(int){ -1 });
		weir_mux_ring_wake(&shm->in, &(int){ -1 });
		cancel_ops(shm);
	}
	pthread_cond_broadcast(&tenant->answered);
	pthread_mutex_unlock(&tenant->lock);
}

void *weir_mux_proxy_reader_run(void *arg)
{
	struct weir_mux_proxy *tenant = arg;
	struct weir_mux_ipc_reply answer;
	int fds[WEIR_MUX_IPC_FDS_MAX];

	while (!weir_mux_ipc_recv(tenant->socket, &answer, sizeof(answer), fds))
		answered(tenant, &answer, fds);
	fail_all(tenant);
	return NULL;
}
