/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir share: a mux, and the tenants whose connections it carries.
 *
 * tenant	a process that has connected to the socket: its board, its connections and offers
 * clerk	its thread: does what it asks, one after another, and ends what is its when it is
 *		gone
 * desk		of a party: where the connects that its tenants ask for wait
 * dialer	a thread of a desk, while something waits there: connects, which may take long
 * usher	one thread: hands what stands on the boards to the mux's workers
 *
 * share->lock guards the list of tenants and what each calls its own. The mux's is taken inside it,
 * never around it.
 */
#ifndef WEIR_APPS_SHARE_DAEMON_H
#define WEIR_APPS_SHARE_DAEMON_H

#include "apps/share/config.h"
#include "apps/share/tenant_limits.h"
#include "lib/mux/local/local.h"
#include "lib/mux/proxy/ipc.h"

#define SHARE_REFUSED_MAX 64 /* that are being told so, at a time */
#define SHARE_ANSWER_S 10 /* that an answer waits for room; who does not read is cut off */
#define SHARE_CONNECT_WORKERS_MAX 8 /* of a desk */
#define SHARE_CONNECTS_MAX 32 /* that a tenant has asked for, and that are not answered yet */

/**
 * struct share_tenant - one
 * @bell, @tenant_wakeup: both ends
 * @pid, @uid: as the kernel says, when it connected; @cgroup: when it was let in; none: it cannot
 *	be seen, or the process that connected had ended by then
 * @conns, @offers: by the number that it knows; the clerk alone takes them away
 * @connecting: what it has asked for and is not answered yet; share->lock
 * @is_in: it has said HELLO, and may stay; share->lock
 * @refused: it has no place, and is only told why: -EPERM or -EAGAIN
 * @is_gone: its clerk ends what is its
 */
struct share_tenant {
	struct weir_list link;
	struct share_daemon *share;
	struct weir_mux_account account;
	struct share_policy policy;
	int socket, bell, board_fd, tenant_wakeup;
	uint32_t nr;
	pid_t pid;
	uid_t uid;
	char cgroup[256], name[64];
	struct weir_mux_ipc_doorbells *board;
	struct weir_mux_vconn *conns[WEIR_MUX_IPC_CONNS_MAX];
	struct weir_mux_service *offers[WEIR_MUX_IPC_SERVICES_MAX];
	unsigned int next_conn, connecting;
	int refused;
	bool is_in, is_gone;
};

/**
 * struct share_daemon - the daemon
 * @config: how tenants are treated; replaced as a whole, with the lock held
 * @changed: a clerk or a dialer has ended
 * @connect_queues: of all parties that ever connected
 * @has_more: to do of what the boards said; the usher's
 * @nr_tenants, @nr_refused: who have a place, and who have none; @nr_workers: at work
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
	pthread_t doorman, usher;
	bool has_acceptor, has_doorbell_poller;
};

/**
 * share_daemon_open() - begin to listen for tenants
 * @share: all zero but for @mux and @config
 * @path: of the socket; one that nobody listens at any more is replaced. *Kept until* share_daemon_close()
 *
 * Return: 0; a negative errno, and @error.
 */
int share_daemon_open(struct share_daemon *share, const char *path, struct weir_error *error);
/* Lets all go, and closes the mux. */
void share_daemon_close(struct share_daemon *share);
/* From now on these policy hold, for those who are there as well. Takes @config. */
void share_daemon_reload(struct share_daemon *share, struct share_config *config);

/* tenant.c: of whoever has connected by @socket, which is the tenant's from then on. */
int share_tenant_new(struct share_daemon *share, int socket, struct share_tenant **tenant);
void share_tenant_free(struct share_tenant *tenant);
/* With share->lock held: what the config says of him now. */
void share_tenant_apply_policy(struct share_tenant *tenant);
/* The most urgent class that it may use, of those that there are. With share->lock held. */
unsigned int share_tenant_class(const struct share_tenant *tenant);
/* With share->lock held: a place for a connection. -EDQUOT. */
int share_tenant_add_conn(struct share_tenant *tenant, struct weir_mux_vconn *conn);

/* end.c: of one that is gone. Waits until nothing is left of it, and frees it. */
void share_tenant_end(struct share_tenant *tenant);

/* clerk.c, usher.c: the threads. */
void *share_rpc_run(void *tenant);
void *share_doorbell_poller_run(void *share);

/*
 * dialer.c: a CONNECT, which will be answered. -EAGAIN: it has asked for too many; -ENOMEM.
 * share_connect_queues_drop(): what of @tenant's still waits is not done any more; with share->lock held.
 */
int share_connect_queue_add(struct share_tenant *tenant, const struct weir_mux_ipc_request *ask);
void share_connect_queues_drop(struct share_tenant *tenant);
void share_connect_queues_free(struct share_daemon *share);

/*
 * show.c: of tenants that @who may see, as WEIR_MUX_IPC_TENANT and WEIR_MUX_IPC_FLOW ask for; without
 * locks. Return: 0; -ENOENT.
 */
int share_query_tenant(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		       struct weir_mux_ipc_tenant *out);
int share_query_flow(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		     struct weir_mux_ipc_flow *out);

/*
 * Without locks: a connection is the tenant's; @answer says where it lies, or why it has been
 * ended.
 */
void share_tenant_settle_conn(struct share_tenant *tenant, struct weir_mux_vconn *conn,
			      struct weir_mux_ipc_reply *answer);

/* An answer of @tenant's clerk or dialer, with @nr descriptors, which are closed. */
void share_tenant_reply(struct share_tenant *tenant, struct weir_mux_ipc_reply *answer,
			const int *fds, unsigned int nr);

#endif
