/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>

#include "lib/base/sized.h"
#include "lib/client/message/call.h"
#include "lib/client/session.h"

/* Room for the state, or for the sentence of a refusal. */
#define REPLY_MAX 512

int weir_session_donor_state(struct weir_session *session, struct weir_donor_state *given,
			     size_t size)
{
	struct wire_control_request request = { .op = WIRE_DONOR_INFO };
	struct weir_donor_state state;
	struct wire_control_info info;
	char reply[REPLY_MAX];
	size_t length;
	int rc;

	rc = weir_call_control(session, &request, NULL, reply, sizeof(reply), &length, NULL);
	if (rc)
		return rc;
	if (wire_control_info_decode(reply, length, &info))
		return -EPROTO;
	state = (struct weir_donor_state){
		.incarnation = info.incarnation,
		.memory_bytes = info.memory_bytes,
		.lent_bytes = info.lent_bytes,
		.quota_bytes = info.quota_bytes,
		.held_bytes = info.charged_bytes,
		.clients = info.clients,
		.regions = info.regions,
	};
	return weir_sized_out(given, size, &state, sizeof(state));
}
