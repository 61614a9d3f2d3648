/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir share: a mux, and the tenants whose connections it carries.
 *
 *	tenant		a process connected to the socket: doorbell page, connections, services
 *	RPC thread	one per tenant: handles requests in order, and cleans up after the tenant
 *	connect queue	one per party: CONNECT requests waiting for a worker
 *	connect worker	a thread of a connect queue: a connect may take long
 *	doorbell poller	one thread: passes news from the doorbell pages to the mux's workers
 *
 * share->lock guards the list of tenants and each tenant's tables. The order of locks:
 * share->lock, then mux->lock.
 */
#ifndef WEIR_APPS_SHARE_DAEMON_H
#define WEIR_APPS_SHARE_DAEMON_H

#include "apps/share/config.h"
#include "apps/share/tenant_limits.h"
#include "lib/mux/local/local.h"
#include "lib/mux/proxy/ipc.h"

#define SHARE_REFUSED_MAX 64 /* refused tenants being told so at a time */
#define SHARE_ANSWER_S 10 /* limit for sending a reply; slow tenants are cut off */
#define SHARE_CONNECT_WORKERS_MAX 8 /* per connect queue */
#define SHARE_CONNECTS_MAX 32 /* unanswered CONNECTs per tenant */

/**
 * struct share_tenant - a tenant
 * @wakeup: the bell, an eventfd that the tenant signals and nobody reads
 * @pid, @uid: from the kernel at connect; @cgroup: read at admission, empty if not visible or if
 *	the process had ended
 * @conns, @services: by the tenant's numbers; only the RPC thread removes entries
 * @connecting: unanswered CONNECTs; share->lock
 * @is_in: HELLO was accepted; share->lock
 * @refused: 0, or -EPERM or -EAGAIN: the tenant gets only this error
 * @is_gone: the RPC thread is cleaning up
 */
struct share_tenant {
	struct weir_list link;
	struct share_daemon *share;
	struct weir_mux_account account;
	struct share_policy policy;
	int socket, wakeup, doorbells_fd;
	uint32_t nr;
	pid_t pid;
	uid_t uid;
	char cgroup[256], name[64];
	struct weir_mux_ipc_doorbells *doorbells;
	struct weir_mux_vconn *conns[WEIR_MUX_IPC_CONNS_MAX];
	struct weir_mux_service *services[WEIR_MUX_IPC_SERVICES_MAX];
	unsigned int next_conn, connecting;
	int refused;
	bool is_in, is_gone;
};

/**
 * struct share_daemon - the daemon
 * @config: policies; replaced as a whole with the lock held
 * @changed: an RPC thread or a connect worker has ended
 * @connect_queues: of all parties that ever connected
 * @has_more: the mux has work left; doorbell poller only
 * @nr_tenants, @nr_refused: tenants admitted and refused; @nr_workers: connect workers
 */
struct share_daemon {
	struct weir_mux_local *mux;
	struct share_config config;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list tenants, connect_queues;
	unsigned int nr_tenants, nr_refused, nr_workers;
	uint32_t last_nr;
	bool is_stopping, has_more;
	int socket, epoll, wake;
	const char *path;
	pthread_t acceptor, doorbell_poller;
	bool has_acceptor, has_doorbell_poller;
};

/**
 * share_daemon_open() - start to listen for tenants
 * @share: all zero but for @mux and @config
 * @path: of the socket; a stale socket is replaced. *Kept until* share_daemon_close()
 *
 * Return: 0; a negative errno, and @error.
 */
int share_daemon_open(struct share_daemon *share, const char *path, struct weir_error *error);
/* Disconnects all tenants and closes the mux. */
void share_daemon_close(struct share_daemon *share);
/* Applies a new configuration to present and future tenants. Takes @config over. */
void share_daemon_reload(struct share_daemon *share, struct share_config *config);

/* tenant.c: creates a tenant, who owns @socket from then on. */
int share_tenant_new(struct share_daemon *share, int socket, struct share_tenant **tenant);
void share_tenant_free(struct share_tenant *tenant);
/* Applies the present configuration to the tenant. With share->lock held. */
void share_tenant_apply_policy(struct share_tenant *tenant);
/* Return: the most urgent class open to the tenant. With share->lock held. */
unsigned int share_tenant_class(const struct share_tenant *tenant);
/* Gives the connection a number. -EDQUOT. With share->lock held. */
int share_tenant_add_conn(struct share_tenant *tenant, struct weir_mux_vconn *conn);

/* tenant_end.c: ends everything of a tenant that is gone, waits for that, and frees the tenant. */
void share_tenant_end(struct share_tenant *tenant);

/* rpc.c, doorbell_poller.c: the threads. */
void *share_rpc_run(void *tenant);
void *share_doorbell_poller_run(void *share);

/*
 * connect_worker.c: queues a CONNECT, which is answered later. -EAGAIN: too many unanswered;
 * -ENOMEM.
 */
int share_connect_queue_add(struct share_tenant *tenant, const struct weir_mux_ipc_request *ask);
/* Drops the tenant's queued requests. With share->lock held. */
void share_connect_queues_drop(struct share_tenant *tenant);
void share_connect_queues_free(struct share_daemon *share);

/*
 * query.c: answers WEIR_MUX_IPC_TENANT, _FLOW and _CLASS with tenants visible to @who.
 * Without locks. Return: 0; -ENOENT.
 */
int share_query_tenant(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		       struct weir_mux_ipc_tenant *out);
int share_query_flow(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		     struct weir_mux_ipc_flow *out);
int share_query_class(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		      struct weir_mux_ipc_class *out);

/*
 * Hands a connection to the tenant, or ends the connection; @answer receives the place or the
 * error. Without locks.
 */
void share_tenant_settle_conn(struct share_tenant *tenant, struct weir_mux_vconn *conn,
			      struct weir_mux_ipc_reply *answer);

/* Sends a reply with @nr descriptors, which are closed. */
void share_tenant_reply(struct share_tenant *tenant, struct weir_mux_ipc_reply *answer,
			const int *fds, unsigned int nr);

#endif
