/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's keep-alive: whether there is anybody at the other end of a client that says nothing.
 *
 * What a client reads and writes needs no CPU of the donor's, and a host that vanishes says
 * nothing: its memory would be held for ever. So a client of which nothing has come for
 * options.keepalive_ms is asked on its channel 0, by an empty RDMA write, as it asks in turn
 * (keepalive.h): its NIC answers, not its CPU, so that who is merely stopped counts as alive. Where
 * nobody answers the transport gives up, and the channel breaks.
 *
 * All functions: in the donor's thread.
 */
#ifndef WEIR_LIB_DONOR_KEEPALIVE_H
#define WEIR_LIB_DONOR_KEEPALIVE_H

#include <stdint.h>

struct weir_donor_conn;

#define WEIR_DONOR_KEEPALIVE_SENDS 1 /* in channel 0's send queue, and its CQ */

/* Something has come on @conn, or it has just become its client's: the time begins anew. */
void weir_donor_keepalive_reset(struct weir_donor_conn *conn, uint64_t now_ns);

/* Asks, if it is time. What cannot be asked breaks. */
void weir_donor_keepalive_check(struct weir_donor_conn *conn, uint64_t now_ns);

/* When to look next; UINT64_MAX: not before something comes. */
uint64_t weir_donor_keepalive_due_ns(const struct weir_donor_conn *conn);

/*
 * How long @conn's client, if it breaks now, may take to come back. Who does not answer may have to
 * do with a network that is down: such a client, too, notices only when it sends something.
 */
uint64_t weir_donor_keepalive_absence_ns(const struct weir_donor_conn *conn);

#endif
