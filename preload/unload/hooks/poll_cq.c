/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <pthread.h>
#include <stdint.h>

#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/hooks/poll_cq.h"
#include "preload/unload/hooks/tracked_qp.h"

#define POLLINGS 64

/* Threads that poll one CQ take completions in order, and must note them in the same order. */
static pthread_mutex_t polling[POLLINGS] = { [0 ... POLLINGS - 1] = PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t *polling_of(const struct ibv_cq *cq)
{
	return &polling[(uintptr_t)cq / 64 % POLLINGS];
}

void poll_cq_forget(void)
{
	int i;

	for (i = 0; i < POLLINGS; i++)
		pthread_mutex_init(&polling[i], NULL);
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	pthread_mutex_t *polling = polling_of(cq);
	int i, n;

	pthread_mutex_lock(polling);
	n = device_of(cq->context)->ops.poll_cq(cq, room, wc);
	for (i = 0; i < n; i++)
		tracked_qp_polled(cq, &wc[i]);
	pthread_mutex_unlock(polling);
	return n;
}

void poll_cq_hook(struct unload_device *device)
{
	device->context->ops.poll_cq = poll_cq;
}
