/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions: memory that one-sided reads and writes go to and from. The device takes keys for the whole
 * of one; what a peer may do there the peer's mux sees to, which has proven the key, before it posts
 * anything: see errand.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/mux/hub.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

int weir_plot_new(struct weir_owner *owner, size_t length, struct weir_plot **out)
{
	struct weir_plot *plot;

	if (!length)
		return -EINVAL;
	if (length > owner->bytes_max - owner->bytes)
		return -EDQUOT;
	plot = calloc(1, sizeof(*plot));
	if (!plot)
		return -ENOMEM;
	plot->owner = owner;
	plot->length = length;
	plot->number = ++owner->last_plot;
	owner->bytes += length;
	weir_list_add_tail(&owner->plots, &plot->link);
	plot->base = weir_owner_map(owner, length, &plot->fd);
	if (plot->base)
		plot->mr = ibv_reg_mr(owner->hub->pd, plot->base, length, ACCESS);
	if (!plot->mr) {
		weir_plot_free(plot);
		return -ENOMEM;
	}
	*out = plot;
	return 0;
}

void weir_plot_free(struct weir_plot *plot)
{
	if (plot->mr)
		ibv_dereg_mr(plot->mr);
	if (plot->base)
		munmap(plot->base, plot->length);
	if (plot->fd >= 0)
		close(plot->fd);
	plot->owner->bytes -= plot->length;
	weir_list_del(&plot->link);
	free(plot);
}

struct weir_plot *weir_plot_find(const struct weir_owner *owner, uint32_t number)
{
	struct weir_list *at;

	for (at = owner->plots.next; at != &owner->plots; at = at->next)
		if (weir_list_entry(at, struct weir_plot, link)->number == number)
			return weir_list_entry(at, struct weir_plot, link);
	return NULL;
}

static bool is_granted_by(const struct weir_circuit *conn, const struct weir_plot *plot)
{
	unsigned int i;

	for (i = 0; i < WEIR_GRANTS_MAX; i++)
		if (conn->grants[i].state && conn->grants[i].plot == plot)
			return true;
	return false;
}

/* Whether a connection that nobody has closed lets the other end reach it. */
static bool is_granted(const struct weir_plot *plot)
{
	const struct weir_hub *hub = plot->owner->hub;
	unsigned int i;

	for (i = 0; i < hub->options.connections_max; i++)
		if (hub->table[i] && !hub->table[i]->is_closed && is_granted_by(hub->table[i], plot))
			return true;
	return false;
}

int weir_plot_close(struct weir_owner *owner, uint32_t number)
{
	struct weir_hub *hub = owner->hub;
	const struct timespec until = weir_timespec(weir_after_ns(weir_now_ns(),
								   hub->options.timeout_ns));
	struct weir_plot *plot;
	int rc = 0;

	pthread_mutex_lock(&hub->lock);
	plot = weir_plot_find(owner, number);
	if (!plot)
		rc = -EINVAL;
	while (!rc && plot->refs) {
		if (is_granted(plot))
			rc = -EBUSY;
		else if (pthread_cond_timedwait(&hub->changed, &hub->lock, &until) == ETIMEDOUT)
			rc = -ETIMEDOUT;
	}
	if (!rc)
		weir_plot_free(plot);
	pthread_mutex_unlock(&hub->lock);
	return rc;
}
