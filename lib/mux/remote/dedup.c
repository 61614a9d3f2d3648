/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which mux is which. An address does not identify a mux: a mux may have several, and may
 * connect to us as well as we to the mux. Fairness holds within a remote, so two muxes must
 * share a single remote. Each mux has a random id, sent in the handshake under the proof of the
 * key, so no outsider can claim an id.
 *
 * The first QP decides, starting at the donor end (the end connected to). If the donor already
 * has a remote for the mux, the QP is spare, and WELCOME names the remote's session. The client
 * finds the remote by the session and drops the QP. If the client has no such remote, the remote
 * was lost without the donor's notice; the client dials again and names the session as ended.
 * But another WELCOME with the same session may still be in flight, so the client first waits
 * for all welcomes.
 *
 * When both ends dial at once, both may be welcomed before either learns of the other QP. Then
 * the QP dialled by the mux with the lower id stays, and the other mux drops the second QP,
 * still unused because the dialler learns first. An exception: a message came by the staying
 * remote before our proof. The peer had the remote by then and would have named the session, so
 * the peer has lost the remote, and the new QP stays. tests/model/dedup.pml checks every
 * interleaving.
 *
 * Either end may dial further QPs; if both do so at once, the lower id's stays.
 *
 * A mux that connects to itself has two remotes with one session: a dialling and a dialled
 * remote.
 *
 * An impostor with the key may claim another mux's id, which is no secret. Without pins, a connect
 * by the impostor ends our remote of the real mux. If the impostor connects first and stays silent,
 * we may drop our QP to the real mux as a duplicate, where our id is the higher; traffic for the
 * real mux then goes to the impostor. All holders of the key are trusted not to do so.
 *
 * A mux that pins its peers trusts a QP that it has dialled only: the handshake proves the identity
 * of the end that listens. So such a mux joins no QP dialled by others with its own, in three ways.
 * It dials under another id than it listens, so that no peer takes its QPs for duplicates. It
 * compares what it has dialled with what it has dialled, and what it has accepted with what it has
 * accepted. And nobody else dials a further QP of a remote that it has dialled. Two muxes that
 * connect to each other then have two remotes. An impostor can still end remotes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/mux/local/local.h"

static const uint8_t nobody[WIRE_MUX_ID];

/* < 0: our id is the lower; 0: the id is ours. */
static int compare_ids(const struct weir_mux_local *mux, const uint8_t id[static WIRE_MUX_ID])
{
	return memcmp(mux->id, id, WIRE_MUX_ID);
}

bool weir_mux_remote_is_usable(const struct weir_mux_remote *remote)
{
	return remote->leave != WEIR_MUX_IDLE_LEFT &&
	       !__atomic_load_n(&remote->status, __ATOMIC_ACQUIRE);
}

static bool has_name(const struct weir_mux_remote *remote, const char *name)
{
	unsigned int i;

	for (i = 0; i < remote->nr_names && i < WEIR_MUX_REMOTE_NAMES_MAX; i++)
		if (!strcmp(remote->names[i], name))
			return true;
	return false;
}

struct weir_mux_remote *weir_mux_remote_by_name(struct weir_mux_local *mux, const char *name)
{
	struct weir_list *at;

	for (at = mux->remotes.next; at != &mux->remotes; at = at->next) {
		struct weir_mux_remote *remote = weir_list_entry(at, struct weir_mux_remote, link);

		if (weir_mux_remote_is_usable(remote) && has_name(remote, name))
			return remote;
	}
	return NULL;
}

void weir_mux_remote_add_name(struct weir_mux_remote *remote, const char *name)
{
	if (has_name(remote, name))
		return;
	snprintf(remote->names[remote->nr_names++ % WEIR_MUX_REMOTE_NAMES_MAX],
		 sizeof(remote->name), "%s", name);
}

struct weir_mux_remote *weir_mux_remote_by_session(struct weir_mux_local *mux, uint64_t session_id,
						   bool is_client)
{
	struct weir_list *at;

	for (at = mux->remotes.next; at != &mux->remotes; at = at->next) {
		struct weir_mux_remote *remote = weir_list_entry(at, struct weir_mux_remote, link);

		if (remote->session_id != session_id || !remote->qps[0] ||
		    !weir_mux_remote_is_usable(remote))
			continue;
		if (weir_mux_local_pins(mux) && remote->is_ours != is_client)
			continue;
		if (compare_ids(mux, remote->id) || remote->is_ours == is_client)
			return remote;
	}
	return NULL;
}

/* While both ends dial there may be two; the remote dialled by the lower id stays. */
struct weir_mux_remote *weir_mux_remote_by_id(struct weir_mux_local *mux,
					      const uint8_t id[static WIRE_MUX_ID])
{
	const bool ours_stays = compare_ids(mux, id) < 0;
	struct weir_mux_remote *found = NULL;
	struct weir_list *at;

	for (at = mux->remotes.next; at != &mux->remotes; at = at->next) {
		struct weir_mux_remote *remote = weir_list_entry(at, struct weir_mux_remote, link);

		if (!remote->qps[0] || memcmp(remote->id, id, WIRE_MUX_ID) ||
		    !weir_mux_remote_is_usable(remote))
			continue;
		if (remote->is_ours && weir_mux_local_pins(mux))
			continue;
		if (remote->is_ours == ours_stays)
			return remote;
		if (compare_ids(mux, id))
			found = remote;
	}
	return found;
}

bool weir_mux_local_expects_welcome(const struct weir_mux_local *mux)
{
	const struct weir_list *at;

	for (at = mux->qps.next; at != &mux->qps; at = at->next) {
		const struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		if (!qp->class && qp->state == WEIR_MUX_QP_PROVING &&
		    qp->handshake->state == WEIR_HANDSHAKE_WELCOME)
			return true;
	}
	return false;
}

/* A further QP: the peer must be the mux proven on the first, and only one end may dial. */
static int dedup_further(const struct weir_mux_qp *qp)
{
	const struct weir_mux_remote *remote = qp->remote;

	if (memcmp(remote->id, qp->handshake->hello.mux, WIRE_MUX_ID))
		return -EPROTO;
	if (remote->qps[qp->class] || weir_mux_qp_is_pending(remote, qp->class))
		return -EALREADY;
	if (remote->is_dialing && remote->dialing == qp->class &&
	    compare_ids(remote->mux, remote->id) < 0)
		return -EALREADY;
	return 0;
}

int weir_mux_qp_dedup_client(struct weir_mux_qp *qp, struct wire_handshake_welcome *welcome)
{
	const struct wire_handshake_hello *hello = &qp->handshake->hello;
	struct weir_mux_local *mux = qp->remote->mux;
	struct weir_mux_remote *known;

	welcome->session_id = qp->remote->session_id;
	memcpy(welcome->mux, mux->id, WIRE_MUX_ID);
	if (qp->class)
		return dedup_further(qp);
	if (!memcmp(hello->mux, nobody, WIRE_MUX_ID))
		return -EPROTO;
	known = weir_mux_remote_by_id(mux, hello->mux);
	while (known && known->session_id == hello->ended) {
		weir_mux_remote_fail(known, -ECONNRESET);
		known = weir_mux_remote_by_id(mux, hello->mux);
	}
	if (!known) {
		memcpy(qp->remote->id, hello->mux, WIRE_MUX_ID);
		return 0;
	}
	welcome->session_id = known->session_id;
	welcome->is_known = 1;
	return 1;
}

/* A remote dialled by the peer meanwhile, if the peer's stays. */
static const struct weir_mux_remote *find_rival(const struct weir_mux_qp *qp)
{
	const struct weir_mux_remote *remote = qp->remote,
				     *rival = weir_mux_remote_by_id(remote->mux, remote->id);

	if (weir_mux_local_pins(remote->mux))
		return NULL;
	if (compare_ids(remote->mux, remote->id) <= 0 || !rival || rival->is_ours ||
	    (rival->heard && rival->heard < qp->proved))
		return NULL;
	return rival;
}

/* Of several pinned peers, a further QP leads to that of the first. */
static bool is_same_peer(const struct weir_mux_remote *remote, const struct weir_handshake *h)
{
	return !memcmp(remote->id, h->welcome.mux, WIRE_MUX_ID) &&
	       (!weir_mux_local_pins(remote->mux) ||
		!memcmp(remote->identity, h->identity, WIRE_KEY));
}

int weir_mux_qp_dedup_donor(struct weir_mux_qp *qp)
{
	struct wire_handshake_welcome *welcome = &qp->handshake->welcome;
	struct weir_mux_remote *remote = qp->remote;
	const struct weir_mux_remote *rival;

	if (qp->class)
		return !is_same_peer(remote, qp->handshake) || remote->qps[qp->class] ? -EPROTO : 0;
	if (!memcmp(welcome->mux, nobody, WIRE_MUX_ID) || welcome->is_known > 1)
		return -EPROTO;
	if (welcome->is_known)
		return 1;
	memcpy(remote->id, welcome->mux, WIRE_MUX_ID);
	memcpy(remote->identity, qp->handshake->identity, WIRE_KEY);
	remote->session_id = welcome->session_id;
	rival = find_rival(qp);
	if (!rival)
		return 0;
	welcome->session_id = rival->session_id;
	return 1;
}
