/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A blocking flock(2) has no deadline, so that a stopped holder would stop all others. The waiter
 * tries again after short sleeps instead.
 */
#include "lib/pool/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"

#define WAIT_S 10
#define NAP_MIN_NS (WEIR_NS_PER_MS / 2)
#define NAP_MAX_NS (8 * WEIR_NS_PER_MS)
#define WRITERS 0222 /* rights to write, of all classes */
#define HOLDER_MAX 80
#define LOCK_PATH_MAX (PATH_MAX + 8)

static int fail(const char *path, struct weir_error *error)
{
	return weir_error_set(error, errno == EACCES ? -EPERM : -EIO, "%s: cannot lock: %s", path,
			      strerror(errno));
}

/*
 * Outside sticky folders, a user with the right to make a lock may also replace the file. In
 * sticky folders, such as /tmp, a stranger may make the lock before the file's owner does.
 */
static bool has_good_owner(const char *path, const struct stat *lock)
{
	char folder[LOCK_PATH_MAX];
	struct stat st;

	if (!lock->st_uid || lock->st_uid == geteuid())
		return true;
	if (!lstat(path, &st) && st.st_uid == lock->st_uid)
		return true;
	snprintf(folder, sizeof(folder), "%s", path);
	return !stat(dirname(folder), &st) && !(st.st_mode & S_ISVTX);
}

static int check(const char *path, const char *lock, int fd, mode_t mode, struct weir_error *error)
{
	mode_t writers, wanted;
	struct stat st;

	if (fstat(fd, &st))
		return fail(lock, error);
	if (!S_ISREG(st.st_mode) || !has_good_owner(path, &st))
		return weir_error_set(error, -EPERM,
				      "%s: cannot lock: it belongs to user %u, or is no file: "
				      "remove it",
				      lock, st.st_uid);
	writers = st.st_mode & mode & WRITERS;
	wanted = writers | writers << 1;
	/* Only the owner can. In the sandbox of a service a new lock keeps the rights to write. */
	if ((st.st_mode & ALLPERMS) != wanted)
		(void)fchmod(fd, wanted);
	return 0;
}

/* A new lock has no rights to read, until check() gives them to its writers. */
static int open_lock(const char *path, const char *lock, mode_t mode, struct weir_error *error)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = open(lock, flags), rc;

	/* Not at once: with O_CREAT the kernel may refuse locks of others in sticky folders. */
	if (fd < 0 && errno == ENOENT)
		fd = open(lock, flags | O_CREAT, mode & WRITERS);
	if (fd < 0)
		return fail(lock, error);
	rc = check(path, lock, fd, mode, error);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* The process that has locked the file, by /proc/locks; 0: unknown. */
static int find_holder(int fd)
{
	unsigned long long inode;
	unsigned int major, minor;
	struct stat st;
	char line[256];
	int pid, found = 0;
	FILE *locks = fopen("/proc/locks", "re");

	if (!locks)
		return 0;
	while (!fstat(fd, &st) && !found && fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major, &minor,
			   &inode) == 4 &&
		    inode == st.st_ino && makedev(major, minor) == st.st_dev)
			found = pid;
	fclose(locks);
	return found;
}

static void name_holder(int fd, char text[static HOLDER_MAX])
{
	char path[32], command[32] = "";
	int pid = find_holder(fd);
	FILE *file;

	if (pid <= 0) {
		snprintf(text, HOLDER_MAX, "another process");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(command, sizeof(command), file))
		strcpy(command, "?");
	if (file)
		fclose(file);
	command[strcspn(command, "\n")] = '\0';
	snprintf(text, HOLDER_MAX, "process %d (%s)", pid, command);
}

/* Services block these signals and take them later. */
static bool is_told_to_end(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static int wait_for(const char *lock, int fd, uint64_t until_ns, struct weir_error *error)
{
	uint64_t nap_ns = NAP_MIN_NS;
	char holder[HOLDER_MAX];
	struct timespec nap;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return fail(lock, error);
		if (weir_now_ns() >= until_ns) {
			name_holder(fd, holder);
			return weir_error_set(error, -EHOSTUNREACH,
					      "%s: %s has held the lock for %d s: let it go on or "
					      "end it; nothing has changed",
					      lock, holder, WAIT_S);
		}
		nap = weir_timespec(nap_ns);
		if (is_told_to_end() || nanosleep(&nap, NULL))
			return weir_error_set(error, -EINTR,
					      "%s: a signal ended the wait for the lock; nothing "
					      "has changed",
					      lock);
		nap_ns = nap_ns < NAP_MAX_NS ? 2 * nap_ns : NAP_MAX_NS;
	}
	return 0;
}

/* Whether the lock's file has not been removed or replaced meanwhile. */
static bool is_there(const char *lock, int fd)
{
	struct stat locked, there;

	return !fstat(fd, &locked) && !lstat(lock, &there) && locked.st_ino == there.st_ino &&
	       locked.st_dev == there.st_dev;
}

int weir_lock_file_take(const char *path, mode_t mode, struct weir_error *error)
{
	uint64_t until_ns = weir_now_ns() + WAIT_S * WEIR_NS_PER_S;
	char lock[LOCK_PATH_MAX];
	int fd, rc;

	if (snprintf(lock, sizeof(lock), "%s.lock", path) >= (int)sizeof(lock))
		return weir_error_set(error, -EIO, "%s: too long", path);
	do {
		fd = open_lock(path, lock, mode, error);
		if (fd < 0)
			return fd;
		rc = wait_for(lock, fd, until_ns, error);
		if (!rc && is_there(lock, fd))
			return fd;
		close(fd);
	} while (!rc);
	return rc;
}

void weir_lock_file_remove(const char *path, int fd)
{
	char lock[LOCK_PATH_MAX];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	unlink(lock); /* before others can take the lock */
	close(fd);
}
