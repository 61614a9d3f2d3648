/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The verbs device of who listens. */
#ifndef WEIR_LIB_CONN_LISTEN_DEVICE_H
#define WEIR_LIB_CONN_LISTEN_DEVICE_H

#include <rdma/rdma_cma.h>

#include <weir/error.h>

/**
 * weir_listen_device_find() - where a listener's queue pairs are to be
 * @listener: bound; or NULL, and then any device will do
 * @listen: what it listens on, for the error
 * @name: the device asked for, or NULL
 * @device: receives it; the connection manager's
 * @error: may be NULL
 *
 * Context: any thread. Return: 0; -ENODEV there is none, or the listener belongs to another.
 */
int weir_listen_device_find(const struct rdma_cm_id *listener, const char *listen, const char *name,
			    struct ibv_context **device, struct weir_error *error);

#endif
