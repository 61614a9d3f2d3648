/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager's events and event channels. Guarded by cm_lock.
 */
#ifndef WEIR_SOFTNIC_CM_EVENT_H
#define WEIR_SOFTNIC_CM_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "msg.h"
#include "softnic/verbs/verbs.h"

struct cm_group;
struct cm_id;

TAILQ_HEAD(cm_event_list, cm_event);

/**
 * struct cm_channel - an event channel
 * @channel: the user's view; the fd is an eventfd
 * @events: not yet fetched
 * @withdrawn: events withdrawn after a thread had taken the count
 *
 * Invariant: the eventfd's count plus the threads between count and list equals the number of
 * @events plus @withdrawn.
 */
struct cm_channel {
	struct rdma_event_channel channel;
	struct cm_event_list events;
	unsigned int withdrawn;
};

/**
 * struct cm_event - an event
 * @event: the user's view
 * @owner: the id that waits for the acknowledgement: the event's id or, for a connection
 *	request, the listener
 * @group: of a join event: the group that waits for the acknowledgement; else NULL
 * @link: in the channel's list, until fetched
 * @private_data: @event's private data, zero-padded to the limit of the message type
 */
struct cm_event {
	struct rdma_cm_event event;
	struct cm_id *owner;
	struct cm_group *group;
	TAILQ_ENTRY(cm_event) link;
	uint8_t private_data[CM_PRIVATE_MAX];
};

static inline struct cm_channel *cm_channel(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)((char *)channel - offsetof(struct cm_channel, channel));
}

int cm_channel_create(struct cm_channel **channel);
void cm_channel_destroy(struct cm_channel *channel);

/**
 * cm_event_push() - queue an event for the user
 * @owner: see struct cm_event; the owner's channel gets the event
 * @id: the event's id
 * @msg: the message that caused the event, or NULL
 *
 * Context: cm_lock held.
 * Return: the event, which the caller may complete before unlocking; NULL without memory.
 */
struct cm_event *cm_event_push(struct cm_id *owner, struct cm_id *id, enum rdma_cm_event_type type,
			       int status, const struct cm_msg *msg);

/* Drop an owner's unfetched events. Context: cm_lock held. */
void cm_event_drop(struct cm_id *owner);

/* Drop a group's join event, if not yet fetched. Context: cm_lock held. */
void cm_event_drop_group(struct cm_id *owner, struct cm_group *group);

/* Wait until the user has acknowledged all fetched events. Context: without cm_lock. */
void cm_event_wait_acked(struct cm_id *owner);
void cm_event_wait_group_acked(struct cm_group *group);

/* Acknowledge id->event of a synchronous id. */
void cm_event_ack_last(struct cm_id *id);

/**
 * cm_event_complete() - wait for the event of the current call on a synchronous id
 *
 * The event stays at id->event until the next call. Does nothing for other ids.
 *
 * Return: 0, or the event's status as a negative errno.
 */
int cm_event_complete(struct cm_id *id);

#endif
