/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A tenant's clerk: does what it asks, until it is gone. */
#include "apps/share/daemon.h"

#include "lib/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A message of a tenant's, and what it is answered. */
struct turn {
	struct tenant *tenant;
	const struct weir_share_ask *ask;
	struct weir_share_answer *answer;
	int fds[WEIR_SHARE_FDS_MAX];
	unsigned int nr_fds;
	bool is_answered;
};

static int explained(const struct turn *turn, int status, const char *text)
{
	return weir_fail((struct weir_error *)turn->answer->text, status, "%s", text);
}

/* Descriptors that go along are copies: whoever has answered closes them. */
static int give_fd(struct turn *turn, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -ENOMEM;
	turn->fds[turn->nr_fds++] = copy;
	return 0;
}

static bool is_denied(struct tenant *tenant)
{
	bool denied;

	pthread_mutex_lock(&tenant->share->lock);
	denied = tenant->terms.is_denied;
	pthread_mutex_unlock(&tenant->share->lock);
	return denied;
}

static int denied(const struct turn *turn)
{
	return explained(turn, -EPERM,
			 "weir share's configuration lets this user or cgroup not in");
}

static int hello(struct turn *turn)
{
	struct tenant *tenant = turn->tenant;
	int rc;

	if (turn->ask->value != WEIR_SHARE_VERSION)
		return explained(turn, -EPROTONOSUPPORT,
				 "weir share speaks another version: restart what is older");
	if (tenant->refused == -EAGAIN)
		return explained(turn, -EAGAIN,
				 "weir share has as many tenants as it takes, of all "
				 "or of this user: try again when one has gone");
	if (!tenant->cgroup[0])
		return explained(turn, -EPERM,
				 "weir share cannot see this process's cgroup: it needs "
				 "to find it in its own /proc, and who connected "
				 "still there");
	if (tenant->refused || is_denied(tenant))
		return denied(turn);
	rc = give_fd(turn, tenant->board_fd);
	return rc ? rc : give_fd(turn, tenant->tenants_bell);
}

/* Its connection of this number, or NULL. Only the clerk takes them away. */
static struct weir_circuit *conn_of(const struct turn *turn)
{
	struct tenant *tenant = turn->tenant;
	struct weir_circuit *conn = NULL;

	pthread_mutex_lock(&tenant->share->lock);
	if (turn->ask->nr < WEIR_SHARE_CONNS_MAX)
		conn = tenant->conns[turn->ask->nr];
	pthread_mutex_unlock(&tenant->share->lock);
	return conn;
}

static struct weir_offer **offer_at(const struct turn *turn)
{
	struct weir_offer **at = &turn->tenant->offers[turn->ask->nr % WEIR_SHARE_OFFERS_MAX];

	return turn->ask->nr < WEIR_SHARE_OFFERS_MAX && *at ? at : NULL;
}

static int listen_for(struct turn *turn)
{
	struct tenant *tenant = turn->tenant;
	unsigned int nr = 0;
	int rc, bell[2];

	while (nr < WEIR_SHARE_OFFERS_MAX && tenant->offers[nr])
		nr++;
	if (nr == WEIR_SHARE_OFFERS_MAX)
		return -EDQUOT;
	if (pipe2(bell, O_CLOEXEC | O_NONBLOCK))
		return -ENOMEM;
	rc = weir_offer_open(&tenant->owner, turn->ask->service, turn->ask->value, bell[1],
			     &tenant->offers[nr]);
	if (rc) {
		close(bell[0]);
		return rc;
	}
	turn->fds[turn->nr_fds++] = bell[0];
	turn->answer->nr = nr;
	return 0;
}

static int unlisten(struct turn *turn)
{
	struct weir_offer **at = offer_at(turn);

	if (!at)
		return -EINVAL;
	weir_offer_close(*at);
	*at = NULL;
	return 0;
}

static int accept_for(struct turn *turn)
{
	struct weir_offer **at = offer_at(turn);
	struct weir_circuit *conn;
	int rc = at ? weir_offer_accept(*at, &conn) : -EINVAL;

	if (!rc) {
		tenant_settle(turn->tenant, conn, turn->answer);
		rc = turn->answer->status;
	}
	return rc;
}

static int close_for(struct turn *turn)
{
	struct weir_circuit *conn = conn_of(turn);
	struct tenant *tenant = turn->tenant;

	if (!conn)
		return -EINVAL;
	pthread_mutex_lock(&tenant->share->lock);
	tenant->conns[turn->ask->nr] = NULL;
	pthread_mutex_unlock(&tenant->share->lock);
	pthread_mutex_lock(&conn->hub->lock);
	weir_circuit_shut(conn);
	pthread_mutex_unlock(&tenant->share->hub->lock);
	return 0;
}

/* Readable at first, as for whoever has the hub in his own process. */
static int fd_for(struct turn *turn)
{
	struct weir_circuit *conn = conn_of(turn);
	int *at, bell[2];

	if (!conn)
		return -EINVAL;
	at = turn->ask->value ? &conn->room_fd : &conn->fd;
	if (__atomic_load_n(at, __ATOMIC_ACQUIRE) >= 0)
		return -EALREADY;
	if (pipe2(bell, O_CLOEXEC | O_NONBLOCK))
		return -ENOMEM;
	weir_fd_ring(bell[1]);
	__atomic_store_n(at, bell[1], __ATOMIC_RELEASE);
	turn->fds[turn->nr_fds++] = bell[0];
	return 0;
}

static int chunk_for(struct turn *turn)
{
	struct weir_owner *owner = &turn->tenant->owner;
	int fd = -1;
	struct weir_list *at;

	pthread_mutex_lock(&owner->hub->lock);
	for (at = owner->chunks.next; at != &owner->chunks; at = at->next) {
		const struct weir_chunk *chunk = weir_list_entry(at, struct weir_chunk, link);

		if (chunk->number == turn->ask->nr)
			fd = chunk->fd;
	}
	pthread_mutex_unlock(&owner->hub->lock);
	turn->answer->ring_bytes = owner->hub->options.ring_bytes;
	return fd < 0 ? -EINVAL : give_fd(turn, fd);
}

static int region_for(struct turn *turn)
{
	struct weir_owner *owner = &turn->tenant->owner;
	struct weir_plot *plot;
	int rc = weir_plot_new(owner, turn->ask->length, &plot);

	if (rc)
		return rc;
	turn->answer->nr = plot->number;
	turn->fds[turn->nr_fds++] = plot->fd;
	plot->fd = -1;
	return 0;
}

static int grant_for(struct turn *turn)
{
	const struct weir_share_ask *ask = turn->ask;
	struct weir_circuit *conn = conn_of(turn);

	return conn ? weir_circuit_grant(conn, ask->value, ask->at, ask->length, ask->weight,
					 &turn->answer->nr) :
		      -EINVAL;
}

static int withdraw_for(struct turn *turn)
{
	struct weir_circuit *conn = conn_of(turn);

	return conn ? weir_circuit_withdraw(conn, turn->ask->value) : -EINVAL;
}

static int weigh_for(struct turn *turn)
{
	struct weir_circuit *conn = conn_of(turn);

	return conn ? weir_circuit_weigh(conn, turn->ask->weight) : -EINVAL;
}

static bool makes_something(uint32_t what)
{
	return what == WEIR_SHARE_CONNECT || what == WEIR_SHARE_LISTEN ||
	       what == WEIR_SHARE_ACCEPT || what == WEIR_SHARE_REGION;
}

static int serve(struct turn *turn)
{
	struct weir_hub *hub = turn->tenant->share->hub;
	int rc;

	/* It may have been let in before. */
	if (makes_something(turn->ask->what) && is_denied(turn->tenant))
		return denied(turn);
	switch (turn->ask->what) {
	case WEIR_SHARE_HELLO:
		return hello(turn);
	case WEIR_SHARE_CONNECT:
		rc = desk_ask(turn->tenant, turn->ask);
		turn->is_answered = !rc;
		return rc;
	case WEIR_SHARE_DRAIN:
		weir_hub_linger(hub, &turn->tenant->owner);
		return 0;
	case WEIR_SHARE_LISTEN:
		return listen_for(turn);
	case WEIR_SHARE_ACCEPT:
		return accept_for(turn);
	case WEIR_SHARE_UNLISTEN:
		return unlisten(turn);
	case WEIR_SHARE_CLOSE:
		return close_for(turn);
	case WEIR_SHARE_FD:
		return fd_for(turn);
	case WEIR_SHARE_CHUNK:
		return chunk_for(turn);
	case WEIR_SHARE_INFO:
		weir_hub_info(hub, &turn->answer->info);
		return 0;
	case WEIR_SHARE_REGION:
		return region_for(turn);
	case WEIR_SHARE_UNREGION:
		return weir_plot_close(&turn->tenant->owner, turn->ask->nr);
	case WEIR_SHARE_GRANT:
		return grant_for(turn);
	case WEIR_SHARE_WITHDRAW:
		return withdraw_for(turn);
	case WEIR_SHARE_WEIGH:
		return weigh_for(turn);
	case WEIR_SHARE_TENANT:
		return show_tenant(turn->tenant, turn->ask, &turn->answer->tenant);
	case WEIR_SHARE_FLOW:
		return show_flow(turn->tenant, turn->ask, &turn->answer->flow);
	default:
		return -EPROTO;
	}
}

static void let_in(struct tenant *tenant)
{
	pthread_mutex_lock(&tenant->share->lock);
	tenant->is_in = true;
	pthread_mutex_unlock(&tenant->share->lock);
}

/* Return: whether it may go on: who has not been let in may not. */
static bool turn_take(struct tenant *tenant, const struct weir_share_ask *ask, bool *is_known)
{
	struct weir_share_answer answer = { .number = ask->number };
	struct turn turn = { .tenant = tenant, .ask = ask, .answer = &answer };
	bool is_hello = ask->what == WEIR_SHARE_HELLO, is_look = weir_share_is_look(ask->what);

	/* First HELLO, and it once; but to look takes none. */
	answer.status = is_hello == *is_known && !is_look ? -EPROTO : serve(&turn);
	if (is_hello && !answer.status) {
		let_in(tenant);
		*is_known = true;
		weir_share_patience(tenant->socket, 0);
	}
	if (answer.status && !answer.text[0])
		explained(&turn, answer.status, weir_strerror(answer.status));
	if (!turn.is_answered)
		tenant_answer(tenant, &answer, turn.fds, turn.nr_fds);
	return *is_known || is_look;
}

void *clerk_run(void *arg)
{
	struct tenant *tenant = arg;
	struct share *share = tenant->share;
	unsigned int *count = tenant->refused ? &share->nr_refused : &share->nr_tenants;
	struct weir_share_ask ask;
	bool is_known = false;

	weir_share_patience(tenant->socket, WEIR_SHARE_HELLO_S);
	while (!weir_share_recv(tenant->socket, &ask, sizeof(ask), NULL) &&
	       turn_take(tenant, &ask, &is_known))
		;
	tenant_end(tenant);
	pthread_mutex_lock(&share->lock);
	--*count;
	pthread_cond_broadcast(&share->changed);
	pthread_mutex_unlock(&share->lock);
	return NULL;
}
