/* SPDX-License-Identifier: GPL-2.0-only */
/* Between connect.c, which makes a connection step by step, and conn.c, which holds its verbs. */
#ifndef WEIR_KERNEL_WEIR_CONNECT_H
#define WEIR_KERNEL_WEIR_CONNECT_H

#include "kernel/weir/conn.h"

/* The id of @conn has a device, and the session is attached. Return: 0 or a negative errno. */
int kweir_conn_make_qp(struct kweir_conn *conn);
int kweir_conn_make_buffers(struct kweir_conn *conn);

#endif
