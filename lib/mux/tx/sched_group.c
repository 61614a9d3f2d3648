/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scheduler groups: the connections of an account group share a remote as a single party, so a
 * user with many connections or processes gets no more than a user with one. When an account
 * moves to another group, the connections move too, with all bytes in flight and the deficit
 * used in the round.
 *
 * A remote counts against the group whose connect created it. When the group has no connection
 * left, the count moves to another group with an outgoing connection.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/mux/tx/post.h"

static struct weir_mux_sched_group *find_sched_group(const struct weir_mux_remote *remote,
						     const struct weir_mux_account_group *group,
						     uint8_t class)
{
	struct weir_list *at;

	for (at = remote->sched_groups.next; at != &remote->sched_groups; at = at->next) {
		struct weir_mux_sched_group *sched_group =
			weir_list_entry(at, struct weir_mux_sched_group, link);

		if (sched_group->group == group && sched_group->bundle.class == class)
			return sched_group;
	}
	return NULL;
}

/*
 * Finds or creates the group of the connection's account and takes a reference. NULL: no memory.
 * With mux->lock held.
 */
static struct weir_mux_sched_group *get_sched_group(const struct weir_mux_vconn *conn)
{
	struct weir_mux_sched_group *sched_group =
		find_sched_group(conn->remote, conn->account->group, conn->class);

	if (!sched_group) {
		sched_group = calloc(1, sizeof(*sched_group));
		if (!sched_group)
			return NULL;
		sched_group->group = conn->account->group;
		weir_list_init(&sched_group->pace_link);
		weir_sched_bundle_init(&sched_group->bundle, conn->class,
				       weir_mux_account_weight(conn->account));
		weir_list_add(&conn->remote->sched_groups, &sched_group->link);
	}
	sched_group->refs++;
	return sched_group;
}

static void put_sched_group(struct weir_mux_sched_group *sched_group)
{
	if (--sched_group->refs)
		return;
	weir_list_del(&sched_group->link);
	free(sched_group);
}

/*
 * Moves the count if the group has no connection left. The last group keeps the count until the
 * remote ends or another group connects.
 */
static void charge_remote(struct weir_mux_remote *remote)
{
	struct weir_mux_account_group *heir = NULL;
	struct weir_list *at;

	if (!remote->group || weir_list_is_empty(&remote->sched_groups))
		return;
	for (at = remote->sched_groups.next; at != &remote->sched_groups; at = at->next) {
		struct weir_mux_sched_group *sched_group =
			weir_list_entry(at, struct weir_mux_sched_group, link);

		if (sched_group->group == remote->group)
			return;
		if (sched_group->nr_ours)
			heir = sched_group->group;
	}
	weir_mux_remote_uncharge(remote);
	if (!heir)
		return;
	remote->group = heir;
	heir->nr_remotes++;
}

int weir_mux_sched_group_join(struct weir_mux_vconn *conn)
{
	conn->sched_group = get_sched_group(conn);
	return conn->sched_group ? 0 : -ENOMEM;
}

void weir_mux_sched_group_leave(struct weir_mux_vconn *conn)
{
	if (!conn->sched_group)
		return;
	conn->sched_group->nr_ours -= conn->is_ours;
	put_sched_group(conn->sched_group);
	charge_remote(conn->remote);
}

void weir_mux_sched_group_charge(struct weir_mux_vconn *conn)
{
	conn->is_ours = true;
	conn->sched_group->nr_ours++;
	charge_remote(conn->remote);
}

/* A group with nothing to send must not wait for its rate limit. */
static void unpace_if_idle(struct weir_mux_sched_group *sched_group)
{
	if (!weir_sched_bundle_is_wanted(&sched_group->bundle))
		weir_list_del(&sched_group->pace_link);
}

void weir_mux_sched_group_follow_account(struct weir_mux_vconn *conn)
{
	struct weir_mux_local *mux = conn->mux;
	struct weir_mux_sched_group *from = conn->sched_group, *to;

	if (from->group == weir_mux_account_current_group(conn->account))
		return;
	pthread_mutex_lock(&mux->lock);
	to = get_sched_group(conn);
	if (to) {
		weir_sched_flow_move(&conn->remote->sched, &conn->flow, &to->bundle);
		unpace_if_idle(from);
		conn->sched_group = to;
		from->nr_ours -= conn->is_ours;
		to->nr_ours += conn->is_ours;
		put_sched_group(from);
		charge_remote(conn->remote);
	}
	pthread_mutex_unlock(&mux->lock);
}

void weir_mux_sched_group_idle(struct weir_mux_vconn *conn)
{
	weir_sched_idle(&conn->remote->sched, &conn->flow);
	unpace_if_idle(conn->sched_group);
}

bool weir_mux_sched_group_is_paced(struct weir_mux_vconn *conn)
{
	struct weir_mux_sched_group *sched_group = conn->sched_group;
	struct weir_mux_remote *remote = conn->remote;

	if (weir_mux_rate_limit_due_ns(&sched_group->group->rate) <= remote->now_ns)
		return false;
	weir_sched_pause(&remote->sched, &sched_group->bundle);
	weir_list_del(&sched_group->pace_link);
	weir_list_add_tail(&remote->paced, &sched_group->pace_link);
	return true;
}

uint64_t weir_mux_sched_groups_resume(struct weir_mux_remote *remote)
{
	uint64_t due_ns, next_ns = UINT64_MAX;
	struct weir_list *at;

	for (at = remote->paced.next; at != &remote->paced;) {
		struct weir_mux_sched_group *sched_group =
			weir_list_entry(at, struct weir_mux_sched_group, pace_link);

		at = at->next;
		due_ns = weir_mux_rate_limit_due_ns(&sched_group->group->rate);
		if (due_ns <= remote->now_ns) {
			weir_list_del(&sched_group->pace_link);
			weir_sched_resume(&remote->sched, &sched_group->bundle);
		} else if (due_ns < next_ns) {
			next_ns = due_ns;
		}
	}
	return next_ns;
}
