// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Memory and descriptors that pass between processes.
 *
 * All are memfds or abstract sockets. The kernel frees both with the last user, so a killed
 * process leaves nothing behind. shared_map() maps only a memfd sealed against shrinking,
 * because access beyond the end of a shrunk file raises SIGBUS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "shared.h"

int shared_create(const char *name, size_t size, bool owner_only, int *fd, void **map)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | (owner_only ? F_SEAL_FUTURE_WRITE : 0);
	int rc;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, size) < 0)
		goto close;
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (*map == MAP_FAILED)
		goto close;
	if (madvise(*map, size, MADV_DONTFORK) < 0 ||
	    fcntl(*fd, F_ADD_SEALS, seals | F_SEAL_SEAL) < 0)
		goto unmap;
	return 0;

unmap:
	rc = errno;
	munmap(*map, size);
	errno = rc;
close:
	rc = errno;
	close(*fd);
	return -rc;
}

bool shared_is_safe(int fd, struct stat *st)
{
	return passed_fd_is_sealed(fd) && !fstat(fd, st);
}

int shared_map(int fd, size_t size_min, int prot, void **map, size_t *size)
{
	struct stat st;
	void *at;

	if (!shared_is_safe(fd, &st) || (uint64_t)st.st_size < size_min)
		return -EPROTO;
	at = mmap(NULL, st.st_size, prot, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, st.st_size, MADV_DONTFORK);
	*map = at;
	*size = st.st_size;
	return 0;
}

int shared_life_begin(struct shared_life *life)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return -rc;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	rc = pthread_mutex_init(&life->held, &attr);
	pthread_mutexattr_destroy(&attr);
	if (!rc)
		rc = pthread_mutex_lock(&life->held);
	return -rc;
}

socklen_t shared_address(uint32_t slot, struct sockaddr_un *addr)
{
	int n;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	n = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "weir-softnic-%u-%u",
		     (unsigned int)geteuid(), slot);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

bool shared_is_ours(int fd, pid_t *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	*pid = cred.pid;
	return cred.uid == geteuid();
}

static int send_parts(int fd, const struct shm_msg *m, const void *bytes, const int *fds,
		      int num_fds)
{
	struct shm_msg copy = *m;
	struct iovec parts[] = { { &copy, sizeof(copy) }, { (void *)bytes, bytes ? m->value : 0 } };
	union {
		char room[CMSG_SPACE(SHM_MSG_FDS_MAX * sizeof(int))];
		struct cmsghdr head;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	struct cmsghdr *c;

	copy.magic = SHARED_MAGIC;
	copy.version = SHARED_VERSION;
	if (num_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num_fds * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int shm_msg_send(int fd, const struct shm_msg *m, const int *fds, int num_fds)
{
	return send_parts(fd, m, NULL, fds, num_fds);
}

int shm_msg_send_bytes(int fd, const struct shm_msg *m, const void *bytes)
{
	return send_parts(fd, m, bytes, NULL, 0);
}

/* Are @n bytes one whole message? After a message to a gate come as many bytes as it says. */
static bool is_whole(const struct shm_msg *m, bool has_room, size_t n)
{
	if (n < sizeof(*m))
		return false;
	if (!has_room || m->type != MSG_GATE_SEND)
		return n == sizeof(*m);
	return m->value <= SHM_MSG_BYTES_MAX && n == sizeof(*m) + m->value;
}

static int receive_parts(int fd, struct shm_msg *m, void *bytes, int *fds)
{
	struct iovec parts[] = { { m, sizeof(*m) }, { bytes, bytes ? SHM_MSG_BYTES_MAX : 0 } };
	union passed_fd_control control;
	unsigned int nr_max = fds ? SHM_MSG_FDS_MAX : 0;
	struct msghdr msg = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = fds ? &control : NULL,
		.msg_controllen = fds ? sizeof(control) : 0,
	};
	ssize_t n;

	if (fds)
		memset(fds, -1, SHM_MSG_FDS_MAX * sizeof(*fds));
	n = passed_fd_recvmsg(fd, &msg, MSG_DONTWAIT);
	if (n < 0 && errno == EBADMSG)
		return -EPROTO;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EPIPE;
	if (passed_fd_take(&msg, fds, nr_max) > nr_max)
		msg.msg_flags |= MSG_CTRUNC;
	if (!(msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) && is_whole(m, bytes, n) &&
	    m->magic == SHARED_MAGIC && m->version == SHARED_VERSION)
		return 0;
	if (fds)
		shm_msg_close_fds(fds);
	if (n == 0)
		return -EPIPE;
	if (fds && (msg.msg_flags & MSG_CTRUNC))
		return -EMFILE;
	if (n >= (ssize_t)offsetof(struct shm_msg, type) && m->magic == SHARED_MAGIC &&
	    m->version != SHARED_VERSION)
		return -EPROTONOSUPPORT;
	return -EPROTO;
}

int shm_msg_receive(int fd, struct shm_msg *m, int *fds)
{
	return receive_parts(fd, m, NULL, fds);
}

int shm_msg_receive_bytes(int fd, struct shm_msg *m, void *bytes)
{
	return receive_parts(fd, m, bytes, NULL);
}

int *shm_msg_fd(const struct shm_msg *m, int *fds, uint32_t which)
{
	uint32_t before = m->has & (which - 1) & ~(HAS_GATE | HAS_TRAYS);

	if (!(m->has & which))
		return NULL;
	return &fds[1 + __builtin_popcount(before) + !!(before & HAS_SRQ)];
}

void shm_msg_close_fds(int *fds)
{
	int i;

	for (i = 0; i < SHM_MSG_FDS_MAX; i++)
		passed_fd_close(fds[i]);
	memset(fds, -1, SHM_MSG_FDS_MAX * sizeof(*fds));
}
