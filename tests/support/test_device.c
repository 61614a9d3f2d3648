// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "test_device.h"
#include "verbs_puppet.h"

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && value[0] ? value : otherwise;
}

bool on_softnic(void)
{
	return !strcmp(environment("WEIR_TEST_DEVICE", "softnic"), "softnic");
}

bool soft_roce_differs(const char *how)
{
	if (on_softnic())
		return false;
	print_message("# Soft-RoCE: %s\n", how);
	return true;
}

void skip_on_soft_roce(const char *why)
{
	if (soft_roce_differs(why))
		skip();
}

static bool is_after_linux_6_1(void)
{
	unsigned int major, minor;
	struct utsname host;

	return !uname(&host) && sscanf(host.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor > 1));
}

static bool is_refused_here(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR ||
	       status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_MW_BIND_ERR;
}

enum ibv_wc_status refused_status(enum ibv_wc_status found, enum ibv_wc_status wanted)
{
	if (found != IBV_WC_WR_FLUSH_ERR || !is_refused_here(wanted) || !is_after_linux_6_1())
		return found;
	return soft_roce_differs("after Linux 6.1, what its own side refuses may end as flushed") ?
		       wanted :
		       found;
}

static bool is_wanted(struct ibv_device *device)
{
	return on_softnic() || !strcmp(ibv_get_device_name(device), environment("WEIR_DEVICE", ""));
}

struct ibv_context *open_device(int n)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	int i;

	assert_non_null(list);
	for (i = 0; list[i] && !is_wanted(list[i]); i++)
		;
	assert_non_null(list[i]);
	ctx = ibv_open_device(list[i + n]);
	ibv_free_device_list(list);
	assert_non_null(ctx);
	return ctx;
}

const char *own_address(void)
{
	static char text[INET6_ADDRSTRLEN];

	snprintf(text, sizeof(text), "::ffff:%s", environment("WEIR_TEST_ADDRESS", "127.0.0.1"));
	return text;
}

uint8_t own_gid_index(struct ibv_context *ctx)
{
	struct ibv_port_attr port;
	union ibv_gid own, gid;
	int i;

	assert_int_equal(inet_pton(AF_INET6, own_address(), &own), 1);
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	for (i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(ctx, 1, i, &gid) && !memcmp(&gid, &own, sizeof(gid)))
			return i;
	fail_msg("the device does not have the address %s", own_address());
	return 0;
}

bool over_wire(void)
{
	const char *options = getenv("WEIR_SOFTNIC");

	return options && strstr(options, "near=0");
}

struct ibv_ah_attr way_to_self(struct ibv_context *ctx)
{
	struct ibv_ah_attr attr = { .port_num = 1 };

	if (on_softnic() && !over_wire())
		return attr;
	attr.is_global = 1;
	attr.grh.hop_limit = 64;
	attr.grh.sgid_index = own_gid_index(ctx);
	assert_int_equal(inet_pton(AF_INET6, own_address(), &attr.grh.dgid), 1);
	return attr;
}

int scaled(int times)
{
	int fewer = (int)(times * strtod(environment("WEIR_TEST_SIZE", "1"), NULL));

	return fewer ? fewer : 1;
}
