/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Steps of a connection that its commands (cm.c) and messages (receive.c) share. */
#ifndef WEIR_SOFTNIC_ROCE_CM_CONN_H
#define WEIR_SOFTNIC_ROCE_CM_CONN_H

#include "softnic/roce_cm/cm.h"

/** roce_conn_take() - a free connection in @state with a fresh ID, or NULL */
struct roce_cm_conn *roce_conn_take(struct roce_cm *cm, enum roce_cm_state state,
				    const struct roce_cm_path *path, uint64_t tid);

/** roce_conn_tid() - a transaction ID that is hard to guess */
uint64_t roce_conn_tid(struct roce_cm *cm);

/** roce_conn_take_over() - learn what a REQ says about times and retries */
void roce_conn_take_over(struct roce_cm_conn *conn, const struct roce_mad *req, uint8_t timeout);

/** roce_conn_answer() - write @m into @reply, with the IDs, and have it sent */
void roce_conn_answer(struct roce_cm_conn *conn, const struct roce_mad *m);

/** roce_conn_ask() - write @m into @last, with the IDs; have it sent until it is answered */
void roce_conn_ask(struct roce_cm_conn *conn, const struct roce_mad *m, uint64_t now_ns);

/** roce_conn_tell() - an event; @m: its message, or NULL */
void roce_conn_tell(struct roce_cm_conn *conn, enum roce_cm_event_kind kind,
		    const struct roce_mad *m);

/** roce_conn_refuse() - a message to a host with which no connection remains */
void roce_conn_refuse(struct roce_cm *cm, const struct roce_mad *m,
		      const struct roce_cm_path *path);

/** roce_conn_end() - no message counts any more; @kind: its event, or ROCE_CM_EVENTS: none */
void roce_conn_end(struct roce_cm_conn *conn, enum roce_cm_event_kind kind,
		   const struct roce_mad *m);

/** roce_conn_time_wait() - late packets may come for a while; then the end */
void roce_conn_time_wait(struct roce_cm_conn *conn, uint64_t now_ns);

/** roce_conn_hang_up() - send a DREQ */
void roce_conn_hang_up(struct roce_cm_conn *conn, uint64_t now_ns);

#endif
