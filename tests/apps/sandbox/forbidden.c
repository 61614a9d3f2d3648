/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Preloaded into a service. On SIGUSR2 a thread of the service tries forbidden system calls, and
 * writes the result of each to $FORBIDDEN, as "NAME ERRNO".
 */
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_FILE "/nonexistent"

static void try_call(FILE *to, const char *name, long rc)
{
	fprintf(to, "%s %d\n", name, rc < 0 ? errno : 0);
}

/* The arguments are invalid: without the sandbox each call fails with another errno than EPERM. */
static void *try_all(void *arg)
{
	char *none[] = { NULL };
	FILE *to;
	sigset_t set;
	int sig;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	while (sigwait(&set, &sig))
		;
	to = fopen(getenv("FORBIDDEN"), "we");
	if (!to)
		return NULL;
	try_call(to, "execve", syscall(SYS_execve, NO_FILE, none, none));
	try_call(to, "execveat", syscall(SYS_execveat, -1, NO_FILE "x", none, none, -1));
	try_call(to, "ptrace", syscall(SYS_ptrace, PTRACE_CONT, 0, 0, 0));
	try_call(to, "mount", syscall(SYS_mount, NULL, NULL, NULL, -1L, NULL));
	try_call(to, "bpf", syscall(SYS_bpf, -1, NULL, 0));
	try_call(to, "open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0));
	try_call(to, "unshare", syscall(SYS_unshare, -1L));
	try_call(to, "clone", syscall(SYS_clone, CLONE_NEWUSER | CLONE_SIGHAND, 0, 0, 0, 0));
	try_call(to, "setuid", syscall(SYS_setuid, -1));
	try_call(to, "keyctl", syscall(SYS_keyctl, -1, 0, 0, 0, 0));
	fclose(to);
	return NULL;
}

/* Runs before main(), because later threads inherit the mask of signals. */
__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;
	sigset_t all, set;

	if (!getenv("FORBIDDEN"))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &set);
	pthread_create(&thread, NULL, try_all, NULL);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}
