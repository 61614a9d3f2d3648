/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions: memory that one-sided reads and writes go to and from. The device takes keys for the
 * whole of one; what a peer may do there the peer's mux sees to, which has proven the key, before
 * it posts anything: see errand.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* Memory, and the device's keys for it. */
static int plot_map(struct weir_plot *plot)
{
	struct weir_owner *owner = plot->owner;

	plot->base = weir_owner_map(owner, plot->length, &plot->fd);
	if (plot->base)
		plot->mr = ibv_reg_mr(owner->hub->pd, plot->base, plot->length, ACCESS);
	return plot->mr ? 0 : -ENOMEM;
}

/* It is in no list. */
static void plot_destroy(struct weir_plot *plot)
{
	struct weir_owner *owner = plot->owner;
	const size_t length = plot->length;

	if (plot->mr)
		ibv_dereg_mr(plot->mr);
	if (plot->base)
		munmap(plot->base, length);
	if (plot->fd >= 0)
		close(plot->fd);
	free(plot);
	pthread_mutex_lock(&owner->hub->lock);
	weir_owner_give_plot(owner, length);
	pthread_mutex_unlock(&owner->hub->lock);
}

int weir_plot_new(struct weir_owner *owner, size_t length, struct weir_plot **out)
{
	struct weir_hub *hub = owner->hub;
	struct weir_plot *plot;
	int rc;

	if (!length)
		return -EINVAL;
	plot = calloc(1, sizeof(*plot));
	if (!plot)
		return -ENOMEM;
	*plot = (struct weir_plot){ .owner = owner, .length = length, .fd = -1 };
	pthread_mutex_lock(&hub->lock);
	rc = weir_owner_take_plot(owner, length);
	pthread_mutex_unlock(&hub->lock);
	if (rc) {
		free(plot);
		return rc;
	}
	rc = plot_map(plot);
	if (rc) {
		plot_destroy(plot);
		return rc;
	}
	pthread_mutex_lock(&hub->lock);
	plot->number = ++owner->last_plot;
	weir_list_add_tail(&owner->plots, &plot->link);
	pthread_mutex_unlock(&hub->lock);
	*out = plot;
	return 0;
}

void weir_plot_free(struct weir_plot *plot)
{
	struct weir_hub *hub = plot->owner->hub;

	pthread_mutex_lock(&hub->lock);
	weir_list_del(&plot->link);
	pthread_mutex_unlock(&hub->lock);
	plot_destroy(plot);
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
		if (hub->table[i] && !hub->table[i]->is_closed &&
		    is_granted_by(hub->table[i], plot))
			return true;
	return false;
}

int weir_plot_close(struct weir_owner *owner, uint32_t number)
{
	struct weir_hub *hub = owner->hub;
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), hub->options.timeout_ns);
	struct weir_plot *plot;
	int rc = 0;

	pthread_mutex_lock(&hub->lock);
	plot = weir_plot_find(owner, number);
	if (!plot)
		rc = -EINVAL;
	while (!rc && plot->refs) {
		if (is_granted(plot))
			rc = -EBUSY;
		else
			rc = weir_owner_wait(owner, &owner->changed, deadline_ns);
	}
	if (!rc)
		weir_list_del(&plot->link); /* nobody finds it any more */
	pthread_mutex_unlock(&hub->lock);
	if (!rc)
		plot_destroy(plot);
	return rc;
}
