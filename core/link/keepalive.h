/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keep-alive: detects a vanished host behind a session that posts nothing.
 *
 * A host that vanishes sends no message, and without a WR in flight nothing fails. A session that
 * has posted nothing for a while therefore probes each of its links by an empty RDMA write, as UCX
 * does. The NIC at the other end answers, not the CPU: a process that is merely stopped still
 * lends, and counts as alive. A link without an answer within the session's timeout fails, as does
 * one that the transport gives up earlier. A session that posts learns as much from its own WRs.
 *
 * A donor posts little: it probes a client from which it has heard nothing for a while
 * (weir_keepalive_heard()), and leaves the timeout to the transport.
 *
 * At a check the host takes all completions, asks weir_keepalive_is_quiet() once and
 * weir_keepalive_check() for each link, and ends the check with weir_keepalive_checked().
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_LINK_KEEPALIVE_H
#define WEIR_CORE_LINK_KEEPALIVE_H

#include "core/link/link.h"

#define WEIR_KEEPALIVE_SENDS 1 /* per link, in the send queue and CQ */

/**
 * struct weir_keepalive - one session's, or one channel's of a donor
 * @quiet_ns: time without a post before a probe
 * @timeout_ns: time for the answer
 * @due_ns: time of the next check; WEIR_NEVER: not started, or stopped
 * @posted: the session's count of WRs at the last check
 * @unanswered: links with a probe in flight
 */
struct weir_keepalive {
	uint64_t quiet_ns;
	uint64_t timeout_ns;
	uint64_t due_ns;
	uint64_t posted;
	unsigned int unanswered;
};

/* What a check wants done with a link. */
enum weir_keepalive_action {
	WEIR_KEEPALIVE_NOTHING,
	WEIR_KEEPALIVE_PROBE, /* post a probe, then weir_keepalive_probed(); or fail the link */
	WEIR_KEEPALIVE_FAIL,
};

/* Not started. */
void weir_keepalive_init(struct weir_keepalive *k, uint64_t quiet_ns, uint64_t timeout_ns);

/* Starts checking, unless started; the host has posted @posted WRs so far. */
void weir_keepalive_start(struct weir_keepalive *k, uint64_t posted, uint64_t now_ns);

/* Stops: the session ends. Probes in flight are still to be answered or forgotten. */
void weir_keepalive_stop(struct weir_keepalive *k);

/* Whether the session has posted nothing since the last check. */
static inline bool weir_keepalive_is_quiet(const struct weir_keepalive *k, uint64_t posted)
{
	return posted == k->posted;
}

/*
 * Return: what to do with @link at a check: nothing while a thread posts without the host's lock.
 */
enum weir_keepalive_action weir_keepalive_check(const struct weir_link *link, bool is_quiet);

/* A probe of @link is in flight. */
void weir_keepalive_probed(struct weir_keepalive *k, struct weir_link *link);

/* The check is over; the host has posted @posted WRs so far, with the probes if it counts them. */
void weir_keepalive_checked(struct weir_keepalive *k, uint64_t posted, uint64_t now_ns);

/* The probe of @link has completed. If it failed, the host fails the link. */
void weir_keepalive_answered(struct weir_keepalive *k, struct weir_link *link, uint64_t now_ns);

/* The peer has sent something. Unless a probe is unanswered, the next check is @quiet_ns later. */
void weir_keepalive_heard(struct weir_keepalive *k, uint64_t now_ns);

/* The QP is gone. Return: true if a probe was in flight, which now has no completion. */
bool weir_keepalive_forget(struct weir_keepalive *k, struct weir_link *link);

#endif
