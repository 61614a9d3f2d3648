/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir share: a hub, and the tenants whose connections it carries.
 *
 * tenant	a process that has connected to the socket: its board, its connections and offers
 * clerk	its thread: does what it asks, one after another, and ends what is its when it is
 *		gone
 * desk		of a party: where the connects that its tenants ask for wait
 * dialer	a thread of a desk, while something waits there: connects, which may take long
 * usher	one thread: hands what stands on the boards to the hub's workers
 *
 * share->lock guards the list of tenants and what each calls its own. The hub's is taken inside it,
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
#define SHARE_DIALERS_MAX 8 /* of a desk */
#define SHARE_CONNECTS_MAX 32 /* that a tenant has asked for, and that are not answered yet */

/**
 * struct tenant - one
 * @bell, @tenants_bell: both ends
 * @pid, @uid: as the kernel says, when it connected; @cgroup: when it was let in; none: it cannot
 *	be seen, or the process that connected had ended by then
 * @conns, @offers: by the number that it knows; the clerk alone takes them away
 * @connecting: what it has asked for and is not answered yet; share->lock
 * @is_in: it has said HELLO, and may stay; share->lock
 * @refused: it has no place, and is only told why: -EPERM or -EAGAIN
 * @is_gone: its clerk ends what is its
 */
struct tenant {
	struct weir_list link;
	struct share *share;
	struct weir_owner owner;
	struct terms terms;
	int socket, bell, board_fd, tenants_bell;
	uint32_t nr;
	pid_t pid;
	uid_t uid;
	char cgroup[256], name[64];
	struct weir_share_board *board;
	struct weir_circuit *conns[WEIR_SHARE_CONNS_MAX];
	struct weir_offer *offers[WEIR_SHARE_OFFERS_MAX];
	unsigned int next_conn, connecting;
	int refused;
	bool is_in, is_gone;
};

/**
 * struct share - the daemon
 * @config: how tenants are treated; replaced as a whole, with the lock held
 * @changed: a clerk or a dialer has ended
 * @desks: of all parties that ever connected
 * @has_more: to do of what the boards said; the usher's
 * @nr_tenants, @nr_refused: who have a place, and who have none; @nr_dialers: at work
 */
struct share {
	struct weir_hub *hub;
	struct config config;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list tenants, desks;
	unsigned int nr_tenants, nr_refused, nr_dialers;
	uint32_t last_nr;
	bool is_stopping, has_more;
	int socket, epoll, wake;
	const char *path;
	pthread_t doorman, usher;
	bool has_doorman, has_usher;
};

/**
 * share_open() - begin to listen for tenants
 * @share: all zero but for @hub and @config
 * @path: of the socket; one that nobody listens at any more is replaced. *Kept until* share_close()
 *
 * Return: 0; a negative errno, and @error.
 */
int share_open(struct share *share, const char *path, struct weir_error *error);
/* Lets all go, and closes the hub. */
void share_close(struct share *share);
/* From now on these terms hold, for those who are there as well. Takes @config. */
void share_reload(struct share *share, struct config *config);

/* tenant.c: of whoever has connected by @socket, which is the tenant's from then on. */
int tenant_new(struct share *share, int socket, struct tenant **tenant);
void tenant_free(struct tenant *tenant);
/* With share->lock held: what the config says of him now. */
void tenant_terms(struct tenant *tenant);
/* The most urgent class that it may use, of those that there are. With share->lock held. */
unsigned int tenant_class(const struct tenant *tenant);
/* With share->lock held: a place for a connection. -EDQUOT. */
int tenant_put(struct tenant *tenant, struct weir_circuit *conn);

/* end.c: of one that is gone. Waits until nothing is left of it, and frees it. */
void tenant_end(struct tenant *tenant);

/* clerk.c, usher.c: the threads. */
void *clerk_run(void *tenant);
void *usher_run(void *share);

/*
 * dialer.c: a CONNECT, which will be answered. -EAGAIN: it has asked for too many; -ENOMEM.
 * desks_leave(): what of @tenant's still waits is not done any more; with share->lock held.
 */
int desk_ask(struct tenant *tenant, const struct weir_share_ask *ask);
void desks_leave(struct tenant *tenant);
void desks_free(struct share *share);

/*
 * show.c: of tenants that @who may see, as WEIR_SHARE_TENANT and WEIR_SHARE_FLOW ask for; without
 * locks. Return: 0; -ENOENT.
 */
int show_tenant(const struct tenant *who, const struct weir_share_ask *ask,
		struct weir_share_tenant *out);
int show_flow(const struct tenant *who, const struct weir_share_ask *ask,
	      struct weir_share_flow *out);

/*
 * Without locks: a connection is the tenant's; @answer says where it lies, or why it has been
 * ended.
 */
void tenant_settle(struct tenant *tenant, struct weir_circuit *conn,
		   struct weir_share_answer *answer);

/* An answer of @tenant's clerk or dialer, with @nr descriptors, which are closed. */
void tenant_answer(struct tenant *tenant, struct weir_share_answer *answer, const int *fds,
		   unsigned int nr);

#endif
