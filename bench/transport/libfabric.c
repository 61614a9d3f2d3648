/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libfabric's fi_write and fi_read on its verbs provider: a connected endpoint for each lane. */
#include "bench/transport/transport.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define API FI_VERSION(1, 11)
#define WAIT_MS 10000

/* Sent by the lender once the lanes are connected. */
struct libfabric_lent {
	uint64_t address, key;
};

struct libfabric_lane {
	struct fid_ep *ep;
	struct fid_cq *cq;
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_mr *mr;
static struct libfabric_lane lanes[LANES_MAX];
static struct libfabric_lent lent;

static void ok(long rc, const char *what)
{
	must(rc >= 0, what, fi_strerror((int)-rc));
}

/* The provider finds the device by an address other than 127.0.0.1. */
static struct sockaddr_in own_address(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct ifaddrs *list, *at;

	ok(getifaddrs(&list), "addresses");
	for (at = list; at && !own.sin_addr.s_addr; at = at->ifa_next) {
		const struct sockaddr_in *in = (struct sockaddr_in *)at->ifa_addr;

		if (in && in->sin_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 != 127)
			own.sin_addr = in->sin_addr;
	}
	freeifaddrs(list);
	must(own.sin_addr.s_addr, "address", "this machine has none but 127.0.0.1");
	return own;
}

static struct fi_info *hints_of(void)
{
	struct fi_info *hints = fi_allocinfo();

	must(hints, "memory", "there is none");
	hints->caps = FI_MSG | FI_RMA;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	return hints;
}

/* For listening on @address, or for connecting to it. */
static struct fi_info *get_info(const struct sockaddr_in *address, bool listens)
{
	struct fi_info *info, *hints = hints_of();
	void *copy = malloc(sizeof(*address));

	must(copy, "memory", "there is none");
	memcpy(copy, address, sizeof(*address));
	if (listens) {
		hints->src_addr = copy;
		hints->src_addrlen = sizeof(*address);
	} else {
		hints->dest_addr = copy;
		hints->dest_addrlen = sizeof(*address);
	}
	ok(fi_getinfo(API, NULL, NULL, 0, hints, &info), "the verbs provider");
	fi_freeinfo(hints);
	return info;
}

static void open_fabric(const struct fi_info *info)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	ok(fi_fabric(info->fabric_attr, &fabric, NULL), "fabric");
	ok(fi_eq_open(fabric, &attr, &eq, NULL), "event queue");
}

static void open_domain(struct fi_info *info, void *memory, size_t bytes)
{
	uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	ok(fi_domain(fabric, info, &domain, NULL), "domain");
	ok(fi_mr_reg(domain, memory, bytes, access, 0, 0, 0, &mr, NULL), "memory");
}

static void open_lane(struct libfabric_lane *lane, struct fi_info *info)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 2 * DEPTH_MAX };

	ok(fi_endpoint(domain, info, &lane->ep, NULL), "endpoint");
	ok(fi_cq_open(domain, &attr, &lane->cq, NULL), "completion queue");
	ok(fi_ep_bind(lane->ep, &eq->fid, 0), "endpoint");
	ok(fi_ep_bind(lane->ep, &lane->cq->fid, FI_TRANSMIT | FI_RECV), "endpoint");
	ok(fi_enable(lane->ep), "endpoint");
}

static struct fi_info *wait_for(uint32_t wanted)
{
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;

	ok(fi_eq_sread(eq, &event, &entry, sizeof(entry), WAIT_MS, 0), "connection");
	must(event == wanted, "connection", "refused");
	return entry.info;
}

static void libfabric_lend(int socket, void *memory, const struct transport_job *job)
{
	struct sockaddr_in address = own_address();
	struct fi_info *request, *info = get_info(&address, true);
	size_t bytes = sizeof(address);
	struct fid_pep *pep;
	int i;

	open_fabric(info);
	ok(fi_passive_ep(fabric, info, &pep, NULL), "listening");
	ok(fi_pep_bind(pep, &eq->fid, 0), "listening");
	ok(fi_listen(pep), "listening");
	ok(fi_getname(&pep->fid, &address, &bytes), "address");
	send_all(socket, &address, sizeof(address));
	for (i = 0; i < job->lanes; i++) {
		request = wait_for(FI_CONNREQ);
		if (!domain)
			open_domain(request, memory, job->lent_bytes);
		open_lane(&lanes[i], request);
		ok(fi_accept(lanes[i].ep, NULL, 0), "accept");
		wait_for(FI_CONNECTED);
		fi_freeinfo(request);
	}
	lent = (struct libfabric_lent){ (uintptr_t)memory, fi_mr_key(mr) };
	send_all(socket, &lent, sizeof(lent));
	until_over(socket, NULL);
}

static void libfabric_borrow(int socket, void *buffers, const struct transport_job *job)
{
	struct sockaddr_in address;
	struct fi_info *info;
	int i;

	receive_all(socket, &address, sizeof(address));
	info = get_info(&address, false);
	open_fabric(info);
	open_domain(info, buffers, job->buffers_bytes);
	for (i = 0; i < job->lanes; i++) {
		open_lane(&lanes[i], info);
		ok(fi_connect(lanes[i].ep, info->dest_addr, NULL, 0), "connect");
		wait_for(FI_CONNECTED);
	}
	fi_freeinfo(info);
	receive_all(socket, &lent, sizeof(lent));
}

static int libfabric_reap(int number)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry entries[16];
	long got = fi_cq_read(lanes[number].cq, entries, 16);

	if (got == -FI_EAVAIL)
		fi_cq_readerr(lanes[number].cq, &error, 0);
	must(got >= 0 || got == -FI_EAGAIN, "completion",
	     fi_strerror(error.err ? error.err : (int)-got));
	return got < 0 ? 0 : (int)got;
}

static void libfabric_post(int number, bool is_read, void *buffer, size_t size, uint64_t offset)
{
	struct fid_ep *ep = lanes[number].ep;
	void *desc = fi_mr_desc(mr);
	uint64_t at = lent.address + offset;
	long rc;

	if (is_read)
		rc = fi_read(ep, buffer, size, desc, 0, at, lent.key, NULL);
	else
		rc = fi_write(ep, buffer, size, desc, 0, at, lent.key, NULL);
	ok(rc, "post");
}

const struct transport transport_libfabric = {
	.name = "libfabric",
	.lend = libfabric_lend,
	.borrow = libfabric_borrow,
	.post = libfabric_post,
	.reap = libfabric_reap,
};
