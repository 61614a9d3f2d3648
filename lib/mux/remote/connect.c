/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Making the lanes to another mux, from an application's thread. It owns the new lane until it
 * is proven; one thread dials a node at a time, and the others wait for what comes of it. Once the
 * handshake has begun the other end may use the lane before this one knows: if nobody waits for it
 * any more, since the tenant is gone or has no time left, it is left to the poller. Broken off, it
 * would break the node over there.
 *
 * Who is at an address is known only then. If it is a mux that has a node already, the lane goes,
 * and the name is that node's from then on: see meet.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/mux/local/local.h"

#define RETRY_COUNT 7 /* of the transport, the most there is */
#define RNR_RETRY_COUNT 7 /* for ever: who takes in never waits for an application */
#define CROSSED_MS 20 /* after which a lane is tried again that the other end was dialling, too */
#define LISTEN_REJECT 8 /* IB spec, 12.6.7.2: invalid service id, that is nobody listens */

/* What becomes of a lane, but an error. */
enum { DIALLED, SPARE, CROSSED };

/*
 * @known: the session that the other end says there is; @ended: of which this end knows nothing
 * @is_left: the lane is the poller's, and with it that the node is being dialled
 */
struct dial {
	struct weir_hub *hub;
	struct weir_owner *owner;
	const char *peer;
	const struct sockaddr *address;
	uint64_t deadline_ns;
	struct weir_error *error;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	uint64_t known, ended;
	bool is_left;
};

static int explain(const struct dial *d, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct wire_refusal refusal;

	if (event->event != RDMA_CM_EVENT_REJECTED)
		return weir_fail(d->error, -EHOSTUNREACH, "%s cannot be reached: %s", d->peer,
				 rdma_event_str(event->event));
	if (conn->private_data &&
	    !wire_refusal_decode(conn->private_data, conn->private_data_len, &refusal))
		return weir_refusal_explain(&refusal, d->error);
	if (event->status == LISTEN_REJECT || event->status == -ECONNREFUSED)
		return weir_fail(d->error, -ECONNREFUSED, "nobody listens at %s", d->peer);
	return weir_fail(d->error, -EAGAIN, "%s refused the connection for now, reason %d", d->peer,
			 event->status);
}

static int late(const struct dial *d, int status)
{
	return weir_fail(d->error, status, "%s did not answer in time", d->peer);
}

static int nap_ms(const struct dial *d)
{
	int ms = weir_poll_ms(d->deadline_ns);

	if (d->owner->socket >= 0 && (ms < 0 || ms > WEIR_OWNER_LOOK_MS))
		ms = WEIR_OWNER_LOOK_MS;
	return ms;
}

static int wait_event(const struct dial *d, enum rdma_cm_event_type wanted)
{
	struct pollfd fd = { .fd = d->cm->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int rc;

	while (rdma_get_cm_event(d->cm, &event)) {
		if (errno != EAGAIN)
			return weir_fail(d->error, -EIO, "no connection manager");
		if (weir_now_ns() >= d->deadline_ns)
			return late(d, -ETIMEDOUT);
		if (weir_owner_is_gone(d->owner))
			return late(d, -ECONNRESET);
		poll(&fd, 1, nap_ms(d));
	}
	rc = event->event == wanted ? 0 : explain(d, event);
	rdma_ack_cm_event(event);
	return rc;
}

static int left_ms(const struct dial *d)
{
	int ms = weir_poll_ms(d->deadline_ns);

	return ms > 0 ? ms : 1;
}

/* The route is resolved for it: later is too late. */
static int set_tos(const struct dial *d, uint8_t tos)
{
	if (!tos || !rdma_set_option(d->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		return 0;
	return weir_fail(d->error, -EINVAL, "the device takes no type of service %u", tos);
}

static int route(struct dial *d, uint8_t class)
{
	int rc;

	d->cm = rdma_create_event_channel();
	if (!d->cm || fcntl(d->cm->fd, F_SETFL, fcntl(d->cm->fd, F_GETFL) | O_NONBLOCK) ||
	    rdma_create_id(d->cm, &d->id, NULL, RDMA_PS_TCP))
		return weir_fail(d->error, -ENOMEM, "the connection manager gives no id: %s",
				 weir_strerror(-errno));
	if (rdma_resolve_addr(d->id, NULL, (struct sockaddr *)d->address, left_ms(d)))
		return weir_fail(d->error, -EHOSTUNREACH, "no verbs device reaches %s: %s", d->peer,
				 weir_strerror(-errno));
	rc = wait_event(d, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rc)
		return rc;
	if (d->id->verbs != d->hub->device)
		return weir_fail(d->error, -ENODEV,
				 "the route to %s goes by %s, not by %s, which this "
				 "mux is on: name the device when it is opened",
				 d->peer, ibv_get_device_name(d->id->verbs->device),
				 ibv_get_device_name(d->hub->device->device));
	rc = set_tos(d, d->hub->classes[class].tos);
	if (rc)
		return rc;
	if (rdma_resolve_route(d->id, left_ms(d)))
		return weir_fail(d->error, -EHOSTUNREACH, "no route to %s: %s", d->peer,
				 weir_strerror(-errno));
	return wait_event(d, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int connect_lane(const struct dial *d, const struct weir_lane *lane)
{
	struct wire_connect connect = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.channel = lane->class,
		.session_id = lane->class ? lane->node->session_id : 0,
		.key_id = weir_key_id(d->hub->options.key),
	};
	struct rdma_conn_param param = {
		.private_data = &connect,
		.private_data_len = sizeof(connect),
		.responder_resources = d->hub->reads_max,
		.initiator_depth = d->hub->reads_max,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RNR_RETRY_COUNT,
	};

	if (rdma_connect(d->id, &param))
		return weir_fail(d->error, -EHOSTUNREACH, "cannot connect to %s: %s", d->peer,
				 weir_strerror(-errno));
	return wait_event(d, RDMA_CM_EVENT_ESTABLISHED);
}

/* With hub->lock held. Return: DIALLED, SPARE, CROSSED, or an error. */
static int prove(struct dial *d, struct weir_lane *lane)
{
	int rc = weir_lane_hello(lane, true);

	if (rc)
		return weir_fail(d->error, rc, "cannot prove the key to %s: %s", d->peer,
				 weir_strerror(rc));
	while (!rc && lane->state == WEIR_LANE_PROVING)
		rc = weir_owner_wait(d->owner, &d->hub->changed, d->deadline_ns);
	if (rc) {
		weir_lane_leave(lane);
		d->is_left = true;
		return late(d, rc);
	}
	if (lane->state == WEIR_LANE_UP)
		return DIALLED;
	if (lane->state == WEIR_LANE_SPARE) {
		d->known = lane->handshake.welcome.session_id;
		rdma_disconnect(lane->id);
		return SPARE;
	}
	if (lane->class && lane->status == -EAGAIN)
		return CROSSED;
	return weir_fail(d->error, lane->status, "%s: %s", d->peer,
			 lane->handshake.error.text[0] ? lane->handshake.error.text :
							 weir_strerror(lane->status));
}

/* The node has one lane more, or all is as before. Takes and leaves hub->lock. As prove(). */
static int dial_lane(struct dial *d, struct weir_node *node, uint8_t class)
{
	struct epoll_event in = { .events = EPOLLIN };
	struct weir_hub *hub = d->hub;
	struct weir_lane *lane = NULL;
	int rc = route(d, class);

	pthread_mutex_lock(&hub->lock);
	if (!rc) {
		rc = weir_lane_new(node, class, d->id, &lane);
		if (rc)
			weir_fail(d->error, rc, "no queue pair: %s", weir_strerror(rc));
	}
	if (!rc) {
		lane->cm = d->cm;
		lane->ended = d->ended;
		pthread_mutex_unlock(&hub->lock);
		rc = connect_lane(d, lane);
		pthread_mutex_lock(&hub->lock);
	}
	if (!rc) {
		/* From here on the poller hears what the connection manager says. */
		in.data.ptr = d->cm;
		epoll_ctl(hub->epoll, EPOLL_CTL_ADD, d->cm->fd, &in);
		rc = prove(d, lane);
	}
	if (rc && lane && !d->is_left && node->lanes[class] != lane) {
		weir_lane_destroy(lane);
	} else if (!lane) {
		if (d->id)
			rdma_destroy_id(d->id);
		if (d->cm)
			rdma_destroy_event_channel(d->cm);
	}
	pthread_mutex_unlock(&hub->lock);
	return rc;
}

/*
 * The other end dials that lane, too, and its stays: it comes, or it has failed and ours is to be
 * tried again.
 */
static int wait_crossed(const struct dial *d, const struct weir_node *node)
{
	const uint64_t until_ns = weir_after_ns(weir_now_ns(), CROSSED_MS * WEIR_NS_PER_MS);
	int rc;

	if (!weir_node_is_there(node))
		return weir_fail(d->error, -ECONNRESET, "the connection to %s broke", d->peer);
	if (until_ns >= d->deadline_ns)
		return late(d, -ETIMEDOUT);
	rc = weir_owner_wait(d->owner, &d->hub->changed, until_ns);
	return rc ? late(d, rc) : DIALLED;
}

/* The caller has the node for himself. With hub->lock held, which it leaves in between. */
static int dial_lanes(struct dial *d, struct weir_node *node, uint8_t class)
{
	struct weir_hub *hub = d->hub;
	int rc = DIALLED;

	node->is_dialing = true;
	while (rc == DIALLED && !node->lanes[class]) {
		node->dialing = node->lanes[0] ? class : 0;
		pthread_mutex_unlock(&hub->lock);
		d->cm = NULL;
		d->id = NULL;
		rc = dial_lane(d, node, node->dialing);
		pthread_mutex_lock(&hub->lock);
		if (rc && node->lanes[class])
			rc = DIALLED; /* the other end has dialled it */
		else if (rc == CROSSED || (rc == -EAGAIN && node->lanes[0]) ||
			 (rc && !d->is_left && weir_lane_is_coming(node, class)))
			rc = wait_crossed(d, node);
		while (rc == DIALLED && weir_lane_is_coming(node, class))
			rc = wait_crossed(d, node);
	}
	if (!d->is_left) {
		node->is_dialing = false;
		if (rc && !node->lanes[0]) {
			weir_node_uncharge(node);
			weir_node_fail(node, rc == SPARE ? -ECONNRESET : rc);
		}
	}
	weir_fd_ring(hub->bell); /* it may have failed meanwhile, and waited for us */
	pthread_cond_broadcast(&hub->changed);
	return rc;
}

/* Whether something is under way after which one knows more. */
static bool is_unsettled(const struct weir_node *node, uint8_t class)
{
	return node->leave == WEIR_LEAVE_ASKED ||
	       (!node->lanes[class] && (node->is_dialing || weir_lane_is_coming(node, class)));
}

/* A node costs threads and queue pairs: a party begins so many. With hub->lock held. */
static int node_begin(const struct dial *d, const char *name, struct weir_node **out)
{
	struct weir_party *party = d->owner->party;
	struct weir_node *node;
	int rc;

	if (party->nr_nodes >= party->nr_nodes_max)
		return weir_fail(d->error, -EDQUOT,
				 "not to %s, too: connects of this party hold %u "
				 "other muxes, and it may have %u",
				 d->peer, party->nr_nodes, party->nr_nodes_max);
	rc = weir_node_new(d->hub, name, &node);
	if (rc)
		return weir_fail(d->error, rc, "no queues for %s: %s", d->peer, weir_strerror(rc));
	node->is_ours = true;
	weir_node_name(node, name);
	node->party = party;
	party->nr_nodes++;
	*out = node;
	return 0;
}

/*
 * The other end knows us, by a node whose lane we have, or are about to be welcomed on; or have
 * lost. Then it is told so when it is dialled again. With hub->lock held, which it leaves in
 * between.
 */
static int join(struct dial *d, const char *name)
{
	struct weir_hub *hub = d->hub;
	struct weir_node *node;
	int rc = 0;

	while (!rc && (node = weir_node_of_session(hub, d->known, true)) == NULL &&
	       weir_hub_expects_welcome(hub))
		rc = weir_owner_wait(d->owner, &hub->changed, d->deadline_ns);
	if (rc)
		return late(d, rc);
	d->ended = node ? 0 : d->known;
	if (node)
		weir_node_name(node, name);
	return 0;
}

/* Finds or makes it, and its lane. With hub->lock held, which it leaves in between. As prove(). */
static int node_try(struct dial *d, const char *name, uint8_t class, struct weir_node **out)
{
	struct weir_hub *hub = d->hub;
	struct weir_node *node = NULL;
	int rc = 0;

	while (!rc && (node = weir_node_named(hub, name)) != NULL && is_unsettled(node, class))
		rc = weir_owner_wait(d->owner, &hub->changed, d->deadline_ns);
	if (rc)
		return late(d, rc);
	if (!node)
		rc = node_begin(d, name, &node);
	if (rc)
		return rc;
	node->refs++;
	rc = node->lanes[class] ? DIALLED : dial_lanes(d, node, class);
	if (rc)
		weir_node_put(node);
	else
		*out = node;
	return rc;
}

/* With hub->lock held, which it leaves in between. On success @node is referenced. */
static int node_reach(struct dial *d, const char *name, uint8_t class, struct weir_node **out)
{
	int rc;

	while ((rc = node_try(d, name, class, out)) == SPARE) {
		rc = join(d, name);
		if (rc)
			break;
	}
	return rc;
}

int weir_hub_dial(struct weir_owner *owner, const char *peer, uint8_t class, uint64_t deadline_ns,
		  struct weir_node **node, struct weir_error *error)
{
	struct weir_hub *hub = owner->hub;
	struct dial d = { .hub = hub, .owner = owner, .peer = peer, .error = error,
			  .deadline_ns = deadline_ns };
	char name[WEIR_ADDRESS_MAX];
	struct addrinfo *list;
	/* A tenant has looked up the name himself: that may take as long as a name server likes. */
	int rc = owner->socket >= 0 ? weir_address_read(peer, &list, error) :
				      weir_address_resolve(peer, NULL, &list, error);

	if (rc)
		return rc;
	weir_address_print(list->ai_addr, name);
	d.address = list->ai_addr;
	pthread_mutex_lock(&hub->lock);
	rc = node_reach(&d, name, class, node);
	pthread_mutex_unlock(&hub->lock);
	freeaddrinfo(list);
	return rc;
}
