/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A tenant's RPC thread: handles the tenant's requests until the tenant is gone. */
#include "apps/share/daemon.h"

#include "lib/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A request and the reply. */
struct share_rpc {
	struct share_tenant *tenant;
	const struct weir_mux_ipc_request *ask;
	struct weir_mux_ipc_reply *answer;
	int fds[WEIR_MUX_IPC_FDS_MAX];
	unsigned int nr_fds;
	bool is_answered;
};

static int fail_with_text(const struct share_rpc *turn, int status, const char *text)
{
	return weir_error_set((struct weir_error *)turn->answer->text, status, "%s", text);
}

/* The reply carries a copy of @fd, closed after sending. */
static int attach_fd(struct share_rpc *turn, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -ENOMEM;
	turn->fds[turn->nr_fds++] = copy;
	return 0;
}

static bool is_denied(struct share_tenant *tenant)
{
	bool denied;

	pthread_mutex_lock(&tenant->share->lock);
	denied = tenant->policy.is_denied;
	pthread_mutex_unlock(&tenant->share->lock);
	return denied;
}

static int denied(const struct share_rpc *turn)
{
	return fail_with_text(turn, -EPERM,
			      "weir share's configuration denies this user or cgroup");
}

static int handle_hello(struct share_rpc *turn)
{
	struct share_tenant *tenant = turn->tenant;
	int rc;

	if (turn->ask->value != WEIR_MUX_IPC_VERSION)
		return fail_with_text(turn, -EPROTONOSUPPORT,
				      "weir share speaks another version: restart the older one");
	if (tenant->refused == -EAGAIN)
		return fail_with_text(turn, -EAGAIN,
				      "weir share has no place left for a tenant, or for "
				      "one of this user: try again later");
	if (!tenant->cgroup[0])
		return fail_with_text(turn, -EPERM,
				      "weir share cannot see this process's cgroup: the "
				      "process must be visible in the daemon's /proc and "
				      "must not have ended");
	if (tenant->refused || is_denied(tenant))
		return denied(turn);
	rc = attach_fd(turn, tenant->doorbells_fd);
	return rc ? rc : attach_fd(turn, tenant->wakeup);
}

/* The tenant's connection of that number, or NULL. Only this thread removes connections. */
static struct weir_mux_vconn *conn_of(const struct share_rpc *turn)
{
	struct share_tenant *tenant = turn->tenant;
	struct weir_mux_vconn *conn = NULL;

	pthread_mutex_lock(&tenant->share->lock);
	if (turn->ask->nr < WEIR_MUX_IPC_CONNS_MAX)
		conn = tenant->conns[turn->ask->nr];
	pthread_mutex_unlock(&tenant->share->lock);
	return conn;
}

static struct weir_mux_service **offer_at(const struct share_rpc *turn)
{
	struct weir_mux_service **at =
		&turn->tenant->services[turn->ask->nr % WEIR_MUX_IPC_SERVICES_MAX];

	return turn->ask->nr < WEIR_MUX_IPC_SERVICES_MAX && *at ? at : NULL;
}

static int handle_listen(struct share_rpc *turn)
{
	struct share_tenant *tenant = turn->tenant;
	unsigned int nr = 0;
	int rc, wakeup[2];

	while (nr < WEIR_MUX_IPC_SERVICES_MAX && tenant->services[nr])
		nr++;
	if (nr == WEIR_MUX_IPC_SERVICES_MAX)
		return -EDQUOT;
	if (pipe2(wakeup, O_CLOEXEC | O_NONBLOCK))
		return -ENOMEM;
	rc = weir_mux_service_open(&tenant->account, turn->ask->service, turn->ask->value,
				   wakeup[1], &tenant->services[nr]);
	if (rc) {
		close(wakeup[0]);
		return rc;
	}
	turn->fds[turn->nr_fds++] = wakeup[0];
	turn->answer->nr = nr;
	return 0;
}

static int handle_unlisten(struct share_rpc *turn)
{
	struct weir_mux_service **at = offer_at(turn);

	if (!at)
		return -EINVAL;
	weir_mux_service_close(*at);
	*at = NULL;
	return 0;
}

static int handle_accept(struct share_rpc *turn)
{
	struct weir_mux_service **at = offer_at(turn);
	struct weir_mux_vconn *conn;
	int rc = at ? weir_mux_service_accept(*at, &conn) : -EINVAL;

	if (!rc) {
		share_tenant_settle_conn(turn->tenant, conn, turn->answer);
		rc = turn->answer->status;
	}
	return rc;
}

static int handle_close(struct share_rpc *turn)
{
	struct weir_mux_vconn *conn = conn_of(turn);
	struct share_tenant *tenant = turn->tenant;

	if (!conn)
		return -EINVAL;
	pthread_mutex_lock(&tenant->share->lock);
	tenant->conns[turn->ask->nr] = NULL;
	pthread_mutex_unlock(&tenant->share->lock);
	pthread_mutex_lock(&conn->mux->lock);
	weir_mux_vconn_close(conn);
	pthread_mutex_unlock(&tenant->share->mux->lock);
	return 0;
}

/* Readable at first, as for a mux within the process. */
static int handle_fd(struct share_rpc *turn)
{
	struct weir_mux_vconn *conn = conn_of(turn);
	int *at, wakeup[2];

	if (!conn)
		return -EINVAL;
	at = turn->ask->value ? &conn->room_fd : &conn->fd;
	if (__atomic_load_n(at, __ATOMIC_ACQUIRE) >= 0)
		return -EALREADY;
	if (pipe2(wakeup, O_CLOEXEC | O_NONBLOCK))
		return -ENOMEM;
	weir_mux_fd_signal(wakeup[1]);
	__atomic_store_n(at, wakeup[1], __ATOMIC_RELEASE);
	turn->fds[turn->nr_fds++] = wakeup[0];
	return 0;
}

static int handle_ring_slab(struct share_rpc *turn)
{
	struct weir_mux_account *account = &turn->tenant->account;
	int fd = -1;
	struct weir_list *at;

	pthread_mutex_lock(&account->mux->lock);
	for (at = account->slabs.next; at != &account->slabs; at = at->next) {
		const struct weir_mux_ring_slab *slab =
			weir_list_entry(at, struct weir_mux_ring_slab, link);

		if (slab->number == turn->ask->nr)
			fd = slab->fd;
	}
	pthread_mutex_unlock(&account->mux->lock);
	turn->answer->ring_bytes = account->mux->options.ring_bytes;
	return fd < 0 ? -EINVAL : attach_fd(turn, fd);
}

static int handle_region(struct share_rpc *turn)
{
	struct weir_mux_account *account = &turn->tenant->account;
	struct weir_mux_mr *mr;
	int rc = weir_mux_mr_new(account, turn->ask->length, &mr);

	if (rc)
		return rc;
	turn->answer->nr = mr->number;
	turn->fds[turn->nr_fds++] = mr->fd;
	mr->fd = -1;
	return 0;
}

static int handle_grant(struct share_rpc *turn)
{
	const struct weir_mux_ipc_request *ask = turn->ask;
	struct weir_mux_vconn *conn = conn_of(turn);

	return conn ? weir_mux_vconn_grant(conn, ask->value, ask->at, ask->length, ask->weight,
					   &turn->answer->nr) :
		      -EINVAL;
}

static int handle_withdraw(struct share_rpc *turn)
{
	struct weir_mux_vconn *conn = conn_of(turn);

	return conn ? weir_mux_vconn_withdraw(conn, turn->ask->value) : -EINVAL;
}

static int handle_weigh(struct share_rpc *turn)
{
	struct weir_mux_vconn *conn = conn_of(turn);

	return conn ? weir_mux_vconn_weigh(conn, turn->ask->weight) : -EINVAL;
}

static bool op_allocates(uint32_t what)
{
	return what == WEIR_MUX_IPC_CONNECT || what == WEIR_MUX_IPC_LISTEN ||
	       what == WEIR_MUX_IPC_ACCEPT || what == WEIR_MUX_IPC_REGION;
}

static int dispatch_request(struct share_rpc *turn)
{
	struct weir_mux_local *mux = turn->tenant->share->mux;
	int rc;

	/* The tenant may have been denied after HELLO. */
	if (op_allocates(turn->ask->what) && is_denied(turn->tenant))
		return denied(turn);
	switch (turn->ask->what) {
	case WEIR_MUX_IPC_HELLO:
		return handle_hello(turn);
	case WEIR_MUX_IPC_CONNECT:
		rc = share_connect_queue_add(turn->tenant, turn->ask);
		turn->is_answered = !rc;
		return rc;
	case WEIR_MUX_IPC_DRAIN:
		weir_mux_local_drain(mux, &turn->tenant->account);
		return 0;
	case WEIR_MUX_IPC_LISTEN:
		return handle_listen(turn);
	case WEIR_MUX_IPC_ACCEPT:
		return handle_accept(turn);
	case WEIR_MUX_IPC_UNLISTEN:
		return handle_unlisten(turn);
	case WEIR_MUX_IPC_CLOSE:
		return handle_close(turn);
	case WEIR_MUX_IPC_FD:
		return handle_fd(turn);
	case WEIR_MUX_IPC_RING_SLAB:
		return handle_ring_slab(turn);
	case WEIR_MUX_IPC_INFO:
		weir_mux_local_info(mux, &turn->answer->info);
		return 0;
	case WEIR_MUX_IPC_REGION:
		return handle_region(turn);
	case WEIR_MUX_IPC_UNREGION:
		return weir_mux_mr_close(&turn->tenant->account, turn->ask->nr);
	case WEIR_MUX_IPC_GRANT:
		return handle_grant(turn);
	case WEIR_MUX_IPC_WITHDRAW:
		return handle_withdraw(turn);
	case WEIR_MUX_IPC_WEIGH:
		return handle_weigh(turn);
	case WEIR_MUX_IPC_TENANT:
		return share_query_tenant(turn->tenant, turn->ask, &turn->answer->tenant);
	case WEIR_MUX_IPC_FLOW:
		return share_query_flow(turn->tenant, turn->ask, &turn->answer->flow);
	case WEIR_MUX_IPC_CLASS:
		return share_query_class(turn->tenant, turn->ask, &turn->answer->of_class);
	default:
		return -EPROTO;
	}
}

static void mark_admitted(struct share_tenant *tenant)
{
	pthread_mutex_lock(&tenant->share->lock);
	tenant->is_in = true;
	pthread_mutex_unlock(&tenant->share->lock);
}

/* Return: whether to go on: not before HELLO was accepted. */
static bool handle_request(struct share_tenant *tenant, const struct weir_mux_ipc_request *ask,
			   bool *is_known)
{
	struct weir_mux_ipc_reply answer = { .number = ask->number };
	struct share_rpc turn = { .tenant = tenant, .ask = ask, .answer = &answer };
	bool is_hello = ask->what == WEIR_MUX_IPC_HELLO, is_look = weir_mux_ipc_is_query(ask->what);

	/* HELLO must come first, and only once; queries need none. */
	answer.status = is_hello == *is_known && !is_look ? -EPROTO : dispatch_request(&turn);
	if (is_hello && !answer.status) {
		mark_admitted(tenant);
		*is_known = true;
		weir_mux_ipc_set_timeout(tenant->socket, 0);
	}
	if (answer.status && !answer.text[0])
		fail_with_text(&turn, answer.status, weir_strerror(answer.status));
	if (!turn.is_answered)
		share_tenant_reply(tenant, &answer, turn.fds, turn.nr_fds);
	return *is_known || is_look;
}

void *share_rpc_run(void *arg)
{
	struct share_tenant *tenant = arg;
	struct share_daemon *share = tenant->share;
	unsigned int *count = tenant->refused ? &share->nr_refused : &share->nr_tenants;
	struct weir_mux_ipc_request ask;
	bool is_known = false;

	weir_mux_ipc_set_timeout(tenant->socket, WEIR_MUX_IPC_HELLO_S);
	while (!weir_mux_ipc_recv(tenant->socket, &ask, sizeof(ask), NULL) &&
	       handle_request(tenant, &ask, &is_known))
		;
	share_tenant_end(tenant);
	pthread_mutex_lock(&share->lock);
	--*count;
	pthread_cond_broadcast(&share->changed);
	pthread_mutex_unlock(&share->lock);
	return NULL;
}
