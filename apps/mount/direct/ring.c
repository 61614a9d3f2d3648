/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests from the lanes. The poller spins while there are any, because a program that waits
 * 2 us for its bytes cannot wait 35 us for a thread to wake. After IDLE_NS without a request it
 * sleeps, and programs use the kernel's calls, which wake it again.
 *
 * A transfer is that of io.c, so truncations, recalls, holes and other clients are as for the
 * kernel's requests. What io.c cannot know is the kernel's: pages that the kernel keeps. They are
 * dropped after a write, before the program hears of its end.
 *
 * The scheduler wakes the poller where the program was a moment ago, and then the two share a
 * processor while another is idle: each spins, and waits for the other's turn to end. So a request
 * tells where the program runs, and the poller leaves that processor. A program whose request is
 * not seen yields, if the poller was last on its processor.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "apps/mount/direct/lane.h"
#include "apps/mount/fuse/operation_span.h"
#include "lib/base/futex.h"

#define IDLE_NS 300000u /* until the poller sleeps */
#define KNOCK_NS 5000000u /* between calls that look like a row */
#define KNOCKS_MIN 3u /* in a row, to wake the poller, ... */
#define KNOCKS_MAX 64u /* ... and if it woke for nothing each time */
#define SPINS_PER_YIELD 64u
#define MOVE_NS 1000000u /* between moves to another processor: programs may be on all */

/* The lane may be gone on return. */
static void end_request(struct lane_request *r, int result)
{
	struct lane *lane = r->lane;
	struct mount *m = lane->mount;
	struct direct_grant *grant = r->grant;
	struct wire_files_slot *slot = r->slot;

	atomic_store(&r->busy, false);
	__atomic_store_n(&slot->result, result, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&slot->state, FILES_DONE, __ATOMIC_ACQ_REL) == FILES_AWAITED)
		weir_futex_wake_shared(&slot->state);
	if (grant)
		atomic_fetch_sub(&grant->busy, 1);
	atomic_fetch_sub(&lane->busy, 1);
	mount_end(m);
}

struct written {
	struct lane_request *request;
	int result;
};

static void drop_pages(struct deferred_work *work)
{
	struct written written;
	struct mount *m = work->mount;
	struct inode *inode;

	memcpy(&written, work->arg, sizeof(written));
	inode = written.request->io.inode;
	if (atomic_load(&m->loop.running))
		fuse_lowlevel_notify_inval_inode(m->fuse, inode->ino, 0, 0);
	pthread_mutex_lock(&inode->lock);
	inode->page_drops--;
	pthread_mutex_unlock(&inode->lock);
	end_request(written.request, written.result);
	deferred_work_free(work);
}

/*
 * A read of the kernel's that has begun before now may have fetched the old bytes. It has set
 * kernel_pages, and the kernel drops its pages once they are there. While another write's drop is
 * under way the pages may still be there, so this write drops them, too.
 */
static void end_write(struct lane_request *r, int result)
{
	const struct written written = { r, result };
	struct inode *inode = r->io.inode;
	bool drop;

	pthread_mutex_lock(&inode->lock);
	drop = inode->kernel_pages || inode->page_drops;
	inode->kernel_pages = false;
	inode->page_drops += drop;
	pthread_mutex_unlock(&inode->lock);
	if (!drop) {
		end_request(r, result);
	} else if (deferred_work_add(r->lane->mount, drop_pages, &written, sizeof(written))) {
		pthread_mutex_lock(&inode->lock);
		inode->kernel_pages = true;
		inode->page_drops--;
		pthread_mutex_unlock(&inode->lock);
		end_request(r, -EIO);
	}
}

static void ended(struct io *io, int rc)
{
	struct lane_request *r = (struct lane_request *)io;

	/* The kernel's own call may succeed, or has the right error, such as ENOSPC. */
	if (rc)
		end_request(r, rc == -EIO ? rc : -EAGAIN);
	else if (io->write)
		end_write(r, (int)io->length);
	else
		end_request(r, (int)io->length);
}

/* Growth is the kernel's, which then knows the size. Inode's lock held, inside the gate. */
static bool is_ours(const struct io *io)
{
	const struct inode *inode = io->inode;

	if (!inode->opens || inode->mapped)
		return false;
	return !io->write || (io->offset + io->length <= inode->size && !inode->first_blocks &&
			      !(inode->attr.mode & (S_ISUID | S_ISGID)));
}

static void granted(struct rw_gate_pass *pass)
{
	struct io *io = (struct io *)pass;
	bool ours;

	pthread_mutex_lock(&io->inode->lock);
	ours = is_ours(io);
	pthread_mutex_unlock(&io->inode->lock);
	if (ours) {
		io_run(io);
		return;
	}
	inode_leave(io->inode);
	weir_span_end(io->span, -EAGAIN);
	ended(io, -EAGAIN);
}

/* @slot: a copy. */
static struct direct_grant *check(struct lane *lane, const struct wire_files_slot *slot)
{
	const unsigned int needs = slot->op == FILES_WRITE ? FILES_MAY_WRITE : FILES_MAY_READ;
	struct direct_grant *grant;

	if (slot->op > FILES_WRITE || slot->grant >= FILES_GRANTS || !slot->length ||
	    slot->length > FILES_SLOT_BYTES || slot->offset > INT64_MAX - FILES_SLOT_BYTES)
		return NULL;
	grant = &lane->grant[slot->grant];
	if (!grant->inode || grant->closes != slot->closes || !(grant->access & needs))
		return NULL;
	return grant;
}

/* Leaves the processor to the program, if there is another. */
static void leave_cpu(struct mount *m, uint32_t cpu)
{
	struct direct *direct = &m->direct;
	cpu_set_t others = m->caller.all;
	uint64_t now_ns;

	if (cpu != direct->cpu || cpu >= CPU_SETSIZE)
		return;
	now_ns = weir_now_ns();
	if (now_ns - direct->moved_ns < MOVE_NS)
		return;
	direct->moved_ns = now_ns;
	CPU_CLR(cpu, &others);
	if (CPU_COUNT(&others))
		(void)!sched_setaffinity(0, sizeof(others), &others);
}

/* Each field once: the process may write to the slot meanwhile. */
static void read_slot(const struct wire_files_slot *shared, struct wire_files_slot *slot)
{
	slot->op = __atomic_load_n(&shared->op, __ATOMIC_RELAXED);
	slot->grant = __atomic_load_n(&shared->grant, __ATOMIC_RELAXED);
	slot->closes = __atomic_load_n(&shared->closes, __ATOMIC_RELAXED);
	slot->offset = __atomic_load_n(&shared->offset, __ATOMIC_RELAXED);
	slot->length = __atomic_load_n(&shared->length, __ATOMIC_RELAXED);
	slot->cpu = __atomic_load_n(&shared->cpu, __ATOMIC_RELAXED);
}

/* The slot is TAKEN. */
static void start(struct lane *lane, unsigned int nr)
{
	struct lane_request *r = &lane->request[nr];
	struct wire_files_slot slot;
	bool entered;

	read_slot(&lane->shared->slot[nr], &slot);
	atomic_store(&r->busy, true);
	r->lane = lane;
	r->slot = &lane->shared->slot[nr];
	r->grant = check(lane, &slot);
	mount_begin(lane->mount);
	atomic_fetch_add(&lane->busy, 1);
	if (!r->grant) {
		end_request(r, -ESTALE);
		return;
	}
	atomic_fetch_add(&r->grant->busy, 1);
	r->io = (struct io){
		.pass = { .granted = granted },
		.mount = lane->mount,
		.inode = r->grant->inode,
		.ended = ended,
		.memory = lane->memory,
		.data = (char *)lane->shared + FILES_DATA + (size_t)nr * FILES_SLOT_BYTES,
		.write = slot.op == FILES_WRITE,
		.direct = true,
		.offset = slot.offset,
		.length = slot.length,
	};
	r->io.span = operation_span_io(lane->mount, r->io.write, r->io.inode->ino, slot.offset,
				       slot.length);
	pthread_mutex_lock(&r->io.inode->lock);
	entered = rw_gate_enter(&r->io.inode->gate, &r->io.pass);
	pthread_mutex_unlock(&r->io.inode->lock);
	if (entered)
		granted(&r->io.pass);
	leave_cpu(lane->mount, slot.cpu);
}

bool lane_serve(struct lane *lane)
{
	struct wire_files_lane *shared = lane->shared;
	uint32_t posted;

	if (!__atomic_load_n(&shared->posted, __ATOMIC_RELAXED))
		return false;
	posted = __atomic_exchange_n(&shared->posted, 0, __ATOMIC_ACQUIRE);
	for (unsigned int nr = 0; nr < FILES_SLOTS; nr++) {
		uint32_t state = FILES_POSTED;

		/* A process that posts a slot again before its end has no answer. */
		if (posted & 1u << nr && !atomic_load(&lane->request[nr].busy) &&
		    __atomic_compare_exchange_n(&shared->slot[nr].state, &state, FILES_TAKEN, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			start(lane, nr);
	}
	return true;
}

static bool serve_all(struct direct *direct)
{
	bool any = false;

	for (unsigned int i = 0; i < DIRECT_LANES_MAX; i++)
		if (direct->lane[i])
			any |= lane_serve(direct->lane[i]);
	return any;
}

/* Notes the processor that this thread is on, for itself and for programs. direct.lock held. */
static void note_cpu(struct direct *direct)
{
	uint32_t cpu = (uint32_t)sched_getcpu();

	if (cpu == direct->cpu)
		return;
	direct->cpu = cpu;
	for (unsigned int i = 0; i < DIRECT_LANES_MAX; i++)
		if (direct->lane[i])
			__atomic_store_n(&direct->lane[i]->shared->cpu, cpu, __ATOMIC_RELAXED);
}

static void tell_all(struct direct *direct, enum files_watch watch)
{
	for (unsigned int i = 0; i < DIRECT_LANES_MAX; i++)
		if (direct->lane[i])
			__atomic_store_n(&direct->lane[i]->shared->watch, watch, __ATOMIC_SEQ_CST);
}

/*
 * Sleeps until ring_wake(). A process posts, then looks at @watch; here the order is reversed, so
 * that one of the two sees the other.
 */
static void sleep_until_woken(struct direct *direct)
{
	const uint32_t wakeups = __atomic_load_n(&direct->wakeups, __ATOMIC_ACQUIRE);
	bool any;

	direct_visit(direct);
	atomic_store(&direct->asleep, true);
	tell_all(direct, FILES_ASLEEP);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	any = serve_all(direct);
	direct_leave(direct);
	while (!any && !atomic_load(&direct->stops) &&
	       __atomic_load_n(&direct->wakeups, __ATOMIC_ACQUIRE) == wakeups)
		weir_futex_wait(&direct->wakeups, wakeups, UINT64_MAX);
	direct_visit(direct);
	atomic_store(&direct->asleep, false);
	tell_all(direct, FILES_WATCHED);
	direct_leave(direct);
}

static bool serve_once(struct direct *direct)
{
	bool any;

	while (atomic_load(&direct->visitors))
		sched_yield();
	pthread_mutex_lock(&direct->lock);
	note_cpu(direct);
	any = serve_all(direct);
	pthread_mutex_unlock(&direct->lock);
	return any;
}

/* A program that calls now and then is served as well by the kernel, without a spinning thread. */
static void judge(struct direct *direct, bool useful)
{
	unsigned int wanted = atomic_load(&direct->knocks_wanted);

	wanted = useful ? KNOCKS_MIN : 2 * wanted;
	atomic_store(&direct->knocks_wanted, wanted < KNOCKS_MAX ? wanted : KNOCKS_MAX);
}

void *ring_run(void *arg)
{
	struct direct *direct = &((struct mount *)arg)->direct;
	uint64_t last_ns = weir_now_ns();
	bool useful = true;

	atomic_store(&direct->knocks_wanted, KNOCKS_MIN);
	for (unsigned int spins = 0; !atomic_load(&direct->stops);) {
		if (serve_once(direct)) {
			spins = 0;
			last_ns = 0;
			useful = true;
			continue;
		}
		files_spin();
		if (++spins % SPINS_PER_YIELD)
			continue;
		sched_yield();
		if (!last_ns)
			last_ns = weir_now_ns();
		if (weir_now_ns() - last_ns > IDLE_NS) {
			judge(direct, useful);
			sleep_until_woken(direct);
			last_ns = weir_now_ns();
			useful = false;
		}
	}
	return NULL;
}

void ring_wake(struct direct *direct)
{
	__atomic_add_fetch(&direct->wakeups, 1, __ATOMIC_RELEASE);
	if (atomic_load(&direct->asleep))
		weir_futex_wake(&direct->wakeups, 1);
}

void direct_wake(struct mount *m)
{
	ring_wake(&m->direct);
}

void direct_knock(struct mount *m)
{
	struct direct *direct = &m->direct;
	const uint64_t now_ns = weir_now_ns();

	if (!atomic_load(&direct->asleep))
		return;
	if (now_ns - atomic_exchange(&direct->knocked_ns, now_ns) > KNOCK_NS)
		atomic_store(&direct->knocks, 0);
	if (atomic_fetch_add(&direct->knocks, 1) + 1 < atomic_load(&direct->knocks_wanted))
		return;
	atomic_store(&direct->knocks, 0);
	ring_wake(direct);
}
