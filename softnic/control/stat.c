// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reading other processes' counters: connect to every slot, and map the counters found. All
 * processes are asked before the first answer is awaited, so that one process without an answer
 * costs half a second in all, and a stopped process nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "softnic/control/visit.h"

enum { ANSWER_MS_MAX = 500, ASKED_MAX = 64 };

/*
 * struct query - a query of all processes
 * @visit, @arg: for each process that has answered
 * @silent: processes that have not answered
 * @asked: connections to those that still may; @nr_asked are in use
 * @pid: the processes at their other ends
 */
struct query {
	softnic_visitor *visit;
	void *arg;
	size_t silent;
	struct pollfd asked[ASKED_MAX];
	pid_t pid[ASKED_MAX];
	unsigned int nr_asked;
};

static void visit_pub(const struct query *q, pid_t pid, int fd)
{
	size_t size;
	void *map;

	if (shared_map(fd, SHARED_PUB_BYTES_MIN, PROT_READ, &map, &size))
		return;
	q->visit(q->arg, pid, fd, map);
	munmap(map, size);
}

/* By a signal or by a debugger. */
static bool is_stopped(pid_t pid)
{
	char path[32], text[128], *state;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	state = strrchr(text, ')'); /* the name may have brackets, too */
	return state && state[1] && (state[2] == 'T' || state[2] == 't');
}

/* Takes over @fd. */
static void ask(struct query *q, int fd)
{
	struct shm_msg hello = { .type = MSG_HELLO };
	pid_t pid;

	if (!shared_is_ours(fd, &pid)) {
		passed_fd_close_socket(fd);
	} else if (is_stopped(pid) || shm_msg_send(fd, &hello, NULL, 0)) {
		q->silent++;
		passed_fd_close_socket(fd);
	} else {
		q->asked[q->nr_asked] = (struct pollfd){ .fd = fd, .events = POLLIN };
		q->pid[q->nr_asked++] = pid;
	}
}

/* The answer that has come. */
static void take_answer(struct query *q, unsigned int i)
{
	int fds[SHM_MSG_FDS_MAX];
	struct shm_msg m;

	if (shm_msg_receive(q->asked[i].fd, &m, fds))
		return; /* the process ends */
	if (m.type == MSG_WELCOME)
		visit_pub(q, q->pid[i], fds[0]);
	shm_msg_close_fds(fds);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until all have answered, or time is up. */
static void await_answers(struct query *q)
{
	int64_t left, deadline = now_ms() + ANSWER_MS_MAX;
	unsigned int pending = q->nr_asked;

	while (pending && (left = deadline - now_ms()) >= 0 &&
	       poll(q->asked, q->nr_asked, (int)left) > 0) {
		for (unsigned int i = 0; i < q->nr_asked; i++) {
			if (q->asked[i].fd < 0 || !q->asked[i].revents)
				continue;
			take_answer(q, i);
			passed_fd_close_socket(q->asked[i].fd);
			q->asked[i].fd = -1; /* which poll() passes over */
			pending--;
		}
	}
	for (unsigned int i = 0; i < q->nr_asked; i++)
		if (q->asked[i].fd >= 0)
			passed_fd_close_socket(q->asked[i].fd);
	q->silent += pending;
	q->nr_asked = 0;
}

static int ask_all(struct query *q)
{
	struct sockaddr_un addr;
	socklen_t len;
	int fd = -1;

	for (uint32_t slot = 1; slot < SOFTNIC_SLOTS; slot++) {
		if (fd < 0 && passed_fd_is_full())
			return -EMFILE;
		if (fd < 0)
			fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return -errno;
		len = shared_address(slot, &addr);
		if (connect(fd, (struct sockaddr *)&addr, len) < 0) {
			/* EAGAIN: nobody has accepted earlier questions; else the slot is free. */
			q->silent += errno == EAGAIN;
			continue;
		}
		ask(q, fd);
		fd = -1;
		if (q->nr_asked == ASKED_MAX)
			await_answers(q);
	}
	if (fd >= 0)
		passed_fd_close_socket(fd);
	return 0;
}

int softnic_stat_visit(softnic_visitor *visit, void *arg, size_t *silent)
{
	struct query q = { .visit = visit, .arg = arg };
	int rc = ask_all(&q);

	await_answers(&q);
	*silent = q.silent;
	return rc;
}

/* Processes, as many as there is room for. */
struct process_list {
	struct softnic_process *out;
	size_t room, count;
};

static void add_process(void *arg, pid_t pid, int fd, const struct shared_pub *pub)
{
	struct process_list *all = arg;
	struct softnic_process *p = &all->out[all->count];

	(void)fd;
	if (all->count == all->room)
		return;
	all->count++;
	p->pid = pid;
	memcpy(p->comm, pub->comm, sizeof(p->comm));
	p->comm[sizeof(p->comm) - 1] = '\0';
	p->counters = pub->counters;
	p->nr_peers = load_acquire(&pub->nr_peers);
	if (p->nr_peers > SOFTNIC_PEERS_MAX)
		p->nr_peers = 0;
	memcpy(p->peers, pub->peers, p->nr_peers * sizeof(p->peers[0]));
}

int softnic_stat_answers(struct softnic_process *out, size_t room, size_t *count, size_t *silent)
{
	struct process_list all = { .out = out, .room = room };
	int rc = softnic_stat_visit(add_process, &all, silent);

	*count = all.count;
	return rc;
}

int softnic_stat(struct softnic_process *out, size_t room, size_t *count)
{
	size_t silent;

	return softnic_stat_answers(out, room, count, &silent);
}
