/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See mux_pair.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/mux_pair.h"

struct weir_mux *mux_open(const struct weir_mux_options *options)
{
	struct weir_error error = { "" };
	struct weir_mux *mux = NULL;

	if (weir_mux_open(options, &mux, &error))
		fail_msg("%s", error.text);
	return mux;
}

void wait_readable(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };

	assert_true(fd >= 0);
	assert_int_equal(poll(&in, 1, PATIENCE_MS), 1);
}

struct weir_mux_conn *accept_from(struct weir_mux_listener *listener)
{
	struct weir_mux_conn *conn = NULL;
	int rc;

	while ((rc = weir_mux_listener_accept(listener, &conn)) == -EAGAIN)
		wait_readable(weir_mux_listener_fd(listener));
	assert_int_equal(rc, 0);
	return conn;
}

void mux_pair_connect(struct mux_pair *p, const struct weir_mux_conn_options *options,
		      struct weir_mux_conn **near, struct weir_mux_conn **far)
{
	struct weir_error error = { "" };

	if (weir_mux_connect(p->client, p->address, SERVICE, options, near, &error))
		fail_msg("%s", error.text);
	*far = accept_from(p->listener);
}

void mux_pair_open(struct mux_pair *p, const struct weir_mux_options *options)
{
	struct weir_mux_options both = options ? *options : (struct weir_mux_options){ 0 };
	struct weir_mux_info info;
	char listen[64];

	memset(p, 0, sizeof(*p));
	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	both.size = sizeof(both);
	both.key = fixture_key();
	p->client = mux_open(&both);
	both.listen = listen;
	p->server = mux_open(&both);
	weir_mux_info(p->server, &info, sizeof(info));
	snprintf(p->address, sizeof(p->address), "%s", info.address);
	assert_int_equal(weir_mux_listen(p->server, SERVICE, 1024, &p->listener), 0);
	mux_pair_connect(p, NULL, &p->near, &p->far);
}

void mux_pair_close(struct mux_pair *p)
{
	if (p->near)
		weir_mux_conn_close(p->near);
	if (p->far)
		weir_mux_conn_close(p->far);
	if (p->ours)
		assert_int_equal(weir_mux_region_close(p->ours), 0);
	if (p->theirs)
		assert_int_equal(weir_mux_region_close(p->theirs), 0);
	weir_mux_listener_close(p->listener);
	weir_mux_close(p->client);
	weir_mux_close(p->server);
}
