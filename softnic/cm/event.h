/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager's events, and the channels that they wait in until the user fetches them.
 * Guarded by cm_lock, as all of it.
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
 * @channel: what the user sees; its fd is an eventfd
 * @events: not fetched yet
 * @withdrawn: events taken back after a thread had read their count
 *
 * The eventfd's count, and the threads that have read it and are on their way to the list, are
 * together as many as @events and @withdrawn.
 */
struct cm_channel {
	struct rdma_event_channel channel;
	struct cm_event_list events;
	unsigned int withdrawn;
};

/**
 * struct cm_event - an event
 * @event: what the user sees
 * @owner: the id that waits for its acknowledgement: that of the event or, for a connection
 *	request, the listener
 * @group: of a join, likewise; or NULL
 * @link: in the channel's list, until fetched
 * @private_data: what @event points to, padded with zeros to the limit of its message
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
 * cm_event_push() - give the user an event
 * @owner: see struct cm_event; its channel gets the event
 * @id: whom the event is about
 * @msg: what came with it, or NULL
 *
 * Context: cm_lock held.
 * Return: the event, for more to be filled in before cm_lock is released; NULL if there is no
 *	memory for it.
 */
struct cm_event *cm_event_push(struct cm_id *owner, struct cm_id *id, enum rdma_cm_event_type type,
			       int status, const struct cm_msg *msg);

/* Forget what was not fetched of an owner's events. Context: cm_lock held. */
void cm_event_drop(struct cm_id *owner);

/* Forget the join of a group if it was not fetched. Context: cm_lock held. */
void cm_event_drop_group(struct cm_id *owner, struct cm_group *group);

/* Wait until the user has acknowledged what was fetched. Context: without cm_lock. */
void cm_event_wait_acked(struct cm_id *owner);
void cm_event_wait_group_acked(struct cm_group *group);

/* Acknowledge what a synchronous id has at id->event. */
void cm_event_ack_last(struct cm_id *id);

/**
 * cm_event_complete() - of a synchronous id, wait for the event of the call that is under way
 *
 * The event is at id->event until the next call. Does nothing for other ids.
 *
 * Return: 0, or the event's status as a negative errno.
 */
int cm_event_complete(struct cm_id *id);

#endif
