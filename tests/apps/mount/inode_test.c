/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount inode; suites: fs */
/* Inodes of a mount whose donor errs, is late, or cannot be reached for a while. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/timerfd.h>

#include <cmocka.h>

#include "apps/mount/fuse/ops.h"

static struct mount m;
static const struct mount_options options;

/* ---- the session ---- */

static int refusal; /* of each call without a waiter: not sent */
static int outcome; /* of each call that is sent: the session's, or ... */
static int status; /* ... the donor's */
static unsigned int calls;
static struct wire_fs_setattr sent; /* the last call */
static int replied; /* to the kernel */
static double cached; /* seconds that the kernel may keep the reply */
static unsigned int calls_before; /* calls when the kernel had its reply */
static bool is_warned; /* FS_SHARE arrives while a thread leaves a size to the main thread */
static uint64_t armed_ns; /* the last timer */
static bool is_overtaken; /* others change things between a reply and its use */
static bool is_sending; /* a thread sends what it has taken, beside the main thread, ... */
static bool keeps_lock; /* ... and keeps share.sending ... */
static sem_t has_taken, may_send; /* ... between these */

int __wrap_weir_call_async(struct weir_session *session, const void *message, size_t length,
			   uint64_t timeout_ns, weir_reply_fn *fn, void *arg);
int __wrap_weir_call_while(struct weir_session *session, const void *message, size_t length,
			   void *reply, size_t room, size_t *reply_length,
			   bool (*goes_on)(void *arg), void *arg);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
void __wrap_change_log_arm(struct mount *mount);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old);
void __wrap_op_reply(fuse_req_t req, int rc);
void *__wrap_fuse_req_userdata(fuse_req_t req);
const struct fuse_ctx *__wrap_fuse_req_ctx(fuse_req_t req);
int __wrap_fuse_reply_attr(fuse_req_t req, const struct stat *attr, double seconds);
int __wrap_fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry);

static size_t answer(const void *message, size_t length, void *reply)
{
	const struct wire_fs_reply head = { .status = status };
	struct wire_fs_attr attr = { .ino = 5, .mode = S_IFREG, .change = 2 };

	calls++;
	memset(&sent, 0, sizeof(sent));
	memcpy(&sent, message, length < sizeof(sent) ? length : sizeof(sent));
	attr.size = sent.size;
	memcpy(reply, &head, sizeof(head));
	memcpy((char *)reply + sizeof(head), &attr, sizeof(attr));
	return sizeof(head) + sizeof(attr);
}

/* The commit is sent once the main thread waits for it, or has answered too early. */
static void meet(const void *message)
{
	const struct wire_fs_head *head = message;

	if (head->op != FS_COMMIT) {
		sem_post(&may_send);
		return;
	}
	keeps_lock = pthread_rwlock_trywrlock(&m.share.sending) == EBUSY;
	if (!keeps_lock)
		pthread_rwlock_unlock(&m.share.sending);
	sem_post(&has_taken);
	sem_wait(&may_send);
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	if (is_sending && lock == &m.share.sending)
		sem_post(&may_send);
	return __real_pthread_rwlock_wrlock(lock);
}

int __wrap_weir_call_async(struct weir_session *session, const void *message, size_t length,
			   uint64_t timeout_ns, weir_reply_fn *fn, void *arg)
{
	char reply[sizeof(struct wire_fs_reply) + sizeof(struct wire_fs_attr)];

	(void)session;
	(void)timeout_ns;
	if (is_warned)
		atomic_store(&m.share.shared, true);
	if (refusal)
		return refusal;
	if (is_sending)
		meet(message);
	length = answer(message, length, reply);
	fn(arg, outcome, reply, outcome ? 0 : length);
	return 0;
}

int __wrap_weir_call_while(struct weir_session *session, const void *message, size_t length,
			   void *reply, size_t room, size_t *reply_length,
			   bool (*goes_on)(void *arg), void *arg)
{
	(void)session;
	(void)room;
	(void)goes_on;
	(void)arg;
	*reply_length = answer(message, length, reply);
	if (is_overtaken)
		sharing_forget(&m.share); /* another client came and went */
	return outcome;
}

void __wrap_change_log_arm(struct mount *mount)
{
	if (is_warned)
		atomic_store(&mount->share.shared, true);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	armed_ns = (uint64_t)new->it_value.tv_sec * 1000000000u + new->it_value.tv_nsec;
	return __real_timerfd_settime(fd, flags, new, old);
}

void __wrap_op_reply(fuse_req_t req, int rc)
{
	(void)req;
	replied = rc;
	cached = 0;
	calls_before = calls;
}

void *__wrap_fuse_req_userdata(fuse_req_t req)
{
	(void)req;
	return &m;
}

const struct fuse_ctx *__wrap_fuse_req_ctx(fuse_req_t req)
{
	static const struct fuse_ctx context;

	(void)req;
	return &context;
}

int __wrap_fuse_reply_attr(fuse_req_t req, const struct stat *attr, double seconds)
{
	(void)attr;
	__wrap_op_reply(req, 0);
	cached = seconds;
	return 0;
}

int __wrap_fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
	__wrap_op_reply(req, 0);
	cached = entry->entry_timeout;
	return 0;
}

/* ---- tests ---- */

static int setup(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.options = &options;
	atomic_store(&m.share.alone_ns, UINT64_MAX);
	refusal = outcome = status = 0;
	calls = 0;
	is_overtaken = is_warned = is_sending = false;
	assert_int_equal(names_init(&m.names), 0);
	assert_int_equal(deferred_queue_init(&m.deferred), 0);
	return inodes_init(&m.inodes);
}

static int teardown(void **state)
{
	(void)state;
	inodes_fini(&m.inodes);
	deferred_queue_fini(&m.deferred);
	assert_int_equal(m.names.table.nr, 0);
	names_fini(&m.names);
	return 0;
}

static struct inode *add_inode(uint32_t mode, uint64_t change)
{
	const struct wire_fs_attr attr = { .ino = 5, .mode = mode, .change = change };
	struct inode *inode = inode_add(&m, &attr, 0);

	assert_non_null(inode);
	return inode;
}

static void names_end_with_their_directory_whatever_the_donor_says_of_it(void **state)
{
	struct inode *dir = add_inode(S_IFDIR, 1);

	(void)state;
	assert_true(names_learn(dir, names_note_question(dir), 0, "a", 7));
	assert_ptr_equal(add_inode(S_IFREG, 2), dir);
	inode_put(dir, 2);
	assert_int_equal(m.names.table.nr, 0);
}

/* A file that the kernel has open, and to which @bytes were written. */
static struct inode *open_file(uint64_t bytes)
{
	struct inode *inode = add_inode(S_IFREG, 1);

	inode->opens = 1;
	if (bytes)
		inode_wrote(inode, bytes, bytes);
	return inode;
}

static void close_for_good(struct inode *inode)
{
	inode_close(inode);
	inode_put(inode, 1);
}

static void check_sent(unsigned int number, enum wire_fs_op op, uint64_t size)
{
	assert_int_equal(calls, number);
	assert_int_equal(sent.head.op, op);
	assert_int_equal(sent.size, size);
}

static void a_close_tells_of_the_error_of_its_commit(void **state)
{
	struct inode *inode = open_file(100);
	struct fuse_file_info fi = { .fh = (uintptr_t)inode };

	(void)state;
	status = -ENOSPC;
	op_flush(NULL, inode->ino, &fi);
	assert_int_equal(replied, -ENOSPC);
	check_sent(1, FS_COMMIT, 100);
	status = 0;
	op_flush(NULL, inode->ino, &fi);
	assert_int_equal(replied, 0);
	assert_int_equal(calls, 1);
	inode_put(inode, 1);
}

/* The kernel forgets the inode meanwhile. */
static void a_close_that_cannot_be_sent_is_repeated(uint64_t bytes, enum wire_fs_op op)
{
	static const int reasons[] = { -EAGAIN, -ENOMEM };

	for (unsigned int i = 0; i < 2; i++) {
		struct inode *inode = open_file(bytes);

		calls = 0;
		refusal = reasons[i];
		close_for_good(inode);
		assert_true(inodes_pay(&m));
		assert_int_equal(calls, 0);
		refusal = 0;
		assert_false(inodes_pay(&m));
		check_sent(1, op, bytes);
		assert_int_equal(m.inodes.nr, 0);
		assert_int_equal(m.in_flight, 0);
	}
}

static void the_close_of_a_written_file_is_not_lost(void **state)
{
	(void)state;
	a_close_that_cannot_be_sent_is_repeated(100, FS_CLOSE);
}

static void the_close_of_a_file_only_read_is_not_lost(void **state)
{
	(void)state;
	a_close_that_cannot_be_sent_is_repeated(0, FS_RELEASE);
}

static void each_of_several_closes_is_sent(void **state)
{
	struct inode *inode = open_file(0);

	(void)state;
	refusal = -EAGAIN;
	inode_close(inode);
	close_for_good(inode);
	refusal = 0;
	assert_false(inodes_pay(&m));
	check_sent(2, FS_RELEASE, 0);
}

static void a_size_that_cannot_be_sent_is_sent_later(void **state)
{
	struct inode *inode = open_file(100);

	(void)state;
	refusal = -EAGAIN;
	inode_commit_ahead(inode);
	inode_put(inode, 1);
	refusal = 0;
	assert_false(inodes_pay(&m));
	check_sent(1, FS_COMMIT, 100);
	assert_int_equal(m.inodes.nr, 0);
}

static void a_close_without_an_answer_is_committed_again(void **state)
{
	(void)state;
	outcome = -ETIMEDOUT;
	close_for_good(open_file(100));
	check_sent(1, FS_CLOSE, 100);
	assert_true(inodes_pay(&m));
	check_sent(2, FS_COMMIT, 100); /* the donor may have closed it */
	outcome = 0;
	assert_false(inodes_pay(&m));
	check_sent(3, FS_COMMIT, 100);
	assert_int_equal(m.inodes.nr, 0);
}

/* Forgets what the donor told, so that it is asked again. */
static void look_at(const struct inode *inode)
{
	sharing_forget(&m.share);
	op_getattr(NULL, inode->ino, NULL);
}

static void the_kernel_keeps_nothing_that_others_may_have_changed(void **state)
{
	struct inode *inode = add_inode(S_IFDIR, 1);

	(void)state;
	look_at(inode);
	assert_true(cached > 0);
	is_overtaken = true;
	look_at(inode);
	assert_true(cached == 0);
	status = -ENOENT;
	op_lookup(NULL, inode->ino, "a");
	assert_true(cached == 0);
	is_overtaken = false;
	op_lookup(NULL, inode->ino, "a");
	assert_true(cached > 0);
	inode_put(inode, 1);
}

static void a_listing_for_the_sake_of_lookups_delays_none(void **state)
{
	struct inode *dir = add_inode(S_IFDIR, 1);

	(void)state;
	status = -ENOENT;
	op_lookup(NULL, dir->ino, "a");
	check_sent(1, FS_LOOKUP, 0);
	op_lookup(NULL, dir->ino, "a");
	assert_int_equal(calls_before, 2);
	assert_int_equal(calls, 3);
	assert_int_equal(sent.head.op, FS_READDIR);
	inode_put(dir, 1);
}

static void a_close_while_the_donor_sleeps_is_committed_later(void **state)
{
	struct inode *inode = open_file(100);
	struct fuse_file_info fi = { .fh = (uintptr_t)inode };

	(void)state;
	outcome = -ETIMEDOUT;
	op_flush(NULL, inode->ino, &fi);
	assert_int_equal(replied, 0);
	inode_put(inode, 1);
	outcome = 0;
	assert_false(inodes_pay(&m));
	check_sent(2, FS_COMMIT, 100);
	assert_int_equal(m.inodes.nr, 0);
}

static void beside_others_a_close_without_an_answer_fails(void **state)
{
	struct inode *inode = open_file(100);
	struct fuse_file_info fi = { .fh = (uintptr_t)inode };

	(void)state;
	outcome = -ETIMEDOUT;
	atomic_store(&m.share.shared, true);
	op_flush(NULL, inode->ino, &fi);
	assert_int_equal(replied, -EIO);
	inode_put(inode, 1);
}

/* After FS_SHARED, the donor answers the other client at once. */
static void a_close_waits_if_another_client_comes_meanwhile(void **state)
{
	struct inode *inode = open_file(100);

	(void)state;
	atomic_store(&m.log.is_used, true);
	assert_int_equal(inode_flush_last(inode), 0);
	assert_int_equal(calls, 0); /* left to the main thread */
	is_warned = true;
	assert_int_equal(inode_flush_last(inode), 0);
	check_sent(1, FS_COMMIT, 100);
	atomic_store(&m.log.is_used, false);
	inode_put(inode, 1);
	assert_false(inodes_pay(&m));
	assert_int_equal(calls, 1);
}

static void a_flush_waits_if_another_client_comes_meanwhile(void **state)
{
	struct inode *inode = open_file(100);

	(void)state;
	is_warned = true;
	refusal = -EAGAIN;
	assert_int_equal(inode_flush(inode), 0);
	check_sent(1, FS_COMMIT, 100);
	inode_put(inode, 1);
	assert_false(inodes_pay(&m));
	assert_int_equal(calls, 1);
}

static void answer_once_due(void)
{
	struct pollfd timer = { .fd = m.share.fd, .events = POLLIN };

	assert_int_equal(poll(&timer, 1, -1), 1);
	sharing_answer(&m);
}

static void an_answer_that_cannot_be_sent_is_repeated_after_a_pause(void **state)
{
	(void)state;
	assert_int_equal(sharing_init(&m.share), 0);
	sharing_warned(&m);
	assert_int_equal(armed_ns, 1);
	for (unsigned int i = 0; i < 3; i++) {
		refusal = -EAGAIN;
		answer_once_due();
		assert_int_equal(armed_ns, 5000000);
		assert_int_equal(atomic_load(&m.share.phase) % 2, 1);
	}
	refusal = 0;
	answer_once_due();
	check_sent(1, FS_SHARED, 0);
	assert_int_equal(atomic_load(&m.share.phase) % 2, 0);
	assert_int_equal(m.in_flight, 0);
	sharing_fini(&m.share);
}

static void *commit_ahead(void *inode)
{
	inode_commit_ahead(inode);
	return NULL;
}

/* Otherwise another client would see a size of before. */
static void an_answer_comes_after_the_changes_that_a_thread_is_sending(void **state)
{
	struct inode *inode = open_file(100);
	pthread_t thread;

	(void)state;
	assert_int_equal(sharing_init(&m.share), 0);
	sem_init(&has_taken, 0, 0);
	sem_init(&may_send, 0, 0);
	sharing_warned(&m);
	is_sending = true;
	assert_int_equal(pthread_create(&thread, NULL, commit_ahead, inode), 0);
	sem_wait(&has_taken);
	answer_once_due();
	pthread_join(thread, NULL);
	assert_true(keeps_lock);
	check_sent(2, FS_SHARED, 0); /* the last */
	close_for_good(inode);
	sem_destroy(&may_send);
	sem_destroy(&has_taken);
	sharing_fini(&m.share);
}

static void nothing_is_owed_to_a_donor_that_is_gone(void **state)
{
	(void)state;
	atomic_store(&m.is_down, true);
	refusal = -ENOTCONN;
	close_for_good(open_file(100));
	assert_false(inodes_pay(&m));
	assert_int_equal(m.inodes.nr, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_end_with_their_directory_whatever_the_donor_says_of_it),
		TEST(a_close_tells_of_the_error_of_its_commit),
		TEST(the_close_of_a_written_file_is_not_lost),
		TEST(the_close_of_a_file_only_read_is_not_lost),
		TEST(each_of_several_closes_is_sent),
		TEST(a_size_that_cannot_be_sent_is_sent_later),
		TEST(a_close_without_an_answer_is_committed_again),
		TEST(the_kernel_keeps_nothing_that_others_may_have_changed),
		TEST(a_listing_for_the_sake_of_lookups_delays_none),
		TEST(a_close_while_the_donor_sleeps_is_committed_later),
		TEST(beside_others_a_close_without_an_answer_fails),
		TEST(nothing_is_owed_to_a_donor_that_is_gone),
		TEST(a_close_waits_if_another_client_comes_meanwhile),
		TEST(a_flush_waits_if_another_client_comes_meanwhile),
		TEST(an_answer_that_cannot_be_sent_is_repeated_after_a_pause),
		TEST(an_answer_comes_after_the_changes_that_a_thread_is_sending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
