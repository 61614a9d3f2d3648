/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A completion is visible to spinning threads at once, and may raise an interrupt through MSI. */
#include <errno.h>
#include <stdlib.h>

#include "sim/nic/cq.h"
#include "sim/nic/profile.h"

static void handler_is_done(struct sim_event *event)
{
	struct sim_channel *channel = container_of(event, struct sim_channel, event);

	channel->events += channel->raised;
	channel->raised = 0;
	if (channel->waiter)
		sim_thread_wake(channel->waiter);
}

static void interrupt(struct sim_event *event)
{
	struct sim_channel *channel = container_of(event, struct sim_cq, msi)->channel;
	struct sim_host *host = channel->core->host;

	channel->raised++;
	sim_clock_at(host->clock, &channel->event,
		     sim_core_interrupt(channel->core, host->profile->irq_ps));
}

void sim_channel_init(struct sim_channel *channel, struct sim_core *core)
{
	*channel = (struct sim_channel){ .core = core, .event.happen = handler_is_done };
}

int sim_cq_init(struct sim_cq *cq, struct sim_channel *channel, uint32_t room)
{
	*cq = (struct sim_cq){ .channel = channel, .msi.happen = interrupt, .room = room };
	weir_list_init(&cq->spinners);
	cq->ring = calloc(room, sizeof(*cq->ring));
	return cq->ring ? 0 : -ENOMEM;
}

void sim_cq_fini(struct sim_cq *cq)
{
	free(cq->ring);
}

/* A spinning thread notices a completion at the end of the poll under way. */
static void wake_spinner(struct sim_thread *spinner, const struct sim_profile *p)
{
	sim_thread_poke(spinner, p->poll_empty_ps / 2);
}

/* Doubles the ring; the oldest completion moves to index 0. */
static void grow_ring(struct sim_cq *cq)
{
	struct sim_wc *ring = calloc(2 * (size_t)cq->room, sizeof(*ring));
	uint32_t i;

	if (!ring)
		abort();
	for (i = 0; i < cq->count; i++)
		ring[i] = cq->ring[(cq->first + i) % cq->room];
	free(cq->ring);
	cq->ring = ring;
	cq->room *= 2;
	cq->first = 0;
}

void sim_cq_push(struct sim_cq *cq, const struct sim_wc *wc)
{
	struct weir_list *link;

	if (cq->count == cq->room)
		grow_ring(cq);
	cq->ring[(cq->first + cq->count++) % cq->room] = *wc;
	cq->pushed++;
	for (link = cq->spinners.next; link != &cq->spinners; link = link->next) {
		struct sim_thread *t = weir_list_entry(link, struct sim_thread, wait_link);

		wake_spinner(t, t->host->profile);
	}
	if (cq->is_armed && !sim_event_is_scheduled(&cq->msi)) {
		struct sim_host *host = cq->channel->core->host;

		cq->is_armed = false;
		sim_clock_in(host->clock, &cq->msi, host->profile->irq_latency_ps);
	}
}
