/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <signal.h>

#include "lib/base/error.h"
#include "lib/base/thread.h"

int weir_thread_create(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg,
		       struct weir_error *error)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return weir_error_set(error, -ENOMEM, "no thread: %s", weir_strerror(-rc));
	pthread_setname_np(*thread, name);
	return 0;
}
