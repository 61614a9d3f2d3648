/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles: what the other end of a connection may reach of an application's regions. It is told the
 * device's key, which its mux keeps to itself; the application over there has a number that means
 * something on this connection only.
 *
 * A grant that is withdrawn is in force until the other mux has said that it posts nothing more by
 * it and that all it had posted is done: no work request of it can fail, and break the QP of all.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/mux/tx/post.h"

static struct weir_grant *grant_find(struct weir_circuit *conn, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < WEIR_GRANTS_MAX; i++)
		if (conn->grants[i].state && conn->grants[i].handle == handle)
			return &conn->grants[i];
	return NULL;
}

static struct weir_reach *reach_find(struct weir_circuit *conn, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < WEIR_GRANTS_MAX; i++)
		if (conn->reaches[i].handle == handle)
			return &conn->reaches[i];
	return NULL;
}

static void grants_news(struct weir_circuit *conn)
{
	__atomic_fetch_or(&conn->chores, WEIR_CHORE_GRANTS, __ATOMIC_ACQ_REL);
	if (!conn->is_detached)
		weir_circuit_news(conn);
}

/* Why there is nothing more to be granted or withdrawn. With hub->lock held. */
static int ended(const struct weir_circuit *conn)
{
	int status = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);

	if (status)
		return status;
	return conn->is_finished || !conn->is_open ? -ENOTCONN : 0;
}

static int grant_new(struct weir_circuit *conn, const struct weir_grant *wanted,
		     struct weir_grant **out)
{
	struct weir_grant *grant = NULL;
	unsigned int i;

	for (i = 0; i < WEIR_GRANTS_MAX && !grant; i++)
		if (!conn->grants[i].state)
			grant = &conn->grants[i];
	if (!grant)
		return -EDQUOT;
	*grant = *wanted;
	grant->handle = ++conn->last_handle;
	grant->state = WEIR_GRANT_NEW;
	grant->plot->refs++;
	*out = grant;
	return 0;
}

/* It goes before whatever is sent after this; or it never goes. */
static int grant_wait(struct weir_circuit *conn, struct weir_grant *grant)
{
	uint64_t timeout_ns = conn->hub->options.timeout_ns;
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), timeout_ns);
	int rc = 0;

	while (!rc && grant->state == WEIR_GRANT_NEW) {
		rc = weir_owner_wait(conn->owner, &conn->owner->changed, deadline_ns);
		if (!rc)
			rc = ended(conn);
	}
	if (rc && grant->state == WEIR_GRANT_NEW) {
		grant->plot->refs--;
		memset(grant, 0, sizeof(*grant));
	}
	return rc;
}

int weir_circuit_grant(struct weir_circuit *conn, uint32_t plot, uint64_t at, uint64_t length,
		       unsigned int rights, uint32_t *handle)
{
	struct weir_hub *hub = conn->hub;
	struct weir_grant wanted = { .rights = (uint16_t)rights, .at = at, .length = length };
	struct weir_grant *grant;
	int rc;

	pthread_mutex_lock(&hub->lock);
	wanted.plot = weir_plot_find(conn->owner, plot);
	rc = ended(conn);
	if (!wanted.plot || !rights || rights > (WEIR_MAY_READ | WEIR_MAY_WRITE) || !length ||
	    at > wanted.plot->length || length > wanted.plot->length - at)
		rc = -EINVAL;
	if (!rc)
		rc = grant_new(conn, &wanted, &grant);
	if (!rc) {
		grants_news(conn);
		rc = grant_wait(conn, grant);
	}
	if (!rc)
		*handle = grant->handle;
	pthread_mutex_unlock(&hub->lock);
	return rc;
}

int weir_circuit_withdraw(struct weir_circuit *conn, uint32_t handle)
{
	struct weir_hub *hub = conn->hub;
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), hub->options.timeout_ns);
	struct weir_grant *grant;
	int rc = 0;

	pthread_mutex_lock(&hub->lock);
	grant = grant_find(conn, handle);
	if (!grant || grant->state == WEIR_GRANT_NEW)
		rc = -EINVAL;
	if (!rc && grant->state == WEIR_GRANT_SENT) {
		grant->state = WEIR_GRANT_ENDS;
		grants_news(conn);
	}
	while (!rc && grant_find(conn, handle) && !conn->is_finished)
		rc = weir_owner_wait(conn->owner, &conn->owner->changed, deadline_ns);
	pthread_mutex_unlock(&hub->lock);
	return rc;
}

static bool grant_send(struct weir_circuit *conn, struct weir_grant *grant)
{
	struct wire_mux m = { .type = WIRE_MUX_WITHDRAW, .to = weir_circuit_remote(conn),
			      .from = grant->handle };
	const bool is_new = grant->state == WEIR_GRANT_NEW;

	if (!is_new && grant->state != WEIR_GRANT_ENDS)
		return true;
	if (is_new) {
		m.type = WIRE_MUX_GRANT;
		m.rights = grant->rights;
		m.value = grant->plot->mr->rkey;
		m.position = (uintptr_t)grant->plot->base + grant->at;
		m.length = grant->length;
	}
	if (!weir_post_control(conn, &m))
		return false;
	grant->state = is_new ? WEIR_GRANT_SENT : WEIR_GRANT_ENDING;
	return true;
}

static bool reach_send(struct weir_circuit *conn, struct weir_reach *reach)
{
	struct wire_mux m = { .type = WIRE_MUX_WITHDRAWN, .to = weir_circuit_remote(conn),
			      .from = reach->handle };

	if (!reach->is_withdrawn || reach->users)
		return true;
	if (!weir_post_control(conn, &m))
		return false;
	memset(reach, 0, sizeof(*reach));
	return true;
}

bool weir_grants_send(struct weir_circuit *conn)
{
	bool all = true;
	unsigned int i;

	pthread_mutex_lock(&conn->hub->lock);
	for (i = 0; all && i < WEIR_GRANTS_MAX; i++)
		all = grant_send(conn, &conn->grants[i]) && reach_send(conn, &conn->reaches[i]);
	pthread_cond_broadcast(&conn->owner->changed);
	pthread_mutex_unlock(&conn->hub->lock);
	return all;
}

static int granted(struct weir_circuit *conn, const struct wire_mux *m)
{
	struct weir_reach *reach = reach_find(conn, 0);

	if (!reach || reach_find(conn, m->from))
		return -EPROTO;
	*reach = (struct weir_reach){ .handle = m->from, .rkey = m->value, .rights = m->rights,
				      .address = m->position, .length = m->length };
	return 0;
}

static int withdraw(struct weir_circuit *conn, const struct wire_mux *m)
{
	struct weir_reach *reach = reach_find(conn, m->from);

	if (!reach || reach->is_withdrawn)
		return -EPROTO;
	reach->is_withdrawn = true;
	grants_news(conn);
	return 0;
}

static int withdrawn(struct weir_circuit *conn, const struct wire_mux *m)
{
	struct weir_grant *grant = grant_find(conn, m->from);

	if (!grant || grant->state != WEIR_GRANT_ENDING)
		return -EPROTO;
	grant->plot->refs--;
	memset(grant, 0, sizeof(*grant));
	pthread_cond_broadcast(&conn->owner->changed);
	return 0;
}

int weir_grant_input(struct weir_circuit *conn, const struct wire_mux *m)
{
	if (!conn->is_open || conn->is_finished)
		return -EPROTO;
	switch (m->type) {
	case WIRE_MUX_GRANT:
		return granted(conn, m);
	case WIRE_MUX_WITHDRAW:
		return withdraw(conn, m);
	default:
		return withdrawn(conn, m);
	}
}

void weir_grants_drop(struct weir_circuit *conn)
{
	unsigned int i;

	for (i = 0; i < WEIR_GRANTS_MAX; i++)
		if (conn->grants[i].state)
			conn->grants[i].plot->refs--;
}
