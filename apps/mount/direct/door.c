/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes come and go. A socket in the abstract namespace needs no place in the file system. The
 * process closes its end once it has the lane's memory, so that no program sees a descriptor; its
 * end is seen by a pidfd.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/mount/direct/lane.h"
#include "fd/passed_fd.h"

#define BACKLOG 64
#define GREETING_MS 10 /* for a process that has connected to say what it wants */
#define DEAD_MS 10 /* between looks at the requests of dead processes */

void direct_init(struct direct *direct)
{
	pthread_mutex_init(&direct->lock, NULL);
	atomic_store(&direct->asleep, false);
}

void direct_visit(struct direct *direct)
{
	atomic_fetch_add(&direct->visitors, 1);
	pthread_mutex_lock(&direct->lock);
	atomic_fetch_sub(&direct->visitors, 1);
}

void direct_leave(struct direct *direct)
{
	pthread_mutex_unlock(&direct->lock);
}

static int make_memory(void)
{
	int fd = memfd_create("weir-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, FILES_LANE_BYTES) ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool map_memory(struct lane *lane, int fd)
{
	lane->shared = mmap(NULL, FILES_LANE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, fd, 0);
	if (lane->shared == MAP_FAILED)
		return false;
	return !weir_memory_register(lane->mount->session, lane->shared, FILES_LANE_BYTES,
				     &lane->memory, NULL);
}

struct lane *lane_create(struct mount *m, pid_t pid, int *fd)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->mount = m;
	lane->pid = pid;
	lane->shared = MAP_FAILED;
	lane->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	*fd = make_memory();
	for (unsigned int i = 0; i < FILES_GRANTS; i++)
		lane->grant[i].lane = lane;
	if (lane->pid_fd >= 0 && *fd >= 0 && map_memory(lane, *fd) &&
	    getrandom(&lane->secret, sizeof(lane->secret), 0) == sizeof(lane->secret))
		return lane;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	lane_free(lane);
	return NULL;
}

void lane_free(struct lane *lane)
{
	weir_memory_deregister(lane->memory);
	if (lane->shared != MAP_FAILED)
		munmap(lane->shared, FILES_LANE_BYTES);
	if (lane->pid_fd >= 0)
		close(lane->pid_fd);
	free(lane);
}

/* direct.lock held. */
static void bury(struct direct *direct, unsigned int nr)
{
	struct lane *lane = direct->lane[nr];

	direct->lane[nr] = NULL;
	lane_end(lane);
	lane->next_dead = direct->dead;
	direct->dead = lane;
}

/* A process that attaches again has executed another program since. Return: its place, or -1. */
static int find_place(struct direct *direct, pid_t pid)
{
	int place = -1;

	for (unsigned int i = 0; i < DIRECT_LANES_MAX; i++) {
		if (direct->lane[i] && direct->lane[i]->pid == pid)
			bury(direct, i);
		if (!direct->lane[i])
			place = (int)i;
	}
	return place;
}

static int add_lane(struct direct *direct, struct lane *lane)
{
	int place;

	direct_visit(direct);
	place = find_place(direct, lane->pid);
	if (place >= 0) {
		lane->shared->watch =
			atomic_load(&direct->asleep) ? FILES_ASLEEP : FILES_WATCHED;
		lane->shared->cpu = direct->cpu;
		direct->lane[place] = lane;
	}
	direct_leave(direct);
	return place;
}

static void send_lane(int socket, const struct wire_files_attached *attached, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fd))];
	} control = { .head = {
			      .cmsg_len = CMSG_LEN(sizeof(fd)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
		      } };
	struct iovec iov = { (void *)attached, sizeof(*attached) };
	const struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = fd >= 0 ? &control : NULL,
		.msg_controllen = fd >= 0 ? sizeof(control) : 0,
	};

	if (fd >= 0)
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	(void)!sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The process that connected, or 0 if this PID namespace does not show it. */
static pid_t peer_of(int socket)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) ? 0 : peer.pid;
}

static void admit(struct mount *m, int socket)
{
	struct wire_files_attached attached = { .version = FILES_VERSION };
	struct lane *lane = NULL;
	pid_t pid = peer_of(socket);
	int fd = -1, place = -1;

	if (pid > 0)
		lane = lane_create(m, pid, &fd);
	if (lane)
		place = add_lane(&m->direct, lane);
	if (place >= 0) {
		attached.lane = (uint32_t)place;
		attached.secret = lane->secret;
		send_lane(socket, &attached, fd);
	} else if (lane) {
		lane_free(lane);
	}
	if (fd >= 0)
		close(fd);
}

static void answer(struct mount *m)
{
	const struct timeval patience = { .tv_usec = GREETING_MS * 1000 };
	int socket = passed_fd_accept(m->direct.listener, SOCK_CLOEXEC);
	struct wire_files_hello hello;

	if (socket < 0) {
		usleep(DEAD_MS * 1000); /* the caller waits until descriptors are free */
		return;
	}
	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (passed_fd_recv(socket, &hello, sizeof(hello), 0) == sizeof(hello) &&
	    hello.version == FILES_VERSION && hello.secret == m->direct.secret)
		admit(m, socket);
	passed_fd_close_socket(socket);
}

/* Return: whether some have requests in flight still. */
static bool clear_dead(struct direct *direct)
{
	struct lane **at = &direct->dead;

	while (*at) {
		struct lane *lane = *at;
		bool ended;

		direct_visit(direct);
		ended = lane_end(lane);
		direct_leave(direct);
		if (ended) {
			*at = lane->next_dead;
			lane_free(lane);
		} else {
			at = &lane->next_dead;
		}
	}
	return direct->dead;
}

/* Buries the processes that have ended. */
static void look_after(struct direct *direct, const struct pollfd *fds, const unsigned int *place,
		       unsigned int nr)
{
	direct_visit(direct);
	for (unsigned int i = 0; i < nr; i++)
		if (fds[i].revents && direct->lane[place[i]] &&
		    direct->lane[place[i]]->pid_fd == fds[i].fd)
			bury(direct, place[i]);
	direct_leave(direct);
}

static void *run_door(void *arg)
{
	struct mount *m = arg;
	struct direct *direct = &m->direct;
	struct pollfd fds[2 + DIRECT_LANES_MAX] = {
		{ .fd = direct->listener, .events = POLLIN },
		{ .fd = direct->end_fd, .events = POLLIN },
	};
	unsigned int place[DIRECT_LANES_MAX];

	while (!atomic_load(&direct->stops)) {
		unsigned int nr = 0;

		/* Only this thread adds and removes lanes. */
		for (unsigned int i = 0; i < DIRECT_LANES_MAX; i++)
			if (direct->lane[i]) {
				place[nr] = i;
				fds[2 + nr++] = (struct pollfd){ .fd = direct->lane[i]->pid_fd,
								 .events = POLLIN };
			}
		if (poll(fds, 2 + nr, clear_dead(direct) ? DEAD_MS : -1) <= 0)
			continue;
		if (atomic_load(&direct->stops))
			break; /* the stopping thread may hold the lock */
		look_after(direct, fds + 2, place, nr);
		if (fds[0].revents)
			answer(m);
	}
	return NULL;
}

static int listen_anywhere(struct direct *direct)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t room = sizeof(address.sun_path) - 1;
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number) ||
	    getrandom(&direct->secret, sizeof(direct->secret), 0) != sizeof(direct->secret))
		return -EIO;
	snprintf(direct->name, sizeof(direct->name), "weir-files-%016llx",
		 (unsigned long long)number);
	snprintf(address.sun_path + 1, room, "%s", direct->name);
	direct->listener = passed_fd_socket(SOCK_SEQPACKET | SOCK_CLOEXEC);
	if (direct->listener < 0)
		return -errno;
	if (bind(direct->listener, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(direct->name))) ||
	    listen(direct->listener, BACKLOG)) {
		passed_fd_close_socket(direct->listener);
		return -EIO;
	}
	return 0;
}

static int start_threads(struct mount *m)
{
	struct direct *direct = &m->direct;

	direct->end_fd = eventfd(0, EFD_CLOEXEC);
	if (direct->end_fd < 0)
		return -errno;
	if (pthread_create(&direct->door, NULL, run_door, m))
		goto close_fd;
	if (pthread_create(&direct->poller, NULL, ring_run, m))
		goto end_door;
	return 0;

end_door:
	atomic_store(&direct->stops, true);
	(void)!eventfd_write(direct->end_fd, 1);
	pthread_join(direct->door, NULL);
	atomic_store(&direct->stops, false);
close_fd:
	close(direct->end_fd);
	return -EAGAIN;
}

/* direct.lock held. */
static int open_door(struct mount *m)
{
	int rc = listen_anywhere(&m->direct);

	if (rc)
		return rc;
	rc = start_threads(m);
	if (rc)
		passed_fd_close_socket(m->direct.listener);
	m->direct.is_open = !rc;
	return rc;
}

/* Without a second CPU, a poller that spins would hold up the program that it serves. */
static bool has_door(const struct mount *m)
{
	return !m->is_pool && !m->sealed && CPU_COUNT(&m->caller.all) > 1;
}

int direct_hello(struct mount *m, struct wire_files_hello *hello)
{
	int rc = 0;

	if (!has_door(m))
		return -ENOTTY;
	direct_visit(&m->direct);
	if (!m->direct.is_open)
		rc = open_door(m);
	if (!rc) {
		*hello = (struct wire_files_hello){
			.version = FILES_VERSION,
			.pid = (uint32_t)getpid(),
			.secret = m->direct.secret,
		};
		memcpy(hello->name, m->direct.name, sizeof(hello->name));
	}
	direct_leave(&m->direct);
	return rc;
}

void direct_stop(struct mount *m)
{
	struct direct *direct = &m->direct;

	if (!direct->is_open)
		return;
	atomic_store(&direct->stops, true);
	(void)!eventfd_write(direct->end_fd, 1);
	ring_wake(direct);
	pthread_join(direct->door, NULL);
	pthread_join(direct->poller, NULL);
	for (unsigned int i = 0; i < DIRECT_LANES_MAX; i++)
		if (direct->lane[i])
			bury(direct, i);
}

void direct_close(struct mount *m)
{
	if (!m->direct.is_open)
		return;
	clear_dead(&m->direct);
	close(m->direct.end_fd);
	passed_fd_close_socket(m->direct.listener);
}
