/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/link/reconnect.h"

/*
 * Errors that make further attempts useless: the donor has ended, or has forgotten the session, or
 * is another. A route to another device or to none is not final: a network link that is down also
 * takes down our address.
 */
static bool is_final(int status)
{
	return status == -ESTALE || status == -ECONNREFUSED || status == -EKEYREJECTED ||
	       status == -EPROTONOSUPPORT || status == -ECANCELED;
}

void weir_reconnect_begin(struct weir_reconnect *r, uint64_t give_up_ns, uint64_t now_ns)
{
	*r = (struct weir_reconnect){ .give_up_ns = give_up_ns, .next_ns = now_ns };
}

void weir_reconnect_pause(struct weir_reconnect *r, uint32_t draw, uint64_t now_ns)
{
	r->pause_ns *= 2;
	if (r->pause_ns < WEIR_RECONNECT_PAUSE_NS_MIN)
		r->pause_ns = WEIR_RECONNECT_PAUSE_NS_MIN;
	if (r->pause_ns > WEIR_RECONNECT_PAUSE_NS_MAX)
		r->pause_ns = WEIR_RECONNECT_PAUSE_NS_MAX;
	r->next_ns = now_ns + r->pause_ns / 2 + draw % (r->pause_ns / 2);
	if (r->next_ns > r->give_up_ns)
		r->next_ns = r->give_up_ns;
}

bool weir_reconnect_failed(struct weir_reconnect *r, int status, uint32_t draw, uint64_t now_ns)
{
	if (is_final(status) || now_ns >= r->give_up_ns)
		return false;
	weir_reconnect_pause(r, draw, now_ns);
	return true;
}
