// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reading other processes' counters: connect to every slot, and map the counters found.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/shm/shared.h"

enum { ANSWER_MS_MAX = 500 };

static int read_pub(int fd, struct softnic_process *p)
{
	const struct shared_pub *pub;
	size_t size;
	void *map;
	int rc;

	rc = shared_map(fd, sizeof(*pub), PROT_READ, &map, &size);
	if (rc)
		return rc;
	pub = map;
	memcpy(p->comm, pub->comm, sizeof(p->comm));
	p->comm[sizeof(p->comm) - 1] = '\0';
	p->counters = pub->counters;
	p->nr_peers = load_acquire(&pub->nr_peers);
	if (p->nr_peers > SOFTNIC_PEERS_MAX)
		p->nr_peers = 0;
	memcpy(p->peers, pub->peers, p->nr_peers * sizeof(p->peers[0]));
	munmap(map, size);
	return 0;
}

static int ask_process(int fd, struct softnic_process *p)
{
	struct shm_msg hello = { .type = MSG_HELLO }, m;
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	int fds[SHM_MSG_FDS_MAX], rc;

	if (!shared_is_ours(fd, &p->pid))
		return -EPERM;
	rc = shm_msg_send(fd, &hello, NULL, 0);
	if (rc)
		return rc;
	if (poll(&answer, 1, ANSWER_MS_MAX) != 1)
		return -ETIMEDOUT;
	rc = shm_msg_receive(fd, &m, fds);
	if (rc)
		return rc;
	rc = m.type == MSG_WELCOME ? read_pub(fds[0], p) : -EPROTO;
	shm_msg_close_fds(fds);
	return rc;
}

int softnic_stat(struct softnic_process *out, size_t room, size_t *count)
{
	struct sockaddr_un addr;
	socklen_t len;
	uint32_t slot;
	size_t n = 0;
	int fd = -1;

	for (slot = 1; slot < SOFTNIC_SLOTS && n < room; slot++) {
		if (fd < 0)
			fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return -errno;
		len = shared_address(slot, &addr);
		if (connect(fd, (struct sockaddr *)&addr, len) < 0)
			continue; /* a free slot: the socket can try the next */
		if (!ask_process(fd, &out[n]))
			n++;
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		close(fd);
	*count = n;
	return 0;
}
