/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Dialling another mux, from an application's thread. The thread owns the new QP until it is
 * proven. One thread dials a remote at a time, and others wait for the result. Once the
 * handshake has begun, the peer may use the QP before we know, and a broken QP would break the
 * peer's remote. So a thread leaves the QP to the poller when the tenant is gone or time is up.
 *
 * Only the handshake tells which mux is at an address. If the mux already has a remote, the QP
 * is dropped and the address becomes another name of the remote: see dedup.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/mux/local/local.h"
#include "lib/conn/dialer.h"

#define CROSSED_MS 20 /* delay before we retry a QP also dialled by the peer */

/* Results of dialling a QP, besides errors. */
enum { DIALLED, SPARE, CROSSED };

/*
 * @known: session reported by the peer, which has proven @identity; @ended: session lost here
 * @again: from one attempt to the next
 * @is_left: the poller now owns the QP, and clears remote->is_dialing
 */
struct dial {
	struct weir_mux_local *mux;
	struct weir_mux_account *account;
	const char *peer;
	const struct sockaddr *address;
	uint64_t deadline_ns;
	struct weir_error *error;
	uint64_t known, ended;
	uint8_t identity[WIRE_KEY];
	struct weir_dialer_again again;
	bool is_left;
};

static int fail_late(const struct dial *d, int status)
{
	return weir_error_set(d->error, status, "%s did not answer in time", d->peer);
}

static int check_account(void *arg, struct weir_error *error)
{
	return weir_mux_account_is_gone(arg) ?
		       weir_error_set(error, -ECONNRESET, "the program has ended") :
		       0;
}

static int connect_qp(struct weir_dialer *dialer, struct weir_mux_qp *qp)
{
	const struct weir_mux_local *mux = qp->remote->mux;
	struct wire_handshake_connect connect = {
		.magic = WIRE_MAGIC,
		.version = weir_dialer_version(&dialer->again),
		.channel = qp->class,
		.session_id = qp->class ? qp->remote->session_id : 0,
		.key_id = weir_key_id(mux->options.key),
	};

	memcpy(connect.cookie, dialer->again.cookie, sizeof(connect.cookie));
	qp->version = connect.version;
	dialer->qp = qp->qp;
	return weir_dialer_connect(dialer, &connect, sizeof(connect), mux->reads_max,
				   WEIR_DIALER_RNR_FOR_EVER);
}

/* With mux->lock held. Return: DIALLED, SPARE, CROSSED, or an error. */
static int prove(struct dial *d, struct weir_mux_qp *qp)
{
	int rc = weir_mux_qp_handshake_start(qp, true);

	if (rc)
		return weir_error_set(d->error, rc, "cannot prove the key to %s: %s", d->peer,
				      weir_strerror(rc));
	while (!rc && qp->state == WEIR_MUX_QP_PROVING)
		rc = weir_mux_account_wait(d->account, &d->mux->changed, d->deadline_ns);
	if (rc) {
		weir_mux_qp_orphan(qp);
		d->is_left = true;
		return fail_late(d, rc);
	}
	if (qp->state == WEIR_MUX_QP_UP)
		return DIALLED;
	if (qp->state == WEIR_MUX_QP_SPARE) {
		d->known = qp->handshake->welcome.session_id;
		memcpy(d->identity, qp->handshake->identity, sizeof(d->identity));
		rdma_disconnect(qp->id);
		return SPARE;
	}
	if (qp->class && qp->status == -EAGAIN)
		return CROSSED;
	return weir_handshake_explain(qp->handshake, qp->status, d->peer, d->error);
}

/* Return: as dial_qp(). */
static int dial_once(struct dial *d, struct weir_mux_remote *remote, uint8_t class)
{
	struct epoll_event in = { .events = EPOLLIN };
	struct weir_mux_local *mux = d->mux;
	struct weir_dialer dialer = {
		.peer = d->peer,
		.device = ibv_get_device_name(mux->device->device),
		.tos = (uint8_t)mux->classes[class].tos,
		.deadline_ns = d->deadline_ns,
		.check = check_account,
		.arg = d->account,
		.check_ms = WEIR_MUX_ACCOUNT_CHECK_MS,
		.error = d->error,
		.again = d->again,
	};
	struct weir_mux_qp *qp = NULL;
	int rc = weir_dialer_resolve(&dialer, d->address);

	pthread_mutex_lock(&mux->lock);
	if (!rc) {
		rc = weir_mux_qp_new(remote, class, dialer.id, &qp);
		if (rc)
			weir_error_set(d->error, rc, "no queue pair: %s", weir_strerror(rc));
	}
	if (!rc) {
		qp->cm = dialer.cm;
		qp->ended = d->ended;
		pthread_mutex_unlock(&mux->lock);
		rc = connect_qp(&dialer, qp);
		pthread_mutex_lock(&mux->lock);
	}
	if (!rc) {
		/* From here on the poller reads the connection manager's events. */
		in.data.ptr = qp->cm;
		epoll_ctl(mux->epoll, EPOLL_CTL_ADD, qp->cm->fd, &in);
		rc = prove(d, qp);
	}
	d->again = dialer.again;
	if (!qp)
		weir_dialer_close(&dialer);
	else if (rc && !d->is_left && remote->qps[class] != qp)
		weir_mux_qp_destroy(qp);
	pthread_mutex_unlock(&mux->lock);
	return rc;
}

/*
 * Dials one more QP of the remote; changes nothing on failure. Takes mux->lock. Return: as
 * prove().
 */
static int dial_qp(struct dial *d, struct weir_mux_remote *remote, uint8_t class)
{
	int rc;

	memset(&d->again, 0, sizeof(d->again));
	do
		rc = dial_once(d, remote, class);
	while (weir_dialer_tries_again(&d->again, rc));
	return rc;
}

/*
 * The peer dials the same QP, and the peer's stays: wait until that QP arrives or fails; in the
 * second case retry ours.
 */
static int wait_crossed(const struct dial *d, const struct weir_mux_remote *remote)
{
	const uint64_t until_ns = weir_after_ns(weir_now_ns(), CROSSED_MS * WEIR_NS_PER_MS);
	int rc;

	if (!weir_mux_remote_is_usable(remote))
		return weir_error_set(d->error, -ECONNRESET, "the connection to %s broke", d->peer);
	if (until_ns >= d->deadline_ns)
		return fail_late(d, -ETIMEDOUT);
	rc = weir_mux_account_wait(d->account, &d->mux->changed, until_ns);
	return rc ? fail_late(d, rc) : DIALLED;
}

/*
 * Dials the missing QPs; no other thread dials the remote. With mux->lock held; drops it while
 * dialling.
 */
static int dial_qps(struct dial *d, struct weir_mux_remote *remote, uint8_t class)
{
	struct weir_mux_local *mux = d->mux;
	int rc = DIALLED;

	remote->is_dialing = true;
	while (rc == DIALLED && !remote->qps[class]) {
		remote->dialing = remote->qps[0] ? class : 0;
		pthread_mutex_unlock(&mux->lock);
		rc = dial_qp(d, remote, remote->dialing);
		pthread_mutex_lock(&mux->lock);
		if (rc && remote->qps[class])
			rc = DIALLED; /* dialled by the peer */
		else if (rc == CROSSED || (rc == -EAGAIN && remote->qps[0]) ||
			 (rc && !d->is_left && weir_mux_qp_is_pending(remote, class)))
			rc = wait_crossed(d, remote);
		while (rc == DIALLED && weir_mux_qp_is_pending(remote, class))
			rc = wait_crossed(d, remote);
	}
	if (!d->is_left) {
		remote->is_dialing = false;
		if (rc && !remote->qps[0]) {
			weir_mux_remote_uncharge(remote);
			weir_mux_remote_fail(remote, rc == SPARE ? -ECONNRESET : rc);
		}
	}
	weir_mux_fd_signal(mux->wakeup_fd); /* the poller may wait for us to reap a failed remote */
	pthread_cond_broadcast(&mux->changed);
	return rc;
}

/*
 * Whether the group is at its limit, but a remote of the group is ending. The remote counts
 * until its worker has ended, since its thread and QPs exist until then.
 */
static bool will_have_room(const struct weir_mux_local *mux,
			   const struct weir_mux_account_group *group)
{
	const struct weir_list *at;

	if (group->nr_remotes < group->nr_remotes_max)
		return false;
	for (at = mux->remotes.next; at != &mux->remotes; at = at->next) {
		const struct weir_mux_remote *remote =
			weir_list_entry(at, struct weir_mux_remote, link);

		if (remote->group == group && !weir_mux_remote_is_usable(remote))
			return true;
	}
	return false;
}

/* Whether the caller should wait for a change under way. */
static bool is_in_transition(const struct weir_mux_remote *remote, uint8_t class)
{
	return remote->leave == WEIR_MUX_IDLE_ASKED ||
	       (!remote->qps[class] &&
		(remote->is_dialing || weir_mux_qp_is_pending(remote, class)));
}

/*
 * Creates a remote, within the group's limit: a remote costs a thread and QPs. With mux->lock
 * held.
 */
static int begin_remote(const struct dial *d, const char *name, struct weir_mux_remote **out)
{
	struct weir_mux_account_group *group = d->account->group;
	struct weir_mux_remote *remote;
	int rc;

	if (group->nr_remotes >= group->nr_remotes_max)
		return weir_error_set(d->error, -EDQUOT,
				      "cannot connect to %s: already connected to %u "
				      "other muxes, at most %u allowed",
				      d->peer, group->nr_remotes, group->nr_remotes_max);
	rc = weir_mux_remote_new(d->mux, name, &remote);
	if (rc)
		return weir_error_set(d->error, rc, "no queues for %s: %s", d->peer,
				      weir_strerror(rc));
	remote->is_ours = true;
	weir_mux_remote_add_name(remote, name);
	remote->group = group;
	group->nr_remotes++;
	*out = remote;
	return 0;
}

/*
 * The peer knows us by a session of ours, by a session about to be welcomed, or by a lost
 * session. The next dial reports a lost session. With mux->lock held; drops it while waiting.
 */
static int adopt_known_remote(struct dial *d, const char *name)
{
	struct weir_mux_local *mux = d->mux;
	struct weir_mux_remote *remote;
	int rc = 0;

	while (!rc && (remote = weir_mux_remote_by_session(mux, d->known, true)) == NULL &&
	       weir_mux_local_expects_welcome(mux))
		rc = weir_mux_account_wait(d->account, &mux->changed, d->deadline_ns);
	if (rc)
		return fail_late(d, rc);
	/* Of several pinned peers, one must not have the traffic for another. */
	if (remote && weir_mux_local_pins(mux) &&
	    memcmp(remote->identity, d->identity, sizeof(d->identity)))
		remote = NULL;
	d->ended = remote ? 0 : d->known;
	if (remote)
		weir_mux_remote_add_name(remote, name);
	return 0;
}

/*
 * Finds or creates the remote and the QP. With mux->lock held; drops it while waiting. Return:
 * as prove().
 */
static int try_remote(struct dial *d, const char *name, uint8_t class, struct weir_mux_remote **out)
{
	struct weir_mux_local *mux = d->mux;
	struct weir_mux_remote *remote = NULL;
	int rc = 0;

	while (!rc && ((remote = weir_mux_remote_by_name(mux, name)) != NULL ?
			       is_in_transition(remote, class) :
			       will_have_room(mux, d->account->group)))
		rc = weir_mux_account_wait(d->account, &mux->changed, d->deadline_ns);
	if (rc)
		return fail_late(d, rc);
	if (!remote)
		rc = begin_remote(d, name, &remote);
	if (rc)
		return rc;
	remote->refs++;
	rc = remote->qps[class] ? DIALLED : dial_qps(d, remote, class);
	if (rc)
		weir_mux_remote_put(remote);
	else
		*out = remote;
	return rc;
}

/*
 * Retries while QPs turn out spare. With mux->lock held; drops it while waiting. On success
 * @remote is referenced.
 */
static int reach_remote(struct dial *d, const char *name, uint8_t class,
			struct weir_mux_remote **out)
{
	int rc;

	while ((rc = try_remote(d, name, class, out)) == SPARE) {
		rc = adopt_known_remote(d, name);
		if (rc)
			break;
	}
	return rc;
}

int weir_mux_remote_connect(struct weir_mux_account *account, const char *peer, uint8_t class,
			    uint64_t deadline_ns, struct weir_mux_remote **remote,
			    struct weir_error *error)
{
	struct weir_mux_local *mux = account->mux;
	struct dial d = { .mux = mux,
			  .account = account,
			  .peer = peer,
			  .error = error,
			  .deadline_ns = deadline_ns };
	char name[WEIR_ADDRESS_MAX];
	struct addrinfo *list;
	/* A tenant has resolved the name itself, since a name server may take long. */
	int rc = account->socket >= 0 ? weir_address_parse_numeric(peer, &list, error) :
					weir_address_resolve(peer, NULL, &list, error);

	if (rc)
		return rc;
	weir_address_format(list->ai_addr, name);
	d.address = list->ai_addr;
	pthread_mutex_lock(&mux->lock);
	rc = reach_remote(&d, name, class, remote);
	pthread_mutex_unlock(&mux->lock);
	freeaddrinfo(list);
	return rc;
}
