// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * rdma_getaddrinfo() with an event, and user events. Both came with rdma-core 58, so this file
 * declares them for older headers.
 */
#include <string.h>

#include "cm.h"
#include "event.h"

enum { /* continues enum rdma_cm_event_type */
       EVENT_ADDRINFO_RESOLVED = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
       EVENT_ADDRINFO_ERROR,
       EVENT_USER,
};

#pragma GCC visibility push(default)
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);
#pragma GCC visibility pop

/* Return: 0, or -EBUSY if the last result was not yet queried. */
static int begin_lookup(struct cm_id *id)
{
	int rc;

	pthread_mutex_lock(&cm_lock);
	rc = id->looking_up ? -EBUSY : 0;
	id->looking_up = true;
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

static int run_lookup(const char *node, const char *service, const struct rdma_addrinfo *hints,
		      struct rdma_addrinfo **info)
{
	int rc;

	rc = rdma_getaddrinfo(node, service, hints, info);
	if (!rc)
		return 0;
	return rc == -1 ? -errno : -ENOENT; /* an EAI_ number is not an errno */
}

int rdma_resolve_addrinfo(struct rdma_cm_id *rid, const char *node, const char *service,
			  const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = NULL;
	struct cm_id *id;
	int rc;

	if (!rid)
		return cm_return(-EINVAL);
	id = cm_id(rid);
	rc = begin_lookup(id);
	if (rc)
		return cm_return(rc);
	rc = run_lookup(node, service, hints, &info);

	pthread_mutex_lock(&cm_lock);
	id->looking_up = !rc;
	id->found = info;
	if (!rc)
		cm_event_push(id, id, (enum rdma_cm_event_type)EVENT_ADDRINFO_RESOLVED, 0, NULL);
	pthread_mutex_unlock(&cm_lock);
	return cm_return(rc ? rc : cm_event_complete(id));
}

int rdma_query_addrinfo(struct rdma_cm_id *rid, struct rdma_addrinfo **info)
{
	struct cm_id *id;
	int rc = -ENOENT;

	if (!rid || !info)
		return cm_return(-EINVAL);
	id = cm_id(rid);
	pthread_mutex_lock(&cm_lock);
	if (id->found) {
		*info = id->found;
		id->found = NULL;
		id->looking_up = false;
		rc = 0;
	}
	pthread_mutex_unlock(&cm_lock);
	return cm_return(rc);
}

int rdma_write_cm_event(struct rdma_cm_id *rid, enum rdma_cm_event_type event, int status,
			uint64_t arg)
{
	struct cm_id *id = cm_id(rid);
	struct cm_event *e;

	if ((int)event != EVENT_USER)
		return cm_return(-EINVAL);
	pthread_mutex_lock(&cm_lock);
	e = cm_event_push(id, id, event, status, NULL);
	if (e)
		memcpy(&e->event.param, &arg, sizeof(arg)); /* param.arg */
	pthread_mutex_unlock(&cm_lock);
	return cm_return(e ? 0 : -ENOMEM);
}

const char *cm_lookup_event_str(int event)
{
	switch (event) {
	case EVENT_ADDRINFO_RESOLVED:
		return "RDMA_CM_EVENT_ADDRINFO_RESOLVED";
	case EVENT_ADDRINFO_ERROR:
		return "RDMA_CM_EVENT_ADDRINFO_ERROR";
	case EVENT_USER:
		return "RDMA_CM_EVENT_USER";
	default:
		return "UNKNOWN EVENT";
	}
}
