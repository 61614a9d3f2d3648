/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's queries that verbs.h calls through the context.
 */
#ifndef WEIR_SOFTNIC_VERBS_DEVICE_QUERY_H
#define WEIR_SOFTNIC_VERBS_DEVICE_QUERY_H

#include "verbs.h"

int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t size);
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

#endif
