// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <poll.h>

#include "fault_fixture.h"
#include "softnic/control/control.h"
#include "softnic/control/option.h"

int fault(pid_t pid, const char *text)
{
	struct softnic_options o;
	char why[512];

	option_defaults(&o);
	if (option_parse(text, OPTION_FIRST_FAULT, &o, why, sizeof(why)))
		fail_msg("%s", why);
	return softnic_control_set_faults(pid, &o);
}

void cause(const char *text)
{
	assert_int_equal(fault(getpid(), text), 0);
}

void expect_event(struct endpoint *e, enum ibv_event_type type)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(e->ctx, &event), 0);
	assert_int_equal(event.event_type, type);
	ibv_ack_async_event(&event);
}

enum ibv_port_state port_state(struct endpoint *e)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(e->ctx, 1, &attr), 0);
	return attr.state;
}
