/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/conn/dialer.h"
#include "lib/conn/event_channel.h"
#include "lib/conn/handshake.h"
#include "lib/conn/qp.h"

#define RETRY_COUNT 7 /* the transport's maximum */
#define LISTEN_REJECT 8 /* IB spec, 12.6.7.2: invalid service id: no listener */

int weir_dialer_check(struct weir_dialer *d)
{
	uint64_t now_ns = weir_now_ns();
	int rc;

	if (d->check && now_ns - d->checked_ns >= d->check_ms * WEIR_NS_PER_MS) {
		d->checked_ns = now_ns;
		rc = d->check(d->arg, d->error);
		if (rc)
			return rc;
	}
	return now_ns < d->deadline_ns ? 0 :
					 weir_error_set(d->error, -ETIMEDOUT,
							"%s did not answer in time", d->peer);
}

/* The connection manager reports either a negative errno, or, on a reject, a reason. */
static int explain_reject(struct weir_dialer *d, const struct weir_cm_event *event)
{
	struct wire_handshake_reject reject;

	if (!wire_handshake_reject_decode(event->param.private_data, event->param.private_data_len,
					  &reject)) {
		memcpy(d->again.cookie, reject.cookie, sizeof(d->again.cookie));
		d->again.offered = reject.refusal.head.version;
		return weir_handshake_refusal_explain(&reject.refusal,
						      weir_dialer_version(&d->again), d->error);
	}
	if (event->status == LISTEN_REJECT || event->status == -ECONNREFUSED)
		return weir_error_set(d->error, -ECONNREFUSED, "nobody listens at %s", d->peer);
	/* No resources, a full backlog, a stale connection: may pass. */
	return weir_error_set(d->error, -EAGAIN,
			      "%s refused the connection for now, reason %d: try again", d->peer,
			      event->status);
}

static int explain_no_device(const struct weir_dialer *d, int status)
{
	if (status == -ENODEV)
		return weir_error_set(d->error, status,
				      "no verbs device reaches %s: 'weir doctor' lists the devices",
				      d->peer);
	return weir_error_set(d->error, -EHOSTUNREACH, "no verbs device reaches %s: %s", d->peer,
			      weir_strerror(status));
}

static int explain_no_route(const struct weir_dialer *d, int status)
{
	return weir_error_set(d->error, -EHOSTUNREACH, "no route to %s: %s", d->peer,
			      weir_strerror(status));
}

/* The listening end may also reject a connection that it has accepted, until it gets the RTU. */
static int explain_event(struct weir_dialer *d, const struct weir_cm_event *event,
			 enum rdma_cm_event_type wanted)
{
	switch (event->type) {
	case RDMA_CM_EVENT_REJECTED:
		if (wanted == RDMA_CM_EVENT_CONNECT_RESPONSE)
			return explain_reject(d, event);
		/* fall through */
	case RDMA_CM_EVENT_DISCONNECTED:
		return weir_error_set(d->error, -EPROTO,
				      "%s ended the connection during the proof of the key",
				      d->peer);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return explain_no_device(d, event->status);
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return explain_no_route(d, event->status);
	case RDMA_CM_EVENT_UNREACHABLE:
		return weir_error_set(d->error, -EHOSTUNREACH, "%s cannot be reached: %s", d->peer,
				      weir_strerror(event->status));
	default:
		return weir_error_set(d->error, -EHOSTUNREACH, "connecting to %s ended in %s",
				      d->peer, rdma_event_str(event->type));
	}
}

int weir_dialer_step(struct weir_dialer *d, enum rdma_cm_event_type wanted)
{
	struct weir_cm_event event;
	int rc = weir_event_channel_get(d->cm, &event);

	if (rc < 0)
		return weir_error_set(d->error, rc, "the connection manager failed: %s",
				      weir_strerror(rc));
	return !rc || event.type == wanted ? rc : explain_event(d, &event, wanted);
}

static int left_ms(const struct weir_dialer *d)
{
	int ms = weir_poll_ms(d->deadline_ns);

	if (ms < 0)
		return INT_MAX;
	return ms > 0 ? ms : 1;
}

static int wait_event(struct weir_dialer *d, enum rdma_cm_event_type wanted)
{
	struct pollfd fd = { .fd = d->cm->fd, .events = POLLIN };
	int rc, ms;

	while (!(rc = weir_dialer_step(d, wanted))) {
		rc = weir_dialer_check(d);
		if (rc)
			return rc;
		ms = left_ms(d);
		poll(&fd, 1, d->check && ms > (int)d->check_ms ? (int)d->check_ms : ms);
	}
	return rc < 0 ? rc : 0;
}

static int resolve_address(struct weir_dialer *d, const struct sockaddr *address)
{
	const char *device;
	int rc;

	if (rdma_resolve_addr(d->id, NULL, (struct sockaddr *)address, left_ms(d)))
		return explain_no_device(d, -errno);
	rc = wait_event(d, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rc)
		return rc;
	if (!d->id->verbs)
		return explain_no_device(d, -ENODEV);
	device = ibv_get_device_name(d->id->verbs->device);
	if (!d->device || !strcmp(d->device, device))
		return 0;
	return weir_error_set(d->error, -ENODEV,
			      "the route to %s goes by device %s, not by %s: open with that device",
			      d->peer, device, d->device);
}

/* Must precede the resolution of the route; later calls have no effect. */
static int set_tos(const struct weir_dialer *d)
{
	uint8_t tos = d->tos;

	if (!tos || !rdma_set_option(d->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		return 0;
	return weir_error_set(d->error, -EINVAL, "the device takes no type of service %u", tos);
}

int weir_dialer_resolve(struct weir_dialer *d, const struct sockaddr *address)
{
	int rc = weir_event_channel_open(&d->cm, d->error);

	if (rc)
		return rc;
	if (rdma_create_id(d->cm, &d->id, NULL, RDMA_PS_TCP))
		return weir_error_set(d->error, -ENOMEM,
				      "the connection manager cannot create an id: %s",
				      weir_strerror(-errno));
	rc = resolve_address(d, address);
	if (!rc)
		rc = set_tos(d);
	if (rc)
		return rc;
	if (rdma_resolve_route(d->id, left_ms(d)))
		return explain_no_route(d, -errno);
	return wait_event(d, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int weir_dialer_connect(struct weir_dialer *d, const void *data, size_t length, uint8_t reads,
			uint8_t rnr_retry)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)length,
		.responder_resources = reads,
		.initiator_depth = reads,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = rnr_retry,
	};
	int rc = weir_qp_connect(d->id, d->qp, &param);

	if (rc)
		return weir_error_set(d->error, -EHOSTUNREACH, "cannot connect to %s: %s", d->peer,
				      weir_strerror(rc));
	rc = wait_event(d, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (rc)
		return rc;
	rc = weir_qp_establish(d->id, d->qp);
	return rc ? weir_error_set(d->error, -EHOSTUNREACH, "cannot connect to %s: %s", d->peer,
				   weir_strerror(rc)) :
		    0;
}

int weir_dialer_hand_over(struct weir_dialer *d, struct rdma_event_channel *cm)
{
	if (rdma_migrate_id(d->id, cm))
		return weir_error_set(d->error, -errno, "the connection manager failed: %s",
				      weir_strerror(-errno));
	rdma_destroy_event_channel(d->cm);
	d->cm = NULL;
	return 0;
}

uint16_t weir_dialer_version(const struct weir_dialer_again *again)
{
	return again->version ? again->version : weir_handshake_versions.max;
}

bool weir_dialer_tries_again(struct weir_dialer_again *again, int rc)
{
	uint16_t version;

	if (rc == -EAGAIN && wire_handshake_has_cookie(again->cookie) && !again->had_cookie) {
		again->had_cookie = true;
		return true;
	}
	if (rc != -EPROTONOSUPPORT)
		return false;
	version = wire_handshake_next_version(&weir_handshake_versions,
					      weir_dialer_version(again), again->offered);
	if (version)
		again->version = version;
	return version;
}

void weir_dialer_close(struct weir_dialer *d)
{
	if (d->qp) {
		rdma_disconnect(d->id);
		ibv_destroy_qp(d->qp);
		d->id->qp = NULL;
	}
	if (d->id)
		rdma_destroy_id(d->id);
	if (d->cm)
		rdma_destroy_event_channel(d->cm);
	d->qp = NULL;
	d->id = NULL;
	d->cm = NULL;
}
