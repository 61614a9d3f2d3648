/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Grants: the ranges of an application's regions that the other end of a connection may access.
 * The peer's mux learns the rkey; the application there gets only a handle, a number valid on
 * the connection.
 *
 * A withdrawn grant stays in force until the peer's mux confirms: all work requests on the range
 * have completed, and no more will follow. So no work request can fail on a revoked range and
 * break a shared QP.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/mux/tx/post.h"

static struct weir_mux_grant *find_grant(struct weir_mux_vconn *conn, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < WEIR_MUX_GRANTS_MAX; i++)
		if (conn->grants[i].state && conn->grants[i].handle == handle)
			return &conn->grants[i];
	return NULL;
}

static struct weir_mux_remote_mr *find_remote_mr(struct weir_mux_vconn *conn, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < WEIR_MUX_GRANTS_MAX; i++)
		if (conn->remote_mrs[i].handle == handle)
			return &conn->remote_mrs[i];
	return NULL;
}

static void notify_grants(struct weir_mux_vconn *conn)
{
	__atomic_fetch_or(&conn->ctrls, WEIR_MUX_CTRL_GRANTS, __ATOMIC_SEQ_CST);
	if (!conn->is_detached)
		weir_mux_vconn_notify(conn);
}

/* Return: 0, or why no grant can be made or withdrawn any more. With mux->lock held. */
static int conn_status(const struct weir_mux_vconn *conn)
{
	int status = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);

	if (status)
		return status;
	return weir_mux_vconn_is_open(conn) ? 0 : -ENOTCONN;
}

static int new_grant(struct weir_mux_vconn *conn, const struct weir_mux_grant *wanted,
		     struct weir_mux_grant **out)
{
	struct weir_mux_grant *grant = NULL;
	unsigned int i;

	for (i = 0; i < WEIR_MUX_GRANTS_MAX && !grant; i++)
		if (!conn->grants[i].state)
			grant = &conn->grants[i];
	if (!grant)
		return -EDQUOT;
	*grant = *wanted;
	grant->handle = ++conn->last_handle;
	grant->state = WEIR_MUX_GRANT_NEW;
	grant->mr->refs++;
	*out = grant;
	return 0;
}

/* Waits until GRANT is posted, ahead of the caller's next message, or drops the grant. */
static int wait_grant_sent(struct weir_mux_vconn *conn, struct weir_mux_grant *grant)
{
	uint64_t timeout_ns = conn->mux->options.timeout_ns;
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), timeout_ns);
	int rc = 0;

	while (!rc && grant->state == WEIR_MUX_GRANT_NEW) {
		rc = weir_mux_account_wait(conn->account, &conn->account->changed, deadline_ns);
		if (!rc)
			rc = conn_status(conn);
	}
	if (rc && grant->state == WEIR_MUX_GRANT_NEW) {
		grant->mr->refs--;
		memset(grant, 0, sizeof(*grant));
	}
	return rc;
}

int weir_mux_vconn_grant(struct weir_mux_vconn *conn, uint32_t mr, uint64_t at, uint64_t length,
			 unsigned int rights, uint32_t *handle)
{
	struct weir_mux_local *mux = conn->mux;
	struct weir_mux_grant wanted = { .rights = (uint16_t)rights, .at = at, .length = length };
	struct weir_mux_grant *grant;
	int rc;

	pthread_mutex_lock(&mux->lock);
	wanted.mr = weir_mux_mr_find(conn->account, mr);
	rc = conn_status(conn);
	if (!wanted.mr || !rights || rights > (WEIR_MUX_MAY_READ | WEIR_MUX_MAY_WRITE) || !length ||
	    at > wanted.mr->length || length > wanted.mr->length - at)
		rc = -EINVAL;
	if (!rc)
		rc = new_grant(conn, &wanted, &grant);
	if (!rc) {
		notify_grants(conn);
		rc = wait_grant_sent(conn, grant);
	}
	if (!rc)
		*handle = grant->handle;
	pthread_mutex_unlock(&mux->lock);
	return rc;
}

int weir_mux_vconn_withdraw(struct weir_mux_vconn *conn, uint32_t handle)
{
	struct weir_mux_local *mux = conn->mux;
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), mux->options.timeout_ns);
	struct weir_mux_grant *grant;
	int rc = 0;

	pthread_mutex_lock(&mux->lock);
	grant = find_grant(conn, handle);
	if (!grant || grant->state == WEIR_MUX_GRANT_NEW)
		rc = -EINVAL;
	if (!rc && grant->state == WEIR_MUX_GRANT_SENT) {
		grant->state = WEIR_MUX_GRANT_WITHDRAW;
		notify_grants(conn);
	}
	while (!rc && find_grant(conn, handle) && !weir_mux_vconn_is_finished(conn))
		rc = weir_mux_account_wait(conn->account, &conn->account->changed, deadline_ns);
	pthread_mutex_unlock(&mux->lock);
	return rc;
}

static bool send_grant(struct weir_mux_vconn *conn, struct weir_mux_grant *grant)
{
	struct wire_mux_control m = { .type = WIRE_MUX_WITHDRAW,
				      .to = weir_mux_vconn_remote_id(conn),
				      .from = grant->handle };
	const bool is_new = grant->state == WEIR_MUX_GRANT_NEW;

	if (!is_new && grant->state != WEIR_MUX_GRANT_WITHDRAW)
		return true;
	if (is_new) {
		m.type = WIRE_MUX_GRANT;
		m.rights = grant->rights;
		m.value = grant->mr->mr->rkey;
		m.position = (uintptr_t)grant->mr->base + grant->at;
		m.length = grant->length;
	}
	if (!weir_mux_post_ctrl(conn, &m))
		return false;
	grant->state = is_new ? WEIR_MUX_GRANT_SENT : WEIR_MUX_GRANT_WITHDRAWING;
	return true;
}

static bool send_withdrawn(struct weir_mux_vconn *conn, struct weir_mux_remote_mr *remote_mr)
{
	struct wire_mux_control m = { .type = WIRE_MUX_WITHDRAWN,
				      .to = weir_mux_vconn_remote_id(conn),
				      .from = remote_mr->handle };

	if (!remote_mr->is_withdrawn || remote_mr->users)
		return true;
	if (!weir_mux_post_ctrl(conn, &m))
		return false;
	memset(remote_mr, 0, sizeof(*remote_mr));
	return true;
}

bool weir_mux_grants_send(struct weir_mux_vconn *conn)
{
	bool all = true;
	unsigned int i;

	pthread_mutex_lock(&conn->mux->lock);
	for (i = 0; all && i < WEIR_MUX_GRANTS_MAX; i++)
		all = send_grant(conn, &conn->grants[i]) &&
		      send_withdrawn(conn, &conn->remote_mrs[i]);
	pthread_cond_broadcast(&conn->account->changed);
	pthread_mutex_unlock(&conn->mux->lock);
	return all;
}

static int handle_grant(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	struct weir_mux_remote_mr *remote_mr = find_remote_mr(conn, 0);

	if (!remote_mr || find_remote_mr(conn, m->from))
		return -EPROTO;
	*remote_mr = (struct weir_mux_remote_mr){ .handle = m->from,
						  .rkey = m->value,
						  .rights = m->rights,
						  .address = m->position,
						  .length = m->length };
	return 0;
}

static int handle_withdraw(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	struct weir_mux_remote_mr *remote_mr = find_remote_mr(conn, m->from);

	if (!remote_mr || remote_mr->is_withdrawn)
		return -EPROTO;
	remote_mr->is_withdrawn = true;
	notify_grants(conn);
	return 0;
}

static int handle_withdrawn(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	struct weir_mux_grant *grant = find_grant(conn, m->from);

	if (!grant || grant->state != WEIR_MUX_GRANT_WITHDRAWING)
		return -EPROTO;
	grant->mr->refs--;
	memset(grant, 0, sizeof(*grant));
	pthread_cond_broadcast(&conn->account->changed);
	return 0;
}

int weir_mux_grant_input(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	if (!weir_mux_vconn_is_open(conn))
		return -EPROTO;
	switch (m->type) {
	case WIRE_MUX_GRANT:
		return handle_grant(conn, m);
	case WIRE_MUX_WITHDRAW:
		return handle_withdraw(conn, m);
	default:
		return handle_withdrawn(conn, m);
	}
}

void weir_mux_grants_drop(struct weir_mux_vconn *conn)
{
	unsigned int i;

	for (i = 0; i < WEIR_MUX_GRANTS_MAX; i++)
		if (conn->grants[i].state)
			conn->grants[i].mr->refs--;
}
