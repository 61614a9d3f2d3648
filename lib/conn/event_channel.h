/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels of the connection manager's events, and copies of the events. */
#ifndef WEIR_LIB_CONN_EVENT_CHANNEL_H
#define WEIR_LIB_CONN_EVENT_CHANNEL_H

#include <rdma/rdma_cma.h>

#include <weir/error.h>

/**
 * struct weir_cm_event - a copy of an event
 * @id, @context: the id and its context. After the acknowledgement another thread may destroy
 *	@id, but never before
 * @status: a negative errno, or the reason of a reject
 * @param: of the connection; param.private_data is NULL or points to @data
 */
struct weir_cm_event {
	struct rdma_cm_id *id;
	void *context;
	enum rdma_cm_event_type type;
	int status;
	struct rdma_conn_param param;
	uint8_t data[UINT8_MAX];
};

/**
 * weir_event_channel_open() - create a channel whose reads do not block
 * @error: may be NULL
 *
 * The caller owes rdma_destroy_event_channel().
 *
 * Return: 0; -ENOMEM no descriptors or memory; -ENODEV there is no connection manager.
 */
int weir_event_channel_open(struct rdma_event_channel **cm, struct weir_error *error);

/**
 * weir_event_channel_get() - take the next event, and acknowledge it
 *
 * rdma_destroy_id() waits for acknowledgements. After this call, the same thread may therefore
 * destroy the event's id.
 *
 * Return: 1; 0 there is no event; or a negative errno.
 */
int weir_event_channel_get(struct rdma_event_channel *cm, struct weir_cm_event *event);

#endif
