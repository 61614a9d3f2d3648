/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libfabric's fi_write and fi_read on its verbs provider: a connected endpoint for each lane. */
#include "bench/fs/transport.h"

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

#define VERSION FI_VERSION(1, 11)
#define WAIT_MS 10000

/* Sent by the lender once the lanes are connected. */
struct fs_lent {
	uint64_t address, key;
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_mr *mr;
static struct fid_ep *ep[LANES];
static struct fid_cq *cq[LANES];
static struct fs_lent lent;
static void *all_buffers;

static void ok(long rc, const char *what)
{
	must(rc >= 0, what, fi_strerror((int)-rc));
}

/* The provider leaves out 127.0.0.1. */
static struct sockaddr_in own_address(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct ifaddrs *list, *at;

	must(!getifaddrs(&list), "addresses", "cannot be listed");
	for (at = list; at && !own.sin_addr.s_addr; at = at->ifa_next) {
		struct sockaddr_in *in = (struct sockaddr_in *)at->ifa_addr;

		if (in && in->sin_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 != 127)
			own.sin_addr = in->sin_addr;
	}
	freeifaddrs(list);
	must(own.sin_addr.s_addr, "address", "this machine has none but 127.0.0.1");
	return own;
}

/* @address is this side's, to listen on, or the other side's. */
static struct fi_info *get_info(const struct sockaddr_in *address, bool own)
{
	struct fi_info *info, *hints = fi_allocinfo();
	void *copy = malloc(sizeof(*address));

	memcpy(copy, address, sizeof(*address));
	hints->caps = FI_MSG | FI_RMA;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	if (own) {
		hints->src_addr = copy;
		hints->src_addrlen = sizeof(*address);
	} else {
		hints->dest_addr = copy;
		hints->dest_addrlen = sizeof(*address);
	}
	ok(fi_getinfo(VERSION, NULL, NULL, 0, hints, &info), "the verbs provider");
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

static void open_lane(int lane, struct fi_info *info)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 16 };

	ok(fi_endpoint(domain, info, &ep[lane], NULL), "endpoint");
	ok(fi_cq_open(domain, &attr, &cq[lane], NULL), "completion queue");
	ok(fi_ep_bind(ep[lane], &eq->fid, 0), "endpoint");
	ok(fi_ep_bind(ep[lane], &cq[lane]->fid, FI_TRANSMIT | FI_RECV), "endpoint");
	ok(fi_enable(ep[lane]), "endpoint");
}

static struct fi_info *wait_for(uint32_t wanted)
{
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;

	ok(fi_eq_sread(eq, &event, &entry, sizeof(entry), WAIT_MS, 0), "connection");
	must(event == wanted, "connection", "refused");
	return entry.info;
}

static void libfabric_lend(int socket, void *memory, size_t bytes)
{
	struct sockaddr_in address = own_address();
	struct fi_info *request, *info = get_info(&address, true);
	size_t size = sizeof(address);
	struct fid_pep *pep;
	int i;

	open_fabric(info);
	ok(fi_passive_ep(fabric, info, &pep, NULL), "listening");
	ok(fi_pep_bind(pep, &eq->fid, 0), "listening");
	ok(fi_listen(pep), "listening");
	ok(fi_getname(&pep->fid, &address, &size), "address");
	tell(socket, &address, sizeof(address));
	for (i = 0; i < LANES; i++) {
		request = wait_for(FI_CONNREQ);
		if (!domain)
			open_domain(request, memory, bytes);
		open_lane(i, request);
		ok(fi_accept(ep[i], NULL, 0), "accept");
		wait_for(FI_CONNECTED);
		fi_freeinfo(request);
	}
	lent = (struct fs_lent){ (uintptr_t)memory, fi_mr_key(mr) };
	tell(socket, &lent, sizeof(lent));
	until_over(socket, NULL);
}

static void libfabric_borrow(int socket, void *buffers, size_t bytes)
{
	struct sockaddr_in address;
	struct fi_info *info;
	int i;

	(void)bytes;
	all_buffers = buffers;
	hear(socket, &address, sizeof(address));
	info = get_info(&address, false);
	open_fabric(info);
	open_domain(info, buffers, LANES_BYTES);
	for (i = 0; i < LANES; i++) {
		open_lane(i, info);
		ok(fi_connect(ep[i], info->dest_addr, NULL, 0), "connect");
		wait_for(FI_CONNECTED);
	}
	fi_freeinfo(info);
	hear(socket, &lent, sizeof(lent));
}

static void finish(int lane)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry entry;
	long got;

	while ((got = fi_cq_read(cq[lane], &entry, 1)) == -FI_EAGAIN)
		;
	if (got == -FI_EAVAIL)
		fi_cq_readerr(cq[lane], &error, 0);
	must(got == 1, "completion", fi_strerror(error.err ? error.err : (int)-got));
}

static void libfabric_read(int lane, size_t size, uint64_t offset)
{
	void *to = lane_buffer(all_buffers, lane);

	ok(fi_read(ep[lane], to, size, fi_mr_desc(mr), 0, lent.address + offset, lent.key, NULL),
	   "read");
	finish(lane);
}

static void libfabric_write(int lane, size_t size, uint64_t offset)
{
	const void *from = lane_buffer(all_buffers, lane);

	ok(fi_write(ep[lane], from, size, fi_mr_desc(mr), 0, lent.address + offset, lent.key, NULL),
	   "write");
	finish(lane);
}

const struct fs_transport transport = {
	.name = "libfabric",
	.lend = libfabric_lend,
	.borrow = libfabric_borrow,
	.read = libfabric_read,
	.write = libfabric_write,
};
