/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/donor_call.h"

#include <errno.h>
#include <semaphore.h>
#include <weir/donor.h>

struct donor_call {
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void run_call(void *arg)
{
	struct donor_call *call = arg;

	call->fn(call->arg);
	sem_post(&call->done);
}

int donor_call(struct weir_donor *donor, void (*fn)(void *arg), void *arg)
{
	struct donor_call call = { .fn = fn, .arg = arg };
	int rc;

	if (sem_init(&call.done, 0, 0))
		return -ENOMEM;
	rc = weir_donor_after(donor, 0, run_call, &call);
	while (!rc && sem_wait(&call.done))
		; /* a signal */
	sem_destroy(&call.done);
	return rc;
}
