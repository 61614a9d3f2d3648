/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir share: a hub, and the tenants whose connections it carries.
 *
 * tenant	a process that has connected to the socket: its board, its connections and offers
 * clerk	its thread: does what it asks, one after another, and ends what is its when it is gone
 * dialer	a thread for each of its connects, and for its last wait, which may take long
 * usher	one thread: hands what stands on the boards to the hub's workers
 *
 * share->lock guards the list of tenants and what each calls its own. The hub's is taken inside it,
 * never around it.
 */
#ifndef WEIR_APPS_SHARE_SHARE_H
#define WEIR_APPS_SHARE_SHARE_H

#include "apps/share/config.h"
#include "lib/mux/hub.h"
#include "lib/mux/share.h"

#define SHARE_TENANTS_MAX 1024
#define SHARE_REFUSED_MAX 64 /* that are being told so, at a time */
#define SHARE_DIALERS_MAX 32 /* of a tenant */

/**
 * struct tenant - one
 * @bell, @tenants_bell: both ends
 * @pid, @uid, @cgroup: as the kernel says, when it connected; no @cgroup: it cannot be seen
 * @conns, @offers: by the number that it knows; the clerk alone takes them away
 * @dialing: dialers at work
 * @is_in: it has said HELLO, and may stay; share->lock
 * @is_too_many: it is only told that it is
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
	unsigned int next_conn, dialing;
	bool is_in, is_too_many, is_gone;
};

/**
 * struct share - the daemon
 * @config: how tenants are treated; replaced as a whole, with the lock held
 * @changed: a clerk or a dialer has ended
 * @nr_clerks: at work
 */
struct share {
	struct weir_hub *hub;
	struct config config;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list tenants;
	unsigned int nr_clerks;
	uint32_t last_nr;
	bool is_stopping;
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
/* With share->lock held: a place for a connection. -EDQUOT. */
int tenant_put(struct tenant *tenant, struct weir_circuit *conn);

/* clerk.c, dialer.c, usher.c: the threads. */
void *clerk_run(void *tenant);
void *usher_run(void *share);
int dialer_start(struct tenant *tenant, const struct weir_share_ask *ask);

/*
 * show.c: of tenants that @who may see, as WEIR_SHARE_TENANT and WEIR_SHARE_FLOW ask for; without
 * locks. Return: 0; -ENOENT.
 */
int show_tenant(const struct tenant *who, const struct weir_share_ask *ask,
		struct weir_share_tenant *out);
int show_flow(const struct tenant *who, const struct weir_share_ask *ask,
	      struct weir_share_flow *out);

/* Without locks: a connection is the tenant's; @answer says where it lies, or why it has been ended. */
void tenant_settle(struct tenant *tenant, struct weir_circuit *conn,
		   struct weir_share_answer *answer);

/* An answer of @tenant's clerk or dialer, with @nr descriptors, which are closed. */
void tenant_answer(struct tenant *tenant, struct weir_share_answer *answer, const int *fds,
		   unsigned int nr);

#endif
