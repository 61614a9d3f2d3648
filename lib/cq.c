/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/session.h"

/* What one channel may leave here at once: all it has in flight, and what its handshake sent. */
static unsigned int size_of(const struct weir_session *session)
{
	const struct weir_session_options *o = &session->options;
	unsigned int channels = (o->channels + o->cqs - 1) / o->cqs;

	return channels * (o->depth + 2 * WEIR_HANDSHAKE_SENDS);
}

int weir_cqs_make(struct weir_session *session, struct weir_error *error)
{
	unsigned int i, size = size_of(session);

	for (i = 0; i < session->options.cqs; i++) {
		int vector = weir_nic_next_vector(session->nic, session->options.comp_vectors);

		session->cqs[i].ibv = ibv_create_cq(session->nic->context, (int)size, NULL,
						    session->comp, vector);
		if (!session->cqs[i].ibv)
			return weir_fail(error, errno == EINVAL ? -EINVAL : -ENOMEM,
					 "no completion queue of %u: %s", size, strerror(errno));
	}
	return 0;
}

void weir_cqs_free(struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->options.cqs; i++) {
		if (session->cqs[i].ibv)
			ibv_destroy_cq(session->cqs[i].ibv);
	}
}
