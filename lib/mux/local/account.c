/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accounts and account groups. All limits are per group, so a user with many processes gets no
 * more than a user with one.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"

static void group_init(struct weir_mux_account_group *group, uint64_t id)
{
	*group = (struct weir_mux_account_group){ .id = id,
						  .weight = 1,
						  .bytes_max = UINT64_MAX,
						  .nr_conns_max = UINT_MAX,
						  .nr_remotes_max = UINT_MAX };
	weir_list_init(&group->link);
}

void weir_mux_account_init(struct weir_mux_account *account, struct weir_mux_local *mux)
{
	*account = (struct weir_mux_account){ .mux = mux, .group = &account->own, .socket = -1 };
	group_init(&account->own, 0);
	weir_mux_cond_init(&account->changed);
	weir_list_init(&account->slabs);
	weir_list_init(&account->mrs);
	weir_list_init(&account->pending_opens);
}

void weir_mux_account_fini(struct weir_mux_account *account)
{
	struct weir_mux_local *mux = account->mux;

	pthread_mutex_lock(&mux->lock);
	while (account->is_adding_slab || account->has_open_thread)
		pthread_cond_wait(&account->changed, &mux->lock);
	pthread_mutex_unlock(&mux->lock);
	while (!weir_list_is_empty(&account->slabs))
		weir_mux_ring_slab_free(
			weir_list_entry(account->slabs.next, struct weir_mux_ring_slab, link));
	while (!weir_list_is_empty(&account->mrs))
		weir_mux_mr_free(weir_list_entry(account->mrs.next, struct weir_mux_mr, link));
	pthread_cond_destroy(&account->changed);
}

void weir_mux_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool weir_mux_account_is_gone(const struct weir_mux_account *account)
{
	struct pollfd fd = { .fd = account->socket };

	return account->socket >= 0 && poll(&fd, 1, 0) == 1 && fd.revents & (POLLHUP | POLLERR);
}

/* The process's end shows on the socket, changes on the condition: alternate between the two. */
int weir_mux_account_wait(struct weir_mux_account *account, pthread_cond_t *changed,
			  uint64_t deadline_ns)
{
	uint64_t now_ns = weir_now_ns(), until_ns = deadline_ns;
	struct timespec until;

	if (deadline_ns <= now_ns)
		return -ETIMEDOUT;
	if (weir_mux_account_is_gone(account))
		return -ECONNRESET;
	if (account->socket >= 0 &&
	    deadline_ns - now_ns > WEIR_MUX_ACCOUNT_CHECK_MS * WEIR_NS_PER_MS)
		until_ns = now_ns + WEIR_MUX_ACCOUNT_CHECK_MS * WEIR_NS_PER_MS;
	until = weir_timespec(until_ns);
	pthread_cond_timedwait(changed, &account->mux->lock, &until);
	return 0;
}

struct weir_mux_account_group *weir_mux_account_group_get(struct weir_mux_local *mux, uint64_t id)
{
	struct weir_mux_account_group *group;
	struct weir_list *at;

	for (at = mux->groups.next; at != &mux->groups; at = at->next) {
		group = weir_list_entry(at, struct weir_mux_account_group, link);
		if (group->id == id)
			return group;
	}
	group = malloc(sizeof(*group));
	if (!group)
		return NULL;
	group_init(group, id);
	weir_list_add_tail(&mux->groups, &group->link);
	return group;
}

/* Makes the worker recheck the group's connections, which may wait for the rate limit. */
static void notify_conns(const struct weir_mux_account_group *group, struct weir_mux_remote *remote)
{
	struct weir_list *at;

	for (at = remote->conns.next; at != &remote->conns; at = at->next) {
		struct weir_mux_vconn *conn =
			weir_list_entry(at, struct weir_mux_vconn, remote_link);

		if (conn->account->group == group && !conn->is_detached &&
		    weir_mux_vconn_was_opened(conn))
			weir_mux_vconn_notify(conn);
	}
}

static void notify_all_conns(const struct weir_mux_account_group *group, struct weir_mux_local *mux)
{
	struct weir_list *at;

	for (at = mux->remotes.next; at != &mux->remotes; at = at->next)
		notify_conns(group, weir_list_entry(at, struct weir_mux_remote, link));
}

void weir_mux_account_group_limit(struct weir_mux_local *mux, struct weir_mux_account_group *group,
				  unsigned int weight, uint64_t bytes_s)
{
	if (group->weight == weight &&
	    __atomic_load_n(&group->rate.bytes_s, __ATOMIC_RELAXED) == bytes_s)
		return;
	__atomic_store_n(&group->weight, weight, __ATOMIC_RELAXED);
	weir_mux_rate_limit_set(&group->rate, bytes_s);
	notify_all_conns(group, mux);
}

void weir_mux_account_set_group(struct weir_mux_account *account,
				struct weir_mux_account_group *group)
{
	if (account->group == group)
		return;
	account->group->bytes -= account->bytes;
	account->group->nr_conns -= account->nr_conns;
	account->group->nr_mrs -= account->nr_mrs;
	group->bytes += account->bytes;
	group->nr_conns += account->nr_conns;
	group->nr_mrs += account->nr_mrs;
	__atomic_store_n(&account->group, group, __ATOMIC_RELEASE);
	notify_all_conns(group, account->mux);
}

int weir_mux_account_take_bytes(struct weir_mux_account *account, uint64_t bytes)
{
	struct weir_mux_account_group *group = account->group;

	/* The group may be over its limit, if the limit was lowered or an account joined. */
	if (group->bytes > group->bytes_max || bytes > group->bytes_max - group->bytes)
		return -EDQUOT;
	group->bytes += bytes;
	account->bytes += bytes;
	return 0;
}

void weir_mux_account_give_bytes(struct weir_mux_account *account, uint64_t bytes)
{
	account->group->bytes -= bytes;
	account->bytes -= bytes;
}

int weir_mux_account_take_mr(struct weir_mux_account *account, uint64_t bytes)
{
	int rc = account->group->nr_mrs < WEIR_MUX_MRS_MAX ?
			 weir_mux_account_take_bytes(account, bytes) :
			 -EDQUOT;

	if (rc)
		return rc;
	account->group->nr_mrs++;
	account->nr_mrs++;
	return 0;
}

void weir_mux_account_give_mr(struct weir_mux_account *account, uint64_t bytes)
{
	weir_mux_account_give_bytes(account, bytes);
	account->group->nr_mrs--;
	account->nr_mrs--;
}

int weir_mux_account_take_conn(struct weir_mux_account *account)
{
	if (account->group->nr_conns >= account->group->nr_conns_max)
		return -EDQUOT;
	account->group->nr_conns++;
	account->nr_conns++;
	return 0;
}

void weir_mux_account_give_conn(struct weir_mux_account *account)
{
	account->group->nr_conns--;
	account->nr_conns--;
}

void weir_mux_account_abort_closed(struct weir_mux_account *account)
{
	struct weir_mux_local *mux = account->mux;
	unsigned int i;

	for (i = 0; i < mux->options.connections_max; i++)
		if (mux->table[i] && mux->table[i]->account == account && mux->table[i]->is_closed)
			weir_mux_vconn_abort(mux->table[i]);
}
