/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "preload/files/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16, asm-generic/socket.h */
#endif

#define FUSE_SUPER_MAGIC 0x65735546
#define OTHERS_MAX 8u /* file systems known not to be weir's */
#define ANSWER_MS 200 /* of the mount to a process that attaches */
#define PIECES 4u /* of one call, in flight */
#define SPINS_PER_YIELD 128u
#define SPINS_PER_LOOK 1024u
#define POSTED_NS 100000u /* to wait for a poller that does not run before asking the kernel */
#define PATIENCE_NS 1000000000u /* the same if all that can goes this way */
#define TAKEN_NS 50000u /* to spin for a request in flight, and then to sleep */
#define SLEEP_NS 200000000u /* between looks whether the mount lives */
/* All calls are the kernel's for a while after the poller got no processor. */
#define AWAY_NS_MIN 200000u
#define AWAY_NS_MAX 20000000u

enum lane_state { LANE_UNUSED, LANE_BEGUN, LANE_READY, LANE_NONE };

/*
 * @state: an enum lane_state; LANE_READY is stored last. Threads may lose changes of @away_ns,
 * which costs speed alone.
 */
struct mount_lane {
	uint32_t state;
	uint32_t number;
	dev_t dev;
	uint64_t secret;
	struct wire_files_lane *shared;
	uint64_t away_ns, back_ns; /* left to the kernel for so long, and until then; or 0 */
	struct {
		ino_t ino;
		unsigned int access;
	} grant[FILES_GRANTS];
};

static struct mount_lane lanes[LANES_MAX];
static bool is_always;
static dev_t others[OTHERS_MAX];
static uint32_t nr_others;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct wire_files_lane *shared_of(unsigned int nr)
{
	return lanes[nr].shared;
}

static char *data_of(struct wire_files_lane *shared, unsigned int slot)
{
	return (char *)shared + FILES_DATA + (size_t)slot * FILES_SLOT_BYTES;
}

/* The mount is gone: all is the kernel's, which has an error for it. */
static void give_up(unsigned int nr)
{
	__atomic_store_n(&lanes[nr].state, LANE_NONE, __ATOMIC_RELEASE);
}

static bool is_ready(unsigned int nr)
{
	return __atomic_load_n(&lanes[nr].state, __ATOMIC_ACQUIRE) == LANE_READY;
}

/* Attaching. */

static int receive_memory(int socket, struct wire_files_attached *attached)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { attached, sizeof(*attached) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd answer = { .fd = socket, .events = POLLIN };
	const struct cmsghdr *head;
	int fd = -1;

	if (poll(&answer, 1, ANSWER_MS) != 1 ||
	    recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(*attached))
		return -1;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* In another network namespace the name may be somebody else's. */
static bool is_the_mount(int socket, const struct wire_files_hello *hello)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       (uint32_t)peer.pid == hello->pid;
}

/*
 * A stranger's descriptor could make close() wait. Kernels before 6.16 cannot refuse, and there the
 * program that opens the file waits.
 */
static void allow_descriptors(int fd, int are_allowed)
{
	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &are_allowed, sizeof(are_allowed));
}

/* Waits for nobody: a socket whose queue is full refuses. */
static int connect_to(const struct wire_files_hello *hello)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = strnlen(hello->name, sizeof(hello->name));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	allow_descriptors(fd, 0);
	memcpy(address.sun_path + 1, hello->name, length);
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) ||
	    !is_the_mount(fd, hello))
		goto fail;
	allow_descriptors(fd, 1);
	if (send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) == sizeof(*hello))
		return fd;
fail:
	close(fd);
	return -1;
}

/* No access beyond the memory's end can kill this process. */
static bool is_whole(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       st.st_size == FILES_LANE_BYTES;
}

static bool attach(struct mount_lane *lane, const struct wire_files_hello *hello)
{
	struct wire_files_attached attached;
	int socket = connect_to(hello), fd;
	void *shared = MAP_FAILED;

	if (socket < 0)
		return false;
	fd = receive_memory(socket, &attached);
	close(socket);
	if (fd < 0)
		return false;
	if (is_whole(fd))
		shared = mmap(NULL, FILES_LANE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		return false;
	lane->number = attached.lane;
	lane->secret = attached.secret;
	lane->shared = shared;
	return true;
}

static bool is_other(dev_t dev)
{
	uint32_t nr = __atomic_load_n(&nr_others, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr && i < OTHERS_MAX; i++)
		if (__atomic_load_n(&others[i], __ATOMIC_RELAXED) == dev)
			return true;
	return false;
}

/* Two threads may lose an entry, and ask again. */
static void note_other(dev_t dev)
{
	uint32_t nr = __atomic_load_n(&nr_others, __ATOMIC_ACQUIRE);

	__atomic_store_n(&others[nr % OTHERS_MAX], dev, __ATOMIC_RELAXED);
	__atomic_store_n(&nr_others, nr + 1, __ATOMIC_RELEASE);
}

static bool says_hello(int fd, struct wire_files_hello *hello)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == FUSE_SUPER_MAGIC &&
	       !ioctl(fd, FILES_HELLO, hello) && hello->version == FILES_VERSION;
}

/* Another thread that begins meanwhile finds no lane, and uses the kernel. */
static int add_lane(dev_t dev, const struct wire_files_hello *hello)
{
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		uint32_t unused = LANE_UNUSED;

		if (!__atomic_compare_exchange_n(&lanes[i].state, &unused, LANE_BEGUN, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		lanes[i].dev = dev;
		__atomic_store_n(&lanes[i].state,
				 attach(&lanes[i], hello) ? LANE_READY : LANE_NONE,
				 __ATOMIC_RELEASE);
		return is_ready(i) ? (int)i : -1;
	}
	return -1;
}

int lane_find(int fd, dev_t dev)
{
	struct wire_files_hello hello;

	for (unsigned int i = 0; i < LANES_MAX; i++) {
		uint32_t state = __atomic_load_n(&lanes[i].state, __ATOMIC_ACQUIRE);

		if (state == LANE_BEGUN)
			return -1;
		if (state != LANE_UNUSED && lanes[i].dev == dev)
			return state == LANE_READY ? (int)i : -1;
	}
	if (is_other(dev))
		return -1;
	if (says_hello(fd, &hello))
		return add_lane(dev, &hello);
	note_other(dev);
	return -1;
}

/* Grants. */

uint32_t lane_closes(unsigned int lane, unsigned int grant)
{
	if (!is_ready(lane))
		return UINT32_MAX;
	return __atomic_load_n(&shared_of(lane)->grant[grant].closes, __ATOMIC_ACQUIRE);
}

bool lane_is_of(const struct grant *grant, dev_t dev, ino_t ino)
{
	const struct mount_lane *lane = &lanes[grant->lane];

	return lane->dev == dev && lane->grant[grant->nr].ino == ino;
}

/* Whether a grant of this file is there already: another descriptor's. */
static bool has_grant(struct mount_lane *lane, ino_t ino, unsigned int access, struct grant *grant)
{
	for (unsigned int i = 0; i < FILES_GRANTS; i++) {
		grant->nr = i;
		grant->closes = lane_closes(grant->lane, i);
		if (__atomic_load_n(&lane->shared->grant[i].ino, __ATOMIC_ACQUIRE) == ino &&
		    lane->grant[i].ino == ino && (lane->grant[i].access & access) == access)
			return true;
	}
	return false;
}

bool lane_ask(int fd, ino_t ino, unsigned int access, struct grant *grant)
{
	struct mount_lane *lane = &lanes[grant->lane];
	struct wire_files_ask ask = { .lane = lane->number, .secret = lane->secret };

	if (!is_ready(grant->lane))
		return false;
	if (has_grant(lane, ino, access, grant))
		return true;
	if (ioctl(fd, FILES_ASK, &ask) || ask.ino != ino || ask.grant >= FILES_GRANTS)
		return false;
	lane->grant[ask.grant].ino = ino;
	lane->grant[ask.grant].access = ask.access;
	grant->nr = ask.grant;
	grant->closes = ask.closes;
	return true;
}

/* Requests. */

static int claim_slot(struct wire_files_lane *shared)
{
	for (unsigned int i = 0; i < FILES_SLOTS; i++) {
		uint32_t state = FILES_FREE;

		if (__atomic_load_n(&shared->slot[i].state, __ATOMIC_RELAXED) == FILES_FREE &&
		    __atomic_compare_exchange_n(&shared->slot[i].state, &state, FILES_FILLING,
						false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return (int)i;
	}
	return -1;
}

static void free_slot(struct wire_files_slot *slot)
{
	__atomic_store_n(&slot->state, FILES_FREE, __ATOMIC_RELEASE);
}

/* Takes a request back that the mount has not seen. */
static bool take_back(struct wire_files_slot *slot)
{
	uint32_t state = FILES_POSTED;

	if (!__atomic_compare_exchange_n(&slot->state, &state, FILES_FILLING, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	slot->result = -EBUSY;
	return true;
}

static void copy(struct bytes *bytes, char *data, size_t length, bool out)
{
	while (length) {
		char *at = (char *)bytes->iov->iov_base + bytes->at;
		size_t here = bytes->iov->iov_len - bytes->at;

		if (here > length)
			here = length;
		if (out)
			memcpy(at, data, here);
		else
			memcpy(data, at, here);
		data += here;
		length -= here;
		bytes->at += here;
		if (bytes->at == bytes->iov->iov_len) {
			bytes->iov++;
			bytes->at = 0;
		}
	}
}

/* The poller has not run for POSTED_NS: the processors are busy, and the kernel is faster. */
static void stay_away(struct mount_lane *lane)
{
	uint64_t away_ns = __atomic_load_n(&lane->away_ns, __ATOMIC_RELAXED);

	away_ns = away_ns ? 2 * away_ns : AWAY_NS_MIN;
	away_ns = away_ns < AWAY_NS_MAX ? away_ns : AWAY_NS_MAX;
	__atomic_store_n(&lane->away_ns, away_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&lane->back_ns, now_ns() + away_ns, __ATOMIC_RELAXED);
}

static void come_back(struct mount_lane *lane)
{
	if (__atomic_load_n(&lane->away_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&lane->away_ns, 0, __ATOMIC_RELAXED);
}

static bool is_away(struct mount_lane *lane)
{
	return __atomic_load_n(&lane->away_ns, __ATOMIC_RELAXED) &&
	       now_ns() < __atomic_load_n(&lane->back_ns, __ATOMIC_RELAXED);
}

/* Return: the slot; -1: none is free; or the poller sleeps, and the slot is free again. */
static int post(const struct grant *grant, enum files_op op, struct bytes *bytes, size_t length,
		off_t offset)
{
	struct wire_files_lane *shared = shared_of(grant->lane);
	uint32_t watch = __atomic_load_n(&shared->watch, __ATOMIC_RELAXED);
	struct wire_files_slot *slot;
	int nr;

	if (watch == FILES_ENDED)
		give_up(grant->lane);
	if (!is_always && (watch == FILES_ASLEEP || is_away(&lanes[grant->lane])))
		return -1;
	nr = watch != FILES_ENDED ? claim_slot(shared) : -1;
	if (nr < 0)
		return -1;
	slot = &shared->slot[nr];
	slot->op = op;
	slot->grant = grant->nr;
	slot->closes = grant->closes;
	slot->offset = (uint64_t)offset;
	slot->length = (uint32_t)length;
	slot->cpu = (uint32_t)sched_getcpu();
	if (op == FILES_WRITE)
		copy(bytes, data_of(shared, (unsigned int)nr), length, false);
	__atomic_store_n(&slot->state, FILES_POSTED, __ATOMIC_RELEASE);
	__atomic_fetch_or(&shared->posted, 1u << nr, __ATOMIC_SEQ_CST);
	watch = __atomic_load_n(&shared->watch, __ATOMIC_SEQ_CST);
	if (watch == FILES_ASLEEP && is_always && !ioctl(grant->fd, FILES_WAKE))
		return nr;
	if (watch == FILES_WATCHED || !take_back(slot))
		return nr;
	free_slot(slot);
	return -1;
}

/*
 * Sleeps until the mount wakes us, or SLEEP_NS have passed. Return: false: the mount is gone. Its
 * last transfer may still write to the slot, which is therefore never used again.
 */
static bool sleep_once(struct wire_files_slot *slot, int fd)
{
	const struct timespec limit = { .tv_nsec = SLEEP_NS };
	uint32_t state = FILES_TAKEN;
	struct wire_files_hello hello;

	__atomic_compare_exchange_n(&slot->state, &state, FILES_AWAITED, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != FILES_AWAITED)
		return true;
	if (!syscall(SYS_futex, &slot->state, FUTEX_WAIT, FILES_AWAITED, &limit, NULL, 0) ||
	    errno != ETIMEDOUT)
		return true;
	return !ioctl(fd, FILES_HELLO, &hello) ||
	       __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == FILES_DONE;
}

/* The poller cannot run while this thread spins on its processor. */
static void make_way(struct wire_files_lane *shared)
{
	if (__atomic_load_n(&shared->cpu, __ATOMIC_RELAXED) == (uint32_t)sched_getcpu())
		sched_yield();
}

/* Return: false: the mount is gone. */
static bool await(struct wire_files_lane *shared, struct wire_files_slot *slot, int fd)
{
	uint64_t begun_ns = 0;

	for (unsigned int spins = 1;; spins++) {
		uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
		uint64_t waited_ns;

		if (state == FILES_DONE)
			return true;
		files_spin();
		if (state == FILES_POSTED && !(spins % SPINS_PER_YIELD))
			make_way(shared);
		if (spins % SPINS_PER_LOOK)
			continue;
		if (!begun_ns)
			begun_ns = now_ns();
		waited_ns = now_ns() - begun_ns;
		if (state == FILES_POSTED && waited_ns > (is_always ? PATIENCE_NS : POSTED_NS) &&
		    take_back(slot))
			return true;
		if (state != FILES_POSTED && waited_ns > TAKEN_NS && !sleep_once(slot, fd))
			return false;
	}
}

/* The pieces of one read, in order: a ring of slots. */
struct reading {
	const struct grant *grant;
	struct bytes bytes; /* where the next piece awaited goes */
	size_t posted, left; /* bytes posted; bytes not posted yet */
	off_t offset;
	unsigned int slot[PIECES];
	uint32_t length[PIECES];
	unsigned int first, nr; /* in flight */
};

static bool post_next(struct reading *r)
{
	const size_t length = r->left < FILES_SLOT_BYTES ? r->left : FILES_SLOT_BYTES;
	const unsigned int at = (r->first + r->nr) % PIECES;
	int slot = post(r->grant, FILES_READ, NULL, length, r->offset + (off_t)r->posted);

	if (slot < 0)
		return false;
	r->slot[at] = (unsigned int)slot;
	r->length[at] = (uint32_t)length;
	r->nr++;
	r->posted += length;
	r->left -= length;
	return true;
}

/* Return: the result of the slot's request, which @length bounds. */
static int await_result(const struct grant *grant, struct wire_files_slot *slot, uint32_t length)
{
	int result;

	if (!await(shared_of(grant->lane), slot, grant->fd)) {
		give_up(grant->lane);
		return -EBUSY;
	}
	result = __atomic_load_n(&slot->result, __ATOMIC_RELAXED);
	if (result == -EBUSY)
		stay_away(&lanes[grant->lane]);
	else
		come_back(&lanes[grant->lane]);
	return result > (int)length ? -EIO : result;
}

/* @wanted: an earlier piece has not ended the read. Return: bytes read, or a negative errno. */
static int await_first(struct reading *r, bool wanted)
{
	struct wire_files_lane *shared = shared_of(r->grant->lane);
	const unsigned int nr = r->slot[r->first];
	int result = await_result(r->grant, &shared->slot[nr], r->length[r->first]);

	r->first = (r->first + 1) % PIECES;
	r->nr--;
	if (wanted && result > 0)
		copy(&r->bytes, data_of(shared, nr), (size_t)result, true);
	if (is_ready(r->grant->lane))
		free_slot(&shared->slot[nr]);
	return result;
}

static enum lane_use use_of(int result)
{
	switch (result) {
	case -ESTALE:
		return LANE_STALE;
	case -EBUSY:
		return LANE_KERNEL;
	default:
		return LANE_REFUSED;
	}
}

enum lane_use lane_read(const struct grant *grant, struct bytes bytes, size_t length, off_t offset,
			size_t *moved)
{
	struct reading r = {
		.grant = grant,
		.bytes = bytes,
		.left = length,
		.offset = offset,
	};
	enum lane_use use = LANE_MOVED;
	bool ends = false;

	*moved = 0;
	do {
		uint32_t asked;
		int result;

		while (!ends && r.left && r.nr < PIECES && post_next(&r))
			;
		if (!r.nr)
			return use == LANE_MOVED && r.left && !ends ? LANE_KERNEL : use;
		asked = r.length[r.first];
		result = await_first(&r, !ends);
		if (ends)
			continue;
		if (result < 0)
			use = use_of(result);
		else
			*moved += (size_t)result;
		ends = result < (int)asked;
	} while (r.nr || (r.left && !ends));
	return use;
}

enum lane_use lane_write(const struct grant *grant, struct bytes bytes, size_t length, off_t offset,
			 size_t *moved, int *error)
{
	struct wire_files_slot *slot;
	int result, nr;

	*moved = 0;
	*error = 0;
	if (length > FILES_SLOT_BYTES)
		return LANE_KERNEL;
	nr = post(grant, FILES_WRITE, &bytes, length, offset);
	if (nr < 0)
		return LANE_KERNEL;
	slot = &shared_of(grant->lane)->slot[nr];
	result = await_result(grant, slot, (uint32_t)length);
	if (is_ready(grant->lane))
		free_slot(slot);
	if (result == -EIO)
		*error = EIO;
	else if (result < 0)
		return use_of(result);
	else
		*moved = (size_t)result;
	return LANE_MOVED;
}

void lane_mapped(int fd, dev_t dev)
{
	struct statfs fs;

	if (is_other(dev))
		return;
	if (fstatfs(fd, &fs) || fs.f_type != FUSE_SUPER_MAGIC || ioctl(fd, FILES_MAPPED))
		note_other(dev);
}

void lanes_use_always(void)
{
	is_always = true;
}

void lanes_forget(void)
{
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		if (lanes[i].shared)
			munmap(lanes[i].shared, FILES_LANE_BYTES);
		lanes[i] = (struct mount_lane){ .state = LANE_UNUSED };
	}
}
