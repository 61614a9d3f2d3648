/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The list holds what the C library, libibverbs and its providers, librdmacm, softnic, libfuse,
 * libcurl and libmicrohttpd call. tests/apps/sandbox compares the list with what services do. The
 * list leaves out calls that start programs, trace processes, change users, mounts, namespaces,
 * keys, clocks or modules, or open files around the permissions of their paths.
 * Signals and softnic's copies still reach processes of the same user. A system call that this
 * machine's libseccomp does not know is left out.
 */
#include "apps/sandbox/sandbox.h"

#include "apps/common/cmd.h"

#ifdef HAVE_SECCOMP
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

static const char *const allowed[] = {
	/* memory */
	"brk", "madvise", "mbind", "membarrier", "memfd_create", "mincore", "mlock", "mlock2",
	"mmap", "mmap2", "mprotect", "mremap", "munlock", "munmap",
	/* threads and processes; a child can run no other program */
	"arch_prctl", "exit", "exit_group", "futex", "get_robust_list", "getcpu", "getegid",
	"geteuid", "getgid", "getpid", "getppid", "getrlimit", "getrusage", "gettid", "getuid",
	"kill", "pidfd_open", "prctl", "prlimit64", "rseq", "sched_getaffinity",
	"sched_setaffinity", "sched_yield", "set_robust_list", "setrlimit", "tgkill", "uname",
	"sysinfo", "wait4",
	/* signals and time */
	"clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep",
	"restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn",
	"rt_sigtimedwait", "sigaltstack", "signalfd4", "time", "timerfd_create", "timerfd_settime",
	/* descriptors and events */
	"close", "close_range", "dup", "dup2", "epoll_create", "epoll_create1", "epoll_ctl",
	"epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "fcntl", "fcntl64",
	"ioctl", "lseek", "pipe", "pipe2", "poll", "ppoll", "pread64", "preadv2", "pselect6",
	"pwrite64", "read", "readv", "select", "write", "writev", "getrandom",
	/* files, within the rights of the user */
	"access", "faccessat", "faccessat2", "fallocate", "flock", "fstat", "fstatfs", "fsync",
	"ftruncate", "getcwd", "getdents", "getdents64", "inotify_add_watch", "inotify_init1",
	"inotify_rm_watch", "lstat", "newfstatat", "open", "openat", "readlink", "readlinkat",
	"rename", "renameat", "renameat2", "sendfile", "splice", "stat", "statx", "umask",
	"unlink", "unlinkat",
	/* the network, and other processes of the host */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "process_vm_readv", "process_vm_writev", "recvfrom", "recvmmsg", "recvmsg",
	"sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "socket", "socketpair",
};

/*
 * A filter cannot look at the arguments of clone3(). The C library uses clone() where a kernel has
 * no clone3(). This filter does not log, since each new thread would leave a line.
 */
static int replace_clone3(scmp_filter_ctx filter)
{
	int nr = seccomp_syscall_resolve_name("clone3");

	return nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
}

/* Threads and children, but no namespaces. */
static int allow_clone(scmp_filter_ctx filter)
{
	const uint64_t namespaces = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS |
				    CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS;
	int clone3 = seccomp_syscall_resolve_name("clone3");
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				  SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));

	/* The kernel takes the stricter filter's word, which is replace_clone3()'s. */
	if (!rc && clone3 != __NR_SCMP_ERROR)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, clone3, 0);
	return rc;
}

static int allow_list(scmp_filter_ctx filter)
{
	int rc = 0, nr;
	size_t i;

	for (i = 0; !rc && i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		nr = seccomp_syscall_resolve_name(allowed[i]);
		if (nr != __NR_SCMP_ERROR)
			rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0);
	}
	if (!rc)
		rc = allow_clone(filter);
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1); /* Linux 4.14 */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
	return rc;
}

/* For all threads of the process. */
static int filter_load(uint32_t otherwise, int (*build)(scmp_filter_ctx filter))
{
	scmp_filter_ctx filter = seccomp_init(otherwise);
	int rc = filter ? build(filter) : -ENOMEM;

	if (!rc)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!rc)
		rc = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return rc;
}

bool sandbox_enter(const char *cmd)
{
	int rc = filter_load(SCMP_ACT_ALLOW, replace_clone3);

	/* After a failure here, the other filter does not harm. */
	if (!rc)
		rc = filter_load(SCMP_ACT_ERRNO(EPERM), allow_list);
	if (rc)
		cmd_say(cmd, "no sandbox: the kernel refuses a filter of system calls: %s",
			strerror(-rc));
	return !rc;
}

#else

bool sandbox_enter(const char *cmd)
{
	(void)cmd;
	return false;
}

#endif
