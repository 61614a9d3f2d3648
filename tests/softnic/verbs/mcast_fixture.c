// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <arpa/inet.h>
#include <sys/random.h>

#include "mcast_fixture.h"
#include "softnic/verbs/mcast.h"

void invent_group(union ibv_gid *gid, bool is_ipv4)
{
	*gid = (union ibv_gid){ .raw = { 0xff, 0x0e } };
	if (is_ipv4)
		*gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = 239 } };
	assert_int_equal(getrandom(gid->raw + 13, 3, 0), 3);
	if (!is_ipv4)
		assert_int_equal(getrandom(gid->raw + 2, 11, 0), 11);
}

void crowd_up(struct mcast_ends *c, bool is_ipv4)
{
	char address[INET6_ADDRSTRLEN];

	two_up(&c->t, IBV_QPT_UD);
	invent_group(&c->gid, is_ipv4);
	inet_ntop(AF_INET6, &c->gid, address, sizeof(address));
	ibv_destroy_ah(c->t.ah);
	c->t.ah = make_ah(&c->t.a, address);
	assert_non_null(c->t.ah);
}

struct test_wr *to_group(struct test_wr *w, struct mcast_ends *c, uint32_t length)
{
	datagram(w, &c->t, length)->wr.wr.ud.remote_qpn = MCAST_QPN;
	return w;
}

void attach(struct endpoint *e, struct mcast_ends *c)
{
	assert_int_equal(ibv_attach_mcast(e->qp, &c->gid, 0), 0);
}

void detach(struct endpoint *e, struct mcast_ends *c)
{
	assert_int_equal(ibv_detach_mcast(e->qp, &c->gid, 0), 0);
}

void send_to_group(struct mcast_ends *c)
{
	struct test_wr w;

	do_wr(&c->t.a, to_group(&w, c, 8), IBV_WC_SUCCESS);
}

void assert_got(struct endpoint *e, uint64_t wr_id)
{
	struct ibv_wc wc = wait_wc(e);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}
