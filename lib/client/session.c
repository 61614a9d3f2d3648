/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opening, querying and freeing a session. The NIC is known only once a route is resolved, so the
 * first channel to connect also creates CQs, engine and message buffers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/conn/address.h"
#include "lib/conn/event_channel.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/sized.h"
#include "lib/client/memory/memory.h"
#include "lib/client/session_options.h"
#include "lib/client/channel/pump.h"
#include "lib/client/memory/region.h"
#include "lib/client/session.h"
#include "lib/client/session_thread.h"
#include "lib/base/yield.h"

/* Adds @fd to the session's own descriptor, so that a program watches only one. */
static int epoll_add_fd(struct weir_session *session, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static int open_fds(struct weir_session *session)
{
	session->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	session->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	session->lead_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	session->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (session->epoll_fd < 0 || session->kick_fd < 0 || session->lead_fd < 0 ||
	    session->timer_fd < 0)
		return -errno;
	session->timer_ns = UINT64_MAX;
	return epoll_add_fd(session, session->kick_fd) || epoll_add_fd(session, session->timer_fd) ?
		       -errno :
		       0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void init_lists(struct weir_session *session)
{
	struct weir_messages *m = &session->messages;

	weir_list_init(&session->done);
	session->to_notify_tail = &session->to_notify;
	weir_list_init(&session->active);
	weir_list_init(&session->lanes.link);
	weir_list_init(&session->scq);
	weir_list_init(&session->scq_due);
	weir_list_init(&session->live_requests);
	weir_list_init(&session->regions);
	weir_list_init(&session->memories);
	weir_list_init(&session->pools);
	weir_list_init(&session->calls.done);
	weir_list_init(&m->free_outgoing);
	weir_list_init(&m->unsent);
	weir_list_init(&m->backlog);
	weir_list_init(&m->waiting);
	weir_list_init(&m->inbox);
}

static struct weir_session *session_alloc(const struct weir_session_options *options)
{
	struct weir_session *session = calloc(1, sizeof(*session));
	char *device = options->device ? strdup(options->device) : NULL;
	uint16_t i;

	if (!session || (options->device && !device)) {
		free(session);
		free(device);
		return NULL;
	}
	session->options = *options;
	session->options.device = session->device = device;
	if (options->donor_identity) {
		memcpy(session->pin, options->donor_identity, sizeof(session->pin));
		session->options.donor_identity = session->pin;
	}
	session->tuning = *options->tuning;
	session->options.tuning = &session->tuning;
	session->epoll_fd = session->kick_fd = session->lead_fd = session->timer_fd = -1;
	session->stats_shm_fd = -1;
	weir_keepalive_init(&session->keepalive, options->keepalive_ns, options->timeout_ns);
	for (i = 0; i < WEIR_CHANNEL_MAX; i++) {
		session->links[i].session = session;
		session->links[i].number = i;
	}
	init_lists(session);
	weir_idle_time_init(&session->idle_time, WEIR_AWAKE_NS, WEIR_LATE_NS);
	weir_idle_time_init(&session->op_idle_time, WEIR_AWAKE_NS, WEIR_LATE_NS);
	weir_idle_time_init(&session->call_idle_time, WEIR_AWAKE_NS, WEIR_LATE_NS);
	weir_bounce_pool_init(&session->buffers);
	pthread_mutex_init(&session->hold_lock, NULL);
	return session;
}

static void part_class(struct weir_session *session)
{
	if (!session->has_class)
		return;
	weir_session_lock(session);
	weir_window_classes_part(&session->nic->window);
	weir_session_unlock(session);
}

/* In the order that the verbs require. */
void weir_session_free(struct weir_session *session)
{
	uint16_t i;

	for (i = 0; i < WEIR_CHANNEL_MAX; i++)
		weir_session_disconnect(session, i);
	weir_regions_fini(session);
	weir_pool_fini_all(session);
	weir_memory_fini_all(session);
	weir_messages_fini(session);
	weir_calls_fini(&session->calls);
	weir_requests_fini(session);
	weir_bounce_pool_fini(&session->buffers);
	if (session->recv_cq)
		ibv_destroy_cq(session->recv_cq);
	weir_cqs_destroy(session);
	if (session->comp)
		ibv_destroy_comp_channel(session->comp);
	part_class(session);
	if (session->nic)
		weir_nic_put(session->nic);
	for (i = 0; i < WEIR_CHANNEL_MAX; i++) {
		if (session->links[i].id)
			rdma_destroy_id(session->links[i].id);
	}
	if (session->cm)
		rdma_destroy_event_channel(session->cm);
	close_fd(session->epoll_fd);
	close_fd(session->kick_fd);
	close_fd(session->lead_fd);
	close_fd(session->timer_fd);
	weir_stats_shm_close(session->stats_shm, session->stats_shm_fd);
	pthread_mutex_destroy(&session->hold_lock);
	weir_unload_tx_fini(session);
	weir_lanes_fini(session);
	free(session->wrs);
	free(session->device);
	free(session);
}

void weir_session_join_classes(struct weir_session *session)
{
	const struct weir_session_tuning *t = &session->tuning;

	if (session->has_class)
		return;
	weir_engine_join_classes(&session->engine, &session->nic->classes,
				 t->class_nr ? (enum weir_window_class)(t->class_nr - 1) :
					       WEIR_WINDOW_NORMAL,
				 (uint16_t)(t->weight ? t->weight : 1));
	__atomic_store_n(&session->has_class, true, __ATOMIC_RELAXED);
}

static void join_class(struct weir_session *session)
{
	if (!session->tuning.class_nr && !session->tuning.weight)
		return;
	weir_session_lock(session);
	weir_session_join_classes(session);
	weir_session_unlock(session);
}

/* The engine needs the NIC's window, and the NIC is known only after resolving the route. */
static int engine_init(struct weir_session *session)
{
	unsigned int nr_wrs = session->options.channels * session->tuning.depth + WIRE_UNLOAD_SLOTS;
	enum weir_batching batching = session->tuning.batching;
	bool merge = batching == WEIR_BATCHING_MERGE || batching == WEIR_BATCHING_HYBRID;
	bool chain = batching == WEIR_BATCHING_DOORBELL || batching == WEIR_BATCHING_HYBRID;
	int rc;
	struct weir_engine_config config = {
		.fragment_bytes = session->tuning.fragment_bytes,
		.chain_max = chain ? (uint16_t)session->tuning.chain_max : 1,
		.sge_max = session->nic->sge_max,
		.merge = merge,
		.stall_timeout_ns = session->options.timeout_ns / 2,
		.seed = weir_now_ns(),
	};

	if (session->nic->window.bytes_min < config.fragment_bytes)
		config.fragment_bytes = (uint32_t)session->nic->window.bytes_min;
	session->wrs = calloc(nr_wrs, sizeof(*session->wrs));
	if (!session->wrs)
		return -ENOMEM;
	rc = weir_engine_init(&session->engine, &config, &session->nic->window, session->wrs,
			      nr_wrs);
	if (rc)
		return rc;
	join_class(session);
	weir_latency_init(&session->sampler, weir_now_ns());
	session->reads_clock = weir_session_must_read_clock(session);
	weir_engine_trace(&session->engine, &session->trace);
	return weir_unload_tx_init(session);
}

static int open_stats_shm(struct weir_session *session)
{
	int rc = weir_stats_shm_open(&session->stats_shm, &session->stats_shm_fd);

	if (rc)
		return rc;
	session->counters = &session->stats_shm->counters;
	return weir_trace_init(&session->trace, session->stats_shm->trace, WEIR_STATS_SHM_SLOTS);
}

static int session_init(struct weir_session *session, struct weir_error *error)
{
	int rc = weir_calls_init(&session->calls);

	if (rc)
		return weir_error_set(error, rc, "out of memory");
	rc = open_fds(session);
	if (rc)
		return weir_error_set(error, rc, "no descriptors: %s", weir_strerror(rc));
	rc = open_stats_shm(session);
	if (rc)
		return weir_error_set(error, rc, "no shared memory for 'weir stat': %s",
				      weir_strerror(rc));
	rc = weir_event_channel_open(&session->cm, error);
	if (rc)
		return rc;
	rc = epoll_add_fd(session, session->cm->fd);
	return rc ? weir_error_set(error, rc, "no descriptors: %s", weir_strerror(rc)) : 0;
}

/* Memory too long for the buffers of a request is registered, whatever the options say. */
static size_t dyn_threshold_bytes(const struct weir_session_tuning *t)
{
	if (t->mr == WEIR_MR_DYN)
		return 0;
	if (t->mr == WEIR_MR_PRE || t->mr_dyn_bytes > WEIR_BOUNCE_PRE_BYTES_MAX)
		return WEIR_BOUNCE_PRE_BYTES_MAX + 1;
	return t->mr_dyn_bytes;
}

int weir_session_attach_device(struct weir_session *session, struct ibv_context *context,
			       struct weir_error *error)
{
	int rc;

	if (session->nic && session->nic->context == context)
		return 0;
	if (session->nic)
		return weir_error_set(error, -ENODEV, "the route to %s changed devices",
				      session->peer);
	rc = weir_nic_get(context, &session->tuning, &session->nic, error);
	if (rc)
		return rc;
	if (!session->tuning.mr_dyn_bytes)
		session->tuning.mr_dyn_bytes = session->nic->dyn_bytes;
	session->comp = ibv_create_comp_channel(context);
	if (!session->comp)
		return weir_error_set(error, -errno, "no completion channel: %s",
				      weir_strerror(-errno));
	session->recv_cq = ibv_create_cq(
		context, WEIR_MESSAGE_RECVS + WIRE_HANDSHAKE_RECVS, NULL, session->comp,
		weir_nic_next_vector(session->nic, session->tuning.comp_vectors));
	if (!session->recv_cq)
		return weir_error_set(error, -errno, "no completion queue: %s",
				      weir_strerror(-errno));
	rc = weir_cqs_create(session, error);
	if (rc)
		return rc;
	rc = set_nonblocking(session->comp->fd);
	if (!rc)
		rc = epoll_add_fd(session, session->comp->fd);
	if (!rc)
		rc = engine_init(session);
	if (rc)
		return weir_error_set(error, rc, "cannot set up the session: %s",
				      weir_strerror(rc));
	return weir_messages_init(session, error);
}

static int connect_channels(struct weir_session *session, const struct sockaddr *address,
			    struct weir_error *error)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), session->options.timeout_ns);
	uint16_t i;
	int rc;

	memcpy(&session->address, address,
	       address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in));
	weir_address_format(address, session->peer);
	for (i = 0; i < session->options.channels + (session->options.unload > WEIR_UNLOAD_OFF);
	     i++) {
		rc = weir_session_connect(session, i, address, deadline_ns, error);
		if (rc)
			return rc;
	}
	return 0;
}

static int session_start(struct weir_session *session, struct weir_error *error)
{
	weir_session_lock(session);
	weir_keepalive_start(&session->keepalive, session->counters->work_requests, weir_now_ns());
	weir_session_unlock(session);
	return weir_session_thread_start(session, error);
}

static int session_open(const struct weir_session_options *options, const struct sockaddr *address,
			struct weir_session **out, struct weir_error *error)
{
	struct weir_session *session = session_alloc(options);
	int rc;

	if (!session)
		return weir_error_set(error, -ENOMEM, "out of memory");
	rc = session_init(session, error);
	if (!rc)
		rc = connect_channels(session, address, error);
	if (!rc)
		rc = session_start(session, error);
	if (rc) {
		weir_session_free(session);
		return rc;
	}
	session->stats_shm->mr_dyn_bytes = dyn_threshold_bytes(&session->tuning);
	weir_stats_shm_publish(session->stats_shm,
			       ibv_get_device_name(session->nic->context->device), session->peer,
			       weir_now_ns());
	*out = session;
	return 0;
}

int weir_session_open(const char *donor, const struct weir_session_options *options,
		      struct weir_session **session, struct weir_error *error)
{
	struct weir_session_options filled;
	struct weir_session_tuning tuning;
	struct addrinfo *list, *at;
	int rc;

	rc = weir_session_options_fill(&filled, &tuning, options, error);
	if (rc)
		return rc;
	rc = weir_address_resolve(donor, NULL, &list, error);
	if (rc)
		return rc;
	for (at = list; at; at = at->ai_next) {
		rc = session_open(&filled, at->ai_addr, session, error);
		if (!weir_address_should_try_next(rc))
			break;
	}
	freeaddrinfo(list);
	return rc;
}

int weir_session_fd(const struct weir_session *session)
{
	return session->epoll_fd;
}

static int down_status_of(const struct weir_session *session)
{
	return session->down_status ? session->down_status : -ENOTCONN;
}

void weir_session_call_on_down(struct weir_session *session)
{
	int status;
	bool due;

	if (!weir_session_is_down(session))
		return;
	weir_session_lock(session);
	due = session->down_due;
	session->down_due = false;
	status = down_status_of(session);
	weir_session_unlock(session);
	if (due)
		session->options.on_down(session->options.arg, status);
}

int weir_session_process(struct weir_session *session)
{
	int handled = weir_pump_step(session, 0, true);

	if (session->options.no_thread)
		weir_session_call_on_down(session);
	return handled;
}

static void copy_counters(struct weir_session_info *info, const struct weir_counters *counters)
{
#define COPY_COUNTER(name, help) info->name = counters->name;
	WEIR_COUNTERS(COPY_COUNTER)
#undef COPY_COUNTER
}

static const char *cipher_of(const struct weir_session *session)
{
	const char *cipher = __atomic_load_n(&session->cipher, __ATOMIC_RELAXED);

	return cipher ? cipher : "";
}

int weir_session_info(const struct weir_session *session, struct weir_session_info *given,
		      size_t size)
{
	struct weir_session_info known = { 0 }, *info = &known;
	struct weir_session *s = (struct weir_session *)session; /* for its lock */
	unsigned int i;

	snprintf(info->device, sizeof(info->device), "%s",
		 ibv_get_device_name(s->nic->context->device));
	snprintf(info->peer, sizeof(info->peer), "%s", s->peer);
	snprintf(info->encryption, sizeof(info->encryption), "%s", cipher_of(s));
	info->incarnation = s->incarnation;
	info->quota_bytes = s->quota_bytes;
	info->preset = s->options.preset;
	info->batching = s->tuning.batching;
	info->mr = s->tuning.mr;
	info->polling = s->options.polling;
	weir_session_lock(s);
	for (i = 0; i < s->nr_links && i < s->options.channels; i++)
		info->channels += s->links[i].core.state == WEIR_LINK_UP;
	info->mr_dyn_bytes = dyn_threshold_bytes(&s->tuning);
	copy_counters(info, s->counters);
	info->window_waits = s->engine.waits;
	info->down_status = weir_session_is_down(s) ? down_status_of(s) : 0;
	weir_session_unlock(s);
	return weir_sized_out(given, size, info, sizeof(*info));
}

int weir_session_verbs(struct weir_session *session, unsigned int channel, struct ibv_pd **pd,
		       struct ibv_cq **cq, struct ibv_qp **qp)
{
	int rc = -EINVAL;

	weir_session_lock(session);
	if (channel < session->nr_links && channel < session->options.channels &&
	    session->links[channel].core.state == WEIR_LINK_UP) {
		*pd = session->nic->pd;
		*cq = session->links[channel].cq->ibv;
		*qp = session->links[channel].id->qp;
		rc = 0;
	}
	weir_session_unlock(session);
	return rc;
}
