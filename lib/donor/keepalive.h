/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posts the probes of the donor's keep-alive (core/link/keepalive.h), which detects the vanished
 * host of a silent client.
 *
 * A client's reads and writes use no CPU of the donor, and a host that vanishes sends nothing: the
 * client's memory would be held for ever. The donor therefore probes a client that has been silent
 * for options.keepalive_ms by an empty RDMA write on channel 0, as clients do. Without an answer
 * the transport gives up, and the channel breaks.
 *
 * All functions: in the donor's thread.
 */
#ifndef WEIR_LIB_DONOR_KEEPALIVE_H
#define WEIR_LIB_DONOR_KEEPALIVE_H

#include <stdint.h>

struct weir_donor_conn;

/* Sends a probe, if due. If sending fails, the connection breaks. */
void weir_donor_keepalive_check(struct weir_donor_conn *conn, uint64_t now_ns);

/* Time of the next check; UINT64_MAX: not before the next completion. */
uint64_t weir_donor_keepalive_due_ns(const struct weir_donor_conn *conn);

/*
 * How long @conn's client may stay away, if it breaks now. A client that does not answer may suffer
 * from a network outage, which the client also notices only when sending.
 */
uint64_t weir_donor_keepalive_absence_ns(const struct weir_donor_conn *conn);

#endif
