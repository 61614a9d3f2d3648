/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/preload/unload/answering_peer.h"

#include <poll.h>
#include <sched.h>
#include <time.h>

int answerer_listen(void)
{
	int i, fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un at;
	socklen_t length;

	assert_true(fd >= 0);
	for (i = 0; i < WIRE_DISCOVERY_NAMES; i++) {
		length = forger_name(i, &at);
		if (!bind(fd, (struct sockaddr *)&at, length))
			return fd;
	}
	fail_msg("no name is free");
	return -1;
}

socklen_t answerer_hear(int fd, const struct ibv_qp *qp, struct wire_discovery_offer *offer,
			struct sockaddr_un *from)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	socklen_t length;
	ssize_t n;

	/* Other tests send here, too, and some datagrams are not offers. */
	do {
		assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
		length = sizeof(*from);
		n = recvfrom(fd, offer, sizeof(*offer), 0, (struct sockaddr *)from, &length);
	} while (n != sizeof(*offer) || offer->from_qpn != qp->qp_num);
	return length;
}

struct ibv_qp *answerer_make(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	return pair->qp[0] ? forger_make_hidden(pair, init) : ibv_create_qp(pair->pd, init);
}

static struct ibv_wc next_wc(struct forger *f)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct ibv_wc wc;

	while (!ibv_poll_cq(f->cq, 1, &wc)) {
		sched_yield();
		assert_true(time(NULL) <= until);
	}
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wc;
}

void answerer_greet(struct forger *f, struct wire_discovery_offer *offer,
		    const struct sockaddr_un *to, socklen_t length)
{
	struct ibv_recv_wr *bad, recv = { .wr_id = 0 };

	forger_qp(f);
	f->answer = *offer;
	forger_connect(f);
	assert_int_equal(ibv_post_recv(f->qp, &recv, &bad), 0);
	offer->type = WIRE_DISCOVERY_ACCEPTED;
	offer->qpn = f->qp->qp_num;
	offer->psn = 7;
	offer->addr = (uintptr_t)&f->own;
	offer->rkey = f->mr->rkey;
	forger_seal(&f->pair, offer, 0);
	sendto(f->fd, offer, sizeof(*offer), 0, (const struct sockaddr *)to, length);
	assert_int_equal(next_wc(f).byte_len, 0);
}

void answerer_return(struct forger *f, const struct wire_discovery_offer *asked, uint16_t done,
		     bool is_refused)
{
	const struct wire_unload_return r = { .done = done, .is_refused = is_refused };
	struct ibv_sge sge = { (uintptr_t)&f->own.last_return, sizeof(f->own.last_return),
			       f->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { asked->addr, asked->rkey },
	};

	f->own.last_return = wire_unload_return_word(&r);
	assert_int_equal(ibv_post_send(f->qp, &wr, &bad), 0);
	next_wc(f);
}
