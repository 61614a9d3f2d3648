// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A process claims a slot by binding an abstract socket. The kernel ensures that a slot has one
 * owner, and frees the slot when the process ends for any reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "softnic/control/fault.h"
#include "softnic/control/squatter.h"
#include "softnic/loop/fork.h"
#include "gid.h"
#include "mcast.h"
#include "softnic/loop/loop.h"
#include "nic.h"
#include "softnic/shm/peer.h"
#include "softnic/qp/qp.h"
#include "softnic/shm/server.h"
#include "softnic/shm/tracer.h"

struct softnic_nic nic = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.released = PTHREAD_COND_INITIALIZER,
};

static uint32_t random_u32(void)
{
	uint32_t r = 0;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = softnic_loop_now_ns() ^ getpid();
	return r;
}

/* Once in a process: a program may try each of its devices. */
static void warn_of_squatter(void)
{
	static bool is_told;
	char holder[64] = "a process that does not answer";
	uid_t uid;

	if (__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED) || !softnic_squatter_find(&uid))
		return;
	if (uid != SQUATTER_UNKNOWN)
		snprintf(holder, sizeof(holder), "another user's process (user %u)",
			 (unsigned int)uid);
	fprintf(stderr,
		"softnic: no device: %s holds softnic's names; as root, find and end the process: "
		"ss -xlp | grep @weir-softnic-%u-\n",
		holder, (unsigned int)geteuid());
}

static int claim_slot(uint32_t *slot, int *fd)
{
	uint32_t first = random_u32(), i;
	struct sockaddr_un addr;
	socklen_t len;
	int rc;

	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	passed_fd_refuse(*fd);
	for (i = 0; i < SOFTNIC_SLOTS - 1; i++) {
		*slot = 1 + (first + i) % (SOFTNIC_SLOTS - 1);
		len = shared_address(*slot, &addr);
		if (!bind(*fd, (struct sockaddr *)&addr, len)) {
			if (!listen(*fd, SOFTNIC_SLOTS))
				return 0;
			break;
		}
		if (errno != EADDRINUSE)
			break;
	}
	rc = i == SOFTNIC_SLOTS - 1 ? -EUSERS : -errno;
	close(*fd);
	if (rc == -EUSERS)
		warn_of_squatter();
	return rc;
}

/* Peers take no empty file. */
static int create_atomics(void)
{
	void *map;
	int rc = shared_create("softnic-atomics", 1, true, &nic.atomics_fd, &map);

	if (!rc)
		munmap(map, 1);
	return rc;
}

static int create_segments(void)
{
	void *map;
	int rc;

	rc = shared_create("softnic-pub", sizeof(*nic.pub), true, &nic.pub_fd, &map);
	if (rc)
		return rc;
	nic.pub = map;
	rc = shared_create("softnic-bell", sizeof(*nic.doorbell_page), false, &nic.doorbell_fd,
			   &map);
	if (rc)
		goto pub;
	nic.doorbell_page = map;
	rc = create_atomics();
	if (!rc)
		return 0;
	munmap(nic.doorbell_page, sizeof(*nic.doorbell_page));
	close(nic.doorbell_fd);
pub:
	munmap(nic.pub, sizeof(*nic.pub));
	close(nic.pub_fd);
	return rc;
}

static void close_segments(void)
{
	close(nic.atomics_fd);
	close(nic.doorbell_fd);
	close(nic.pub_fd);
}

static void destroy_segments(void)
{
	munmap(nic.doorbell_page, sizeof(*nic.doorbell_page));
	munmap(nic.pub, sizeof(*nic.pub));
	close_segments();
}

void nic_allow_attach(void)
{
	if (!nic.is_admitted && tracer_yama_scope() == 1)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	nic.is_admitted = true;
}

static struct shared_life own_life; /* never seen as ended, as long as we look */

void nic_note_pages_on_demand(void)
{
	store_relaxed(&nic.pub->life.pages_on_demand, 1);
	store_relaxed(&own_life.pages_on_demand, 1);
}

static void prepare_proof(void)
{
	nic.mem_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	nic.nonce = (uint64_t)random_u32() << 32 | random_u32();
	nic.pub->proof_addr = (uintptr_t)&nic.nonce;
	nic.pub->proof = nic.nonce;
	nic.self = (struct copy_target){
		.pid = getpid(),
		.mem_fd = nic.mem_fd,
		.life = &own_life,
	};
	copy_probe(&nic.self, nic.pub->proof_addr, nic.nonce);
}

/* Under nic.lock. */
static int open_locked(void)
{
	int rc;

	memset(nic.qps, 0, sizeof(nic.qps));
	nic.lives = nic.is_admitted = false;
	nic.next_qp = random_u32() % NIC_QPS;
	rc = create_segments();
	if (rc)
		return rc;
	prepare_proof();
	rc = claim_slot(&nic.slot, &nic.listen_fd);
	if (rc)
		goto segments;
	nic.pub->magic = SHARED_MAGIC;
	nic.pub->version = SHARED_VERSION;
	nic.pub->pid = getpid();
	nic.pub->slot = nic.slot;
	prctl(PR_GET_NAME, nic.pub->comm);
	fault_open();
	rc = softnic_loop_add(nic.listen_fd, EPOLLIN, server_accept, NULL);
	if (rc)
		goto slot;
	gid_watch();
	store_release(&nic.is_open, true); /* a thread that loads true sees nic.pub */
	return 0;

slot:
	close(nic.listen_fd);
	nic.slot = 0;
segments:
	if (nic.mem_fd >= 0)
		close(nic.mem_fd);
	destroy_segments();
	return rc;
}

/*
 * In the child of a fork: the segments are not mapped, and through the open descriptors the child
 * could write to its parent.
 */
static void reset_nic(void)
{
	mcast_reset();
	peer_reset();
	server_reset();
	if (nic.is_open) {
		close(nic.listen_fd);
		close_segments();
		if (nic.mem_fd >= 0)
			close(nic.mem_fd);
	}
	nic.is_open = false;
	nic.slot = 0;
	pthread_cond_init(&nic.released, NULL);
}

const struct fork_part nic_fork = { &nic.lock, reset_nic };

int nic_open(void)
{
	int rc = softnic_loop_start();

	if (rc)
		return rc;
	pthread_mutex_lock(&nic.lock);
	if (!nic.is_open)
		rc = open_locked();
	pthread_mutex_unlock(&nic.lock);
	return rc;
}

uint32_t softnic_nic_slot(void)
{
	return nic.slot;
}

/* A number is reused only after all others. */
int nic_add_qp(struct qp *qp, uint32_t *qpn)
{
	uint32_t i, index;

	for (i = 0; i < NIC_QPS; i++) {
		index = nic.next_qp++ % NIC_QPS;
		*qpn = nic.slot << SOFTNIC_QP_INDEX_BITS | index;
		if (nic.qps[index] || *qpn == MCAST_QPN)
			continue;
		nic.qps[index] = qp;
		return 0;
	}
	return -ENOMEM;
}

void nic_del_qp(struct qp *qp, uint32_t qpn)
{
	pthread_mutex_lock(&nic.lock);
	nic.qps[qpn % NIC_QPS] = NULL;
	while (qp->users)
		pthread_cond_wait(&nic.released, &nic.lock);
	pthread_mutex_unlock(&nic.lock);
}

struct qp *nic_qp(uint32_t qpn)
{
	return qpn >> SOFTNIC_QP_INDEX_BITS == nic.slot ? nic.qps[qpn % NIC_QPS] : NULL;
}

struct qp *nic_next_qp(struct qp *prev)
{
	uint32_t at = prev ? prev->ibv.qp_num % NIC_QPS + 1 : 0;
	struct qp *qp = NULL;

	pthread_mutex_lock(&nic.lock);
	if (prev && !--prev->users)
		pthread_cond_broadcast(&nic.released);
	while (at < NIC_QPS && !qp)
		qp = nic.qps[at++];
	if (qp)
		qp->users++;
	pthread_mutex_unlock(&nic.lock);
	return qp;
}
