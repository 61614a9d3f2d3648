/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions: memory for RDMA reads and writes. The device's keys cover the whole region. The
 * peer's mux, trusted because of the key, enforces the granted range before posting: see
 * rdma_op.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* Maps and registers the memory. */
static int map_mr(struct weir_mux_mr *mr)
{
	struct weir_mux_account *account = mr->account;

	mr->base = weir_mux_account_map(account, mr->length, &mr->fd);
	if (mr->base)
		mr->mr = ibv_reg_mr(account->mux->pd, mr->base, mr->length, ACCESS);
	return mr->mr ? 0 : -ENOMEM;
}

/* The MR is in no list. */
static void destroy_mr(struct weir_mux_mr *mr)
{
	struct weir_mux_account *account = mr->account;
	const size_t length = mr->length;

	if (mr->mr)
		ibv_dereg_mr(mr->mr);
	if (mr->base)
		munmap(mr->base, length);
	if (mr->fd >= 0)
		close(mr->fd);
	free(mr);
	pthread_mutex_lock(&account->mux->lock);
	weir_mux_account_give_mr(account, length);
	pthread_mutex_unlock(&account->mux->lock);
}

int weir_mux_mr_new(struct weir_mux_account *account, size_t length, struct weir_mux_mr **out)
{
	struct weir_mux_local *mux = account->mux;
	struct weir_mux_mr *mr;
	int rc;

	if (!length)
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	*mr = (struct weir_mux_mr){ .account = account, .length = length, .fd = -1 };
	pthread_mutex_lock(&mux->lock);
	rc = weir_mux_account_take_mr(account, length);
	pthread_mutex_unlock(&mux->lock);
	if (rc) {
		free(mr);
		return rc;
	}
	rc = map_mr(mr);
	if (rc) {
		destroy_mr(mr);
		return rc;
	}
	pthread_mutex_lock(&mux->lock);
	mr->number = ++account->last_mr;
	weir_list_add_tail(&account->mrs, &mr->link);
	pthread_mutex_unlock(&mux->lock);
	*out = mr;
	return 0;
}

void weir_mux_mr_free(struct weir_mux_mr *mr)
{
	struct weir_mux_local *mux = mr->account->mux;

	pthread_mutex_lock(&mux->lock);
	weir_list_del(&mr->link);
	pthread_mutex_unlock(&mux->lock);
	destroy_mr(mr);
}

struct weir_mux_mr *weir_mux_mr_find(const struct weir_mux_account *account, uint32_t number)
{
	struct weir_list *at;

	for (at = account->mrs.next; at != &account->mrs; at = at->next)
		if (weir_list_entry(at, struct weir_mux_mr, link)->number == number)
			return weir_list_entry(at, struct weir_mux_mr, link);
	return NULL;
}

static bool conn_grants_mr(const struct weir_mux_vconn *conn, const struct weir_mux_mr *mr)
{
	unsigned int i;

	for (i = 0; i < WEIR_MUX_GRANTS_MAX; i++)
		if (conn->grants[i].state && conn->grants[i].mr == mr)
			return true;
	return false;
}

/* Whether a connection still open here grants the peer access. */
static bool mr_is_granted(const struct weir_mux_mr *mr)
{
	const struct weir_mux_local *mux = mr->account->mux;
	unsigned int i;

	for (i = 0; i < mux->options.connections_max; i++)
		if (mux->table[i] && !mux->table[i]->is_closed && conn_grants_mr(mux->table[i], mr))
			return true;
	return false;
}

int weir_mux_mr_close(struct weir_mux_account *account, uint32_t number)
{
	struct weir_mux_local *mux = account->mux;
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), mux->options.timeout_ns);
	struct weir_mux_mr *mr;
	int rc = 0;

	pthread_mutex_lock(&mux->lock);
	mr = weir_mux_mr_find(account, number);
	if (!mr)
		rc = -EINVAL;
	while (!rc && mr->refs) {
		if (mr_is_granted(mr))
			rc = -EBUSY;
		else
			rc = weir_mux_account_wait(account, &account->changed, deadline_ns);
	}
	if (!rc)
		weir_list_del(&mr->link); /* cannot be found any more */
	pthread_mutex_unlock(&mux->lock);
	if (!rc)
		destroy_mr(mr);
	return rc;
}
