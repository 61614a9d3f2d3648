/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A tenant's questions, which threads may ask at the same time, and what becomes of them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/futex.h"
#include "lib/mux/local/local.h"
#include "lib/mux/proxy/proxy.h"

struct call {
	struct weir_list link;
	uint32_t number;
	struct weir_share_answer *answer;
	int *fds;
	bool is_done;
};

int weir_tenant_ask(struct weir_tenant *tenant, struct weir_share_ask *ask,
		    struct weir_share_answer *answer, int *fds)
{
	struct call call = { .answer = answer, .fds = fds };
	int rc = -ECONNRESET;

	pthread_mutex_lock(&tenant->lock);
	ask->number = call.number = ++tenant->number;
	weir_list_add_tail(&tenant->calls, &call.link);
	if (!tenant->is_lost)
		rc = weir_share_send(tenant->socket, ask, sizeof(*ask), NULL, 0);
	while (!rc && !call.is_done && !tenant->is_lost)
		pthread_cond_wait(&tenant->answered, &tenant->lock);
	weir_list_del(&call.link);
	if (!rc)
		rc = call.is_done ? answer->status : -ECONNRESET;
	/* The kernel leaves out what there is no room for. */
	if (!rc && fds && fds[0] < 0)
		rc = -EMFILE;
	pthread_mutex_unlock(&tenant->lock);
	return rc;
}

static struct call *call_find(const struct weir_tenant *tenant, uint32_t number)
{
	struct weir_list *at;

	for (at = tenant->calls.next; at != &tenant->calls; at = at->next)
		if (weir_list_entry(at, struct call, link)->number == number)
			return weir_list_entry(at, struct call, link);
	return NULL;
}

static void fds_close(const int *fds)
{
	unsigned int i;

	for (i = 0; i < WEIR_SHARE_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void answered(struct weir_tenant *tenant, const struct weir_share_answer *answer,
		     const int *fds)
{
	struct call *call;

	pthread_mutex_lock(&tenant->lock);
	call = call_find(tenant, answer->number);
	if (call) {
		*call->answer = *answer;
		call->is_done = true;
	}
	if (call && call->fds)
		memcpy(call->fds, fds, WEIR_SHARE_FDS_MAX * sizeof(*fds));
	else
		fds_close(fds);
	pthread_cond_broadcast(&tenant->answered);
	pthread_mutex_unlock(&tenant->lock);
}

/* Taken or not, nobody does them any more. */
static void orders_end(struct weir_door *door)
{
	uint32_t state;

	for (state = WEIR_ORDER_GIVEN; state <= WEIR_ORDER_TAKEN; state++) {
		weir_order_answer(&door->order, state, -ECONNRESET);
		weir_order_answer(&door->loan, state, -ECONNRESET);
	}
}

/* The daemon is gone: so are all connections. Their descriptors are pipes that it had open. */
static void lost(struct weir_tenant *tenant)
{
	struct weir_list *at;

	pthread_mutex_lock(&tenant->lock);
	tenant->is_lost = true;
	for (at = tenant->conns.next; at != &tenant->conns; at = at->next) {
		struct weir_door *door =
			weir_list_entry(at, struct weir_tenant_conn, link)->app.door;

		__atomic_store_n(&door->status, -ECONNRESET, __ATOMIC_SEQ_CST);
		weir_ring_tell(&door->out, &(int){ -1 });
		weir_ring_tell(&door->in, &(int){ -1 });
		orders_end(door);
	}
	pthread_cond_broadcast(&tenant->answered);
	pthread_mutex_unlock(&tenant->lock);
}

void *weir_tenant_reader(void *arg)
{
	struct weir_tenant *tenant = arg;
	struct weir_share_answer answer;
	int fds[WEIR_SHARE_FDS_MAX];

	while (!weir_share_recv(tenant->socket, &answer, sizeof(answer), fds))
		answered(tenant, &answer, fds);
	lost(tenant);
	return NULL;
}
