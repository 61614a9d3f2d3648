// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Name lookup: rdma_getaddrinfo() by means of getaddrinfo().
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

enum { FLAG_SA = 0x10 }; /* RAI_SA: ask the subnet administrator; Ethernet has none */

static void to_ai(struct addrinfo *ai, const struct rdma_addrinfo *rai)
{
	memset(ai, 0, sizeof(*ai));
	if (rai->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (rai->ai_flags & RAI_NUMERICHOST)
		ai->ai_flags |= AI_NUMERICHOST;
	ai->ai_family = rai->ai_family;
	if (rai->ai_qp_type == IBV_QPT_UD || rai->ai_port_space == RDMA_PS_UDP)
		ai->ai_socktype = SOCK_DGRAM;
	else
		ai->ai_socktype = SOCK_STREAM;
}

static int copy_addr(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from,
		     socklen_t len)
{
	*to = malloc(len);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static void set_type(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints,
		     const struct addrinfo *ai)
{
	bool datagram = ai && ai->ai_socktype == SOCK_DGRAM;

	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	if (!rai->ai_qp_type && ai)
		rai->ai_qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
	if (!rai->ai_port_space && ai)
		rai->ai_port_space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
}

/* @gai: set to the result of getaddrinfo(). Return: 0 or -ENOMEM. */
static int look_up_addrinfo(struct rdma_addrinfo *rai, const char *node, const char *service,
			    const struct rdma_addrinfo *hints, int *gai)
{
	struct addrinfo ai_hints, *ai;
	int rc;

	to_ai(&ai_hints, hints);
	*gai = getaddrinfo(node, service, &ai_hints, &ai);
	if (*gai)
		return 0;
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = ai->ai_family;
	set_type(rai, hints, ai);
	if (hints->ai_flags & RAI_PASSIVE)
		rc = copy_addr(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr, ai->ai_addrlen);
	else
		rc = copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return rc;
}

static int take_hints(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	set_type(rai, hints, NULL);
	if (!hints->ai_dst_len)
		return 0;
	return copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr,
			 hints->ai_dst_len);
}

/* Returns an error of getaddrinfo() unchanged, as librdmacm does, for gai_strerror(). */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *rai;
	int rc, gai = 0;

	if (!node && !service && !hints)
		return cm_return(-EINVAL);
	if (hints && hints->ai_flags & FLAG_SA)
		return cm_return(-EOPNOTSUPP);
	if (!hints)
		hints = &no_hints;
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return cm_return(-ENOMEM);

	if (node || service)
		rc = look_up_addrinfo(rai, node, service, hints, &gai);
	else
		rc = take_hints(rai, hints);
	if (!rc && !gai && !rai->ai_src_len && hints->ai_src_len)
		rc = copy_addr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
			       hints->ai_src_len);
	if (rc || gai) {
		rdma_freeaddrinfo(rai);
		return gai ? gai : cm_return(rc);
	}
	*res = rai;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
