// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Multicast groups of an id.
 *
 * No subnet manager grants membership. A join only gives the user the group's address handle, and
 * the thread that fetches the event attaches the QP. The data path delivers between processes.
 */
#include <stdlib.h>
#include <string.h>

#include "cm.h"
#include "event.h"

enum { MULTICAST_QPN = 0xffffff };

static bool may_join(const struct cm_id *id)
{
	return id->id.verbs && cm_id_is_datagram(id) &&
	       (id->state == CM_BOUND || id->state == CM_ADDR_RESOLVED);
}

/* Context: cm_lock held. */
static int push_joined(struct cm_id *id, struct cm_group *group)
{
	struct cm_event *e;
	struct rdma_ud_param *ud;

	if (!may_join(id))
		return -EINVAL;
	cm_qp_path(id, &group->ah);
	cm_addr_gid(&group->addr, &group->ah.grh.dgid);
	e = cm_event_push(id, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0, NULL);
	if (!e)
		return -ENOMEM;
	e->group = group;
	ud = &e->event.param.ud;
	ud->private_data = group->context;
	ud->ah_attr = group->ah;
	ud->qp_num = MULTICAST_QPN;
	ud->qkey = RDMA_UDP_QKEY;
	TAILQ_INSERT_TAIL(&id->groups, group, link);
	return 0;
}

static int join_group(struct cm_id *id, const struct sockaddr *sa, uint16_t flags, void *context)
{
	struct cm_group *group = calloc(1, sizeof(*group));
	int rc;

	if (!group)
		return -ENOMEM;
	group->context = context;
	group->send_only = flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	rc = cm_addr_read(&group->addr, sa) ? -EINVAL : 0;
	cm_addr_unmap(&group->addr);
	if (!rc && !cm_addr_is_multicast(&group->addr))
		rc = -EINVAL;
	if (rc)
		goto free_group;

	pthread_mutex_lock(&cm_lock);
	rc = push_joined(id, group);
	pthread_mutex_unlock(&cm_lock);
	if (rc)
		goto free_group;
	return cm_event_complete(id);
free_group:
	free(group);
	return rc;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return cm_return(join_group(cm_id(id), addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context));
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
			   void *context)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return cm_return(-ENOTSUP);
	if (attr->comp_mask != needed || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return cm_return(-EINVAL);
	return cm_return(join_group(cm_id(id), attr->addr, attr->join_flags, context));
}

int cm_mcast_attach(struct cm_id *id, struct cm_group *group)
{
	int rc;

	if (!id->id.qp || group->send_only)
		return 0;
	rc = ibv_attach_mcast(id->id.qp, &group->ah.grh.dgid, group->ah.dlid);
	group->attached = !rc;
	return -rc;
}

/* Context: cm_lock held. Return: the group, now the caller's, or NULL. */
static struct cm_group *remove_group(struct cm_id *id, const union cm_addr *addr)
{
	struct cm_group *group;

	TAILQ_FOREACH(group, &id->groups, link)
		if (!memcmp(&group->addr, addr, sizeof(*addr)))
			break;
	if (!group)
		return NULL;
	TAILQ_REMOVE(&id->groups, group, link);
	cm_event_drop_group(id, group);
	return group;
}

int rdma_leave_multicast(struct rdma_cm_id *rid, struct sockaddr *sa)
{
	struct cm_id *id = cm_id(rid);
	struct cm_group *group;
	union cm_addr addr;

	if (cm_addr_read(&addr, sa))
		return cm_return(-EINVAL);
	cm_addr_unmap(&addr);
	pthread_mutex_lock(&cm_lock);
	group = remove_group(id, &addr);
	pthread_mutex_unlock(&cm_lock);
	if (!group)
		return cm_return(-EADDRNOTAVAIL);

	cm_event_ack_last(id);
	cm_event_wait_group_acked(group);
	if (group->attached && rid->qp)
		ibv_detach_mcast(rid->qp, &group->ah.grh.dgid, group->ah.dlid);
	free(group);
	return 0;
}

void cm_mcast_free(struct cm_id *id)
{
	struct cm_group *group;

	while ((group = TAILQ_FIRST(&id->groups))) {
		TAILQ_REMOVE(&id->groups, group, link);
		free(group);
	}
}
