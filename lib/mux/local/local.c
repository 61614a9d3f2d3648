/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/mux/classes.h"
#include "lib/mux/local/local.h"
#include "lib/base/thread.h"

void weir_fd_ring(int fd)
{
	const uint64_t one = 1;

	if (fd < 0)
		return;
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void weir_fd_take(int fd)
{
	uint64_t rings[64]; /* as a pipe holds them; an eventfd gives one number */

	if (fd < 0)
		return;
	while (read(fd, rings, sizeof(rings)) < 0 && errno == EINTR)
		;
}

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static void options_fill(struct weir_mux_options *o, const struct weir_mux_options *given)
{
	*o = given ? *given : (struct weir_mux_options){ 0 };
	if (!o->classes) {
		o->classes = weir_default_classes;
		o->nr_classes = WEIR_DEFAULT_CLASSES;
	}
	if (!o->low_bytes_max)
		o->low_bytes_max = 128 << 10;
	if (!o->connections_max)
		o->connections_max = 4096;
	if (!o->ring_bytes)
		o->ring_bytes = 256 << 10;
	if (!o->buffers)
		o->buffers = 64;
	if (!o->timeout_ns)
		o->timeout_ns = 10 * WEIR_NS_PER_S;
	if (!o->quiet_ns)
		o->quiet_ns = 50000;
	if (!o->idle_ns)
		o->idle_ns = WEIR_HUB_IDLE_NS;
}

static int options_check(const struct weir_mux_options *o, struct weir_error *error)
{
	if (!o->nr_classes || o->nr_classes > WEIR_MUX_CLASSES_MAX)
		return weir_fail(error, -EINVAL, "%u classes: 1 to %u are possible", o->nr_classes,
				 WEIR_MUX_CLASSES_MAX);
	if (!is_power_of_two(o->ring_bytes) || o->ring_bytes < WEIR_RING_MIN ||
	    o->ring_bytes > 64 << 20)
		return weir_fail(error, -EINVAL,
				 "rings of %u bytes: give a power of two, 4096 to 67108864",
				 o->ring_bytes);
	if (o->connections_max > UINT16_MAX)
		return weir_fail(error, -EINVAL, "%u connections: at most %u are possible",
				 o->connections_max, UINT16_MAX);
	if (o->buffers < 8 || o->buffers > 4096)
		return weir_fail(error, -EINVAL, "%u receive buffers: 8 to 4096 are possible",
				 o->buffers);
	return 0;
}

/* A class as the scheduler knows it. */
static int class_fill(struct weir_hub *hub, unsigned int i, struct weir_error *error)
{
	struct weir_mux_class *c = &hub->classes[i];

	*c = hub->options.classes[i];
	if (!c->weight)
		c->weight = 1;
	if (!c->segment_bytes)
		c->segment_bytes = WIRE_PIECE_MAX;
	if (!c->depth)
		c->depth = 4;
	if (c->segment_bytes < 1024 || c->segment_bytes > WIRE_PIECE_MAX)
		return weir_fail(error, -EINVAL, "segments of %u bytes: 1024 to %u are possible",
				 c->segment_bytes, WIRE_PIECE_MAX);
	if (c->depth > 64 || c->level > UINT8_MAX || c->weight > WEIR_SCHED_WEIGHT_MAX)
		return weir_fail(error, -EINVAL,
				 "class %u: a depth to 64, a level to 255, a weight to 1024", i);
	hub->configs[i] = (struct weir_sched_config){
		.level = (uint8_t)c->level,
		.weight = (uint16_t)c->weight,
		.policy = c->share == WEIR_SHARE_FAIR ? WEIR_SCHED_FAIR : WEIR_SCHED_ROUND_ROBIN,
		.segment_bytes = c->segment_bytes,
		.wrs_max = c->depth,
		.pass_bytes_max = c->pass_bytes_max,
	};
	return 0;
}

static int classes_fill(struct weir_hub *hub, struct weir_error *error)
{
	struct weir_sched probe;
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < hub->options.nr_classes; i++)
		rc = class_fill(hub, i, error);
	hub->options.classes = hub->classes;
	if (!rc && weir_sched_init(&probe, hub->configs, (uint8_t)hub->options.nr_classes, 0))
		rc = weir_fail(error, -EINVAL, "classes stand in the order of their levels");
	return rc;
}

static int watch(struct weir_hub *hub, int fd, void *what)
{
	struct epoll_event in = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(hub->epoll, EPOLL_CTL_ADD, fd, &in) ? -errno : 0;
}

static int poller_start(struct weir_hub *hub, struct weir_error *error)
{
	int rc;

	hub->epoll = epoll_create1(EPOLL_CLOEXEC);
	hub->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hub->epoll < 0 || hub->bell < 0 || watch(hub, hub->bell, &hub->bell) ||
	    watch(hub, hub->completions->fd, &hub->completions) ||
	    watch(hub, hub->cm->fd, hub->cm))
		return weir_fail(error, -ENOMEM, "no descriptors: %s", weir_strerror(-errno));
	rc = weir_thread_create(&hub->poller, "weir-poller", weir_hub_poller, hub, error);
	hub->has_poller = !rc;
	return rc;
}

static struct weir_hub *hub_new(const struct weir_mux_options *options)
{
	struct weir_hub *hub = calloc(1, sizeof(*hub));
	uint8_t nonce[WIRE_NONCE];

	if (!hub)
		return NULL;
	options_fill(&hub->options, options);
	weir_nonce(nonce);
	memcpy(hub->id, nonce, sizeof(hub->id));
	hub->mux.host = &weir_local_host;
	hub->epoll = hub->bell = -1;
	weir_list_init(&hub->nodes);
	weir_list_init(&hub->lanes);
	weir_list_init(&hub->offers);
	weir_list_init(&hub->parties);
	pthread_mutex_init(&hub->lock, NULL);
	weir_cond_init(&hub->changed);
	weir_owner_init(&hub->self, hub);
	return hub;
}

static void parties_free(struct weir_hub *hub)
{
	while (!weir_list_is_empty(&hub->parties)) {
		struct weir_party *party = weir_list_entry(hub->parties.next, struct weir_party,
							   link);

		weir_list_del(&party->link);
		free(party);
	}
}

static void hub_free(struct weir_hub *hub)
{
	weir_owner_fini(&hub->self);
	parties_free(hub);
	weir_hub_device_close(hub);
	if (hub->epoll >= 0)
		close(hub->epoll);
	if (hub->bell >= 0)
		close(hub->bell);
	free(hub->table);
	free(hub->generations);
	pthread_cond_destroy(&hub->changed);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

static int table_open(struct weir_hub *hub, struct weir_error *error)
{
	hub->table = calloc(hub->options.connections_max, sizeof(*hub->table));
	hub->generations = calloc(hub->options.connections_max, sizeof(*hub->generations));
	if (!hub->table || !hub->generations)
		return weir_fail(error, -ENOMEM, "no memory for a table of %u connections",
				 hub->options.connections_max);
	return 0;
}

int weir_hub_open(const struct weir_mux_options *options, struct weir_hub **out,
		  struct weir_error *error)
{
	struct weir_hub *hub = hub_new(options);
	int rc;

	if (!hub)
		return weir_fail(error, -ENOMEM, "no memory");
	rc = options_check(&hub->options, error);
	if (!rc)
		rc = classes_fill(hub, error);
	if (!rc)
		rc = table_open(hub, error);
	if (!rc)
		rc = weir_hub_device_open(hub, error);
	if (!rc)
		rc = poller_start(hub, error);
	if (rc)
		hub_free(hub);
	else
		*out = hub;
	return rc;
}

void weir_hub_idle(struct weir_hub *hub, uint64_t idle_ns)
{
	pthread_mutex_lock(&hub->lock);
	hub->options.idle_ns = idle_ns ? idle_ns : WEIR_HUB_IDLE_NS;
	weir_fd_ring(hub->bell); /* it may sleep for longer than that */
	pthread_mutex_unlock(&hub->lock);
}

/* Whether a connection that has been closed still has something to say. */
static bool is_lingering(const struct weir_hub *hub, const struct weir_owner *owner)
{
	unsigned int i;

	for (i = 0; i < hub->options.connections_max; i++)
		if (hub->table[i] && hub->table[i]->owner == owner && hub->table[i]->is_closed)
			return true;
	return false;
}

void weir_hub_linger(struct weir_hub *hub, struct weir_owner *owner)
{
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), hub->options.timeout_ns);

	pthread_mutex_lock(&hub->lock);
	while (is_lingering(hub, owner) && !weir_owner_wait(owner, &owner->changed, deadline_ns))
		;
	pthread_mutex_unlock(&hub->lock);
}

/* Nobody connects any more; who still is connected is cut off. */
void weir_hub_stop(struct weir_hub *hub)
{
	struct weir_list *at;

	pthread_mutex_lock(&hub->lock);
	hub->is_stopping = true;
	for (at = hub->nodes.next; at != &hub->nodes; at = at->next)
		weir_node_fail(weir_list_entry(at, struct weir_node, link), -ECONNRESET);
	weir_fd_ring(hub->bell);
	pthread_mutex_unlock(&hub->lock);
}

void weir_hub_close(struct weir_hub *hub)
{
	unsigned int i;

	weir_hub_linger(hub, &hub->self);
	weir_hub_stop(hub);
	pthread_join(hub->poller, NULL);
	for (i = 0; i < hub->options.connections_max; i++)
		if (hub->table[i])
			weir_circuit_shut(hub->table[i]);
	while (!weir_list_is_empty(&hub->offers))
		weir_offer_free(weir_list_entry(hub->offers.next, struct weir_offer, link));
	hub_free(hub);
}

static unsigned int queue_pairs(const struct weir_hub *hub)
{
	const struct weir_list *at;
	unsigned int count = 0;

	for (at = hub->lanes.next; at != &hub->lanes; at = at->next)
		count += weir_list_entry(at, struct weir_lane, link)->state == WEIR_LANE_UP;
	return count;
}

void weir_hub_info(struct weir_hub *hub, struct weir_mux_info *info)
{
	const struct weir_mux_counts *c = &hub->counts;

	pthread_mutex_lock(&hub->lock);
	*info = (struct weir_mux_info){
		.connections = hub->nr_conns,
		.queue_pairs = queue_pairs(hub),
		.work_requests = c->work_requests,
		.doorbells = c->doorbells,
		.bytes_sent = c->bytes_sent,
		.bytes_received = c->bytes_received,
		.bytes_written = c->bytes_written,
		.credits = c->credits,
		.sleeps = c->sleeps,
		.ahead_bytes_max = c->ahead_bytes_max,
	};
	snprintf(info->address, sizeof(info->address), "%s", hub->address);
	pthread_mutex_unlock(&hub->lock);
}
