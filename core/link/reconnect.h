/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to reconnect a broken link, and when to give up.
 *
 * The first attempt is made at once. The pause before each further attempt doubles, up to a second,
 * and half of it is random: all clients of a donor may break at once, and should not return at
 * once. The session is lost when a link cannot reconnect in time, or never will: a write sent on
 * the link may still be on its way, and only the donor can exclude that.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_LINK_RECONNECT_H
#define WEIR_CORE_LINK_RECONNECT_H

#include "core/base/platform.h"

#define WEIR_RECONNECT_PAUSE_NS_MIN 10000000u
#define WEIR_RECONNECT_PAUSE_NS_MAX 1000000000u

/**
 * struct weir_reconnect - one broken link's attempts
 * @give_up_ns: no attempt begins later; an attempt that fails at this time or later is the last
 * @next_ns: when the next attempt may begin
 * @pause_ns: the longest pause before it
 */
struct weir_reconnect {
	uint64_t give_up_ns;
	uint64_t next_ns;
	uint32_t pause_ns;
};

/* A link has broken. The first attempt may begin now. */
void weir_reconnect_begin(struct weir_reconnect *r, uint64_t give_up_ns, uint64_t now_ns);

/**
 * weir_reconnect_failed() - decide after a failed attempt
 * @r: the attempts
 * @status: of the attempt, a negative errno
 * @draw: a random number
 * @now_ns: the time
 *
 * Return: true to try again at @r->next_ns; false to give up: the session is lost.
 */
bool weir_reconnect_failed(struct weir_reconnect *r, int status, uint32_t draw, uint64_t now_ns);

/*
 * Chooses @r->next_ns after a failed attempt whose status does not matter: the peer, such as the
 * store of a pool, will come back some time.
 */
void weir_reconnect_pause(struct weir_reconnect *r, uint32_t draw, uint64_t now_ns);

#endif
