/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/donor/keepalive.h"
#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/donor/conn.h"
#include "lib/donor/client.h"

static bool may_ask(const struct weir_gate *gate)
{
	return gate->peer && gate->peer->gates[0] == gate && !gate->is_asked &&
	       !gate->is_broken && !gate->is_dead;
}

void weir_ask_later(struct weir_gate *gate, uint64_t now_ns)
{
	gate->ask_ns = now_ns + gate->donor->options.keepalive_ms * WEIR_NS_PER_MS;
}

uint64_t weir_ask_due_ns(const struct weir_gate *gate)
{
	return may_ask(gate) ? gate->ask_ns : UINT64_MAX;
}

/* Of an empty write the rkey is not looked at: IB specification, C9-88. */
void weir_ask_look(struct weir_gate *gate, uint64_t now_ns)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_GATE_ASK,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (now_ns < weir_ask_due_ns(gate))
		return;
	gate->is_asked = true;
	weir_donor_log(gate->donor, WEIR_LOG_DEBUG, "asks peer=%llu client=%s",
		       (unsigned long long)weir_peer_id(gate->peer), gate->name);
	if (ibv_post_send(gate->id->qp, &wr, &bad))
		weir_gate_break(gate, "it cannot be asked");
}

uint64_t weir_ask_absence_ns(const struct weir_gate *gate)
{
	const struct weir_donor_options *options = &gate->donor->options;
	unsigned int ms = options->absence_ms;

	if (gate->is_asked && options->keepalive_ms > ms)
		ms = options->keepalive_ms;
	return ms * WEIR_NS_PER_MS;
}
