/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <pthread.h>

#include "preload/unload/hooks/fork.h"

/* In this order: a device's functions lead to all later state. */
static void reset_in_child(void)
{
	device_forget();
	tracked_qp_forget();
	slot_pool_forget();
	poll_cq_forget();
	pressure_forget();
	diag_forget();
	service_forget();
}

int fork_register(void)
{
	return pthread_atfork(NULL, NULL, reset_in_child);
}
