/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <pthread.h>

#include "preload/unload/hooks/fork.h"

/* In this order: a device's functions lead to all that comes after. */
static void in_child(void)
{
	device_forget();
	watch_forget();
	slots_forget();
	polled_forget();
	pressure_forget();
	say_forget();
	service_forget();
}

int fork_watch(void)
{
	return pthread_atfork(NULL, NULL, in_child);
}
