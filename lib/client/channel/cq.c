/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/client/channel/scq.h"
#include "lib/client/session.h"

uint32_t weir_cq_entries(const struct weir_session *session, unsigned int channels)
{
	return channels * (session->tuning.depth + 2 * WEIR_PROOF_SENDS + WEIR_KEEPALIVE_SENDS);
}

int weir_cq_explain(struct weir_error *error, uint32_t entries)
{
	return weir_error_set(error, errno == EINVAL ? -EINVAL : -ENOMEM,
			      "no completion queue of %u: %s", entries, strerror(errno));
}

static int create_cq(struct weir_session *session, uint32_t entries, struct weir_error *error)
{
	const struct weir_session_tuning *t = &session->tuning;
	struct weir_cq *cq = &session->own_cqs[session->nr_cqs];

	*cq = (struct weir_cq){ .wcs_max = t->poll_wcs_max };
	cq->ibv = ibv_create_cq(session->nic->context, (int)entries, NULL, session->comp,
				weir_nic_next_vector(session->nic, t->comp_vectors));
	if (!cq->ibv)
		return weir_cq_explain(error, entries);
	session->cqs[session->nr_cqs++] = cq;
	return 0;
}

static int create_own_cqs(struct weir_session *session, struct weir_error *error)
{
	const struct weir_session_options *o = &session->options;
	unsigned int cqs = session->tuning.cqs;
	uint32_t entries = weir_cq_entries(session, (o->channels + cqs - 1) / cqs);
	int rc = 0;

	while (!rc && session->nr_cqs < cqs)
		rc = create_cq(session, entries, error);
	if (!rc && o->unload > WEIR_UNLOAD_OFF)
		rc = create_cq(session, WEIR_UNLOAD_TX_CQES, error);
	return rc;
}

/* The unload channel has its own CQ, the last, for both sends and receives. */
static void assign_cqs(struct weir_session *session)
{
	unsigned int i, channels = session->options.channels;
	bool unloads = session->options.unload > WEIR_UNLOAD_OFF;

	for (i = 0; i < WEIR_CHANNEL_MAX; i++) {
		session->links[i].cq = session->cqs[i % (session->nr_cqs - unloads)];
		session->links[i].has_own_cq = !session->cqs[0]->scq && i < channels &&
					       channels == session->nr_cqs - unloads;
	}
	if (unloads)
		session->links[channels].cq = session->cqs[session->nr_cqs - 1];
}

int weir_cqs_create(struct weir_session *session, struct weir_error *error)
{
	int rc = session->options.polling == WEIR_POLLING_SCQ ? weir_scq_attach(session, error) :
								create_own_cqs(session, error);

	if (!rc)
		assign_cqs(session);
	return rc;
}

void weir_cqs_destroy(struct weir_session *session)
{
	unsigned int i;

	if (session->nr_cqs && session->cqs[0]->scq) {
		weir_scq_detach(session);
		return;
	}
	for (i = 0; i < session->nr_cqs; i++)
		ibv_destroy_cq(session->own_cqs[i].ibv);
}
