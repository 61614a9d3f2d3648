/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The verbs device of a listener. */
#ifndef WEIR_LIB_CONN_LISTEN_DEVICE_H
#define WEIR_LIB_CONN_LISTEN_DEVICE_H

#include <rdma/rdma_cma.h>

#include <weir/error.h>

/**
 * weir_listen_device_find() - choose the device for a listener's queue pairs
 * @listener: bound; or NULL: any device will do
 * @listen: the address listened on, for the error
 * @name: the device asked for, or NULL
 * @device: receives the device, which the connection manager owns
 * @error: may be NULL
 *
 * Context: any thread.
 * Return: 0; -ENODEV there is no device, or the listener belongs to another device.
 */
int weir_listen_device_find(const struct rdma_cm_id *listener, const char *listen, const char *name,
			    struct ibv_context **device, struct weir_error *error);

#endif
