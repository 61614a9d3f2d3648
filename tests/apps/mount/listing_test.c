/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount listing; suites: fs */
/* A mount learns names from a listing of several replies, between which other things happen. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/mount/fuse/ops.h"

#define PHASE 2u
#define REPLIES 4u /* of a listing; each but the last, which is empty, tells a name */

static struct mount m;
static struct inode dir;
static unsigned int asked;
static unsigned int event_at; /* the reply before which ... */
static void (*event)(void); /* ... this happens */

/* ---- what the directory's operations call ---- */

bool sharing_knows(const struct sharing *share, unsigned int phase)
{
	return phase % 2 == 0 && phase == atomic_load(&share->phase) &&
	       !atomic_load(&share->shared);
}

void *call_begin(struct donor_message *q, enum wire_fs_op op, uint64_t ino, size_t fixed,
		 fuse_req_t req)
{
	memset(q->bytes, 0, fixed);
	q->length = fixed;
	q->req = req;
	q->head.op = (uint16_t)op;
	q->head.ino = ino;
	return q->bytes;
}

/* Replies "0", "1", ... by the question's cookie. */
int call(struct mount *mount, struct donor_message *q, struct donor_reply *reply, size_t body_min)
{
	const struct wire_fs_readdir *readdir = (const struct wire_fs_readdir *)q->bytes;
	const uint64_t at = readdir->cookie;
	struct wire_fs_dirent entry = {
		.cookie = at + 1, .name_length = 1, .attr = { .ino = 10 + at, .mode = S_IFREG },
	};

	(void)body_min;
	if (event && asked == event_at)
		event();
	asked++;
	memset(reply->bytes, 0, 256);
	reply->length = sizeof(reply->head);
	q->phase = atomic_load(&mount->share.shared) ? SHARING_NO_PHASE :
						       atomic_load(&mount->share.phase);
	if (at + 1 >= REPLIES)
		return 0;
	memcpy(reply->bytes + reply->length, &entry, sizeof(entry));
	reply->bytes[reply->length + sizeof(entry)] = (char)('0' + at);
	reply->length += sizeof(entry) + 8;
	return 0;
}

struct inode *inode_get(struct mount *mount, uint64_t ino)
{
	(void)mount;
	(void)ino;
	return &dir;
}

struct inode *inode_add(struct mount *mount, const struct wire_fs_attr *attr, unsigned int phase)
{
	(void)mount;
	(void)attr;
	(void)phase;
	return NULL;
}

void inode_put(struct inode *inode, uint64_t refs)
{
	(void)inode;
	(void)refs;
}

void attr_stat(const struct wire_fs_attr *attr, struct stat *st)
{
	*st = (struct stat){ .st_ino = attr->ino };
}

void entry_fill(struct inode *inode, struct fuse_entry_param *entry, unsigned int phase)
{
	(void)inode;
	(void)phase;
	*entry = (struct fuse_entry_param){ 0 };
}

void op_reply(fuse_req_t req, int rc)
{
	(void)req;
	(void)rc;
}

/* ---- tests ---- */

static int setup(void **state)
{
	(void)state;
	dir = (struct inode){ .mount = &m, .ino = 5 };
	atomic_store(&m.share.phase, PHASE);
	atomic_store(&m.share.shared, false);
	asked = event_at = 0;
	event = NULL;
	return names_init(&m.names);
}

static int teardown(void **state)
{
	(void)state;
	names_drop(&dir);
	assert_int_equal(m.names.table.nr, 0);
	names_fini(&m.names);
	return 0;
}

static void expect(const char *name, enum names_answer answer)
{
	uint64_t ino;

	assert_int_equal(names_find(&dir, name, &ino), answer);
}

static void be_alone(void)
{
	atomic_store(&m.share.shared, false);
}

static void forget(void)
{
	atomic_fetch_add(&m.share.phase, 2);
}

static void change(void)
{
	names_begin_change(&dir);
	names_end_change(&dir);
}

static void a_listing_tells_all_names(void **state)
{
	(void)state;
	dir_list_names(&m, dir.ino);
	expect("0", NAMES_PRESENT);
	expect("2", NAMES_PRESENT);
	expect("3", NAMES_ABSENT);
	assert_int_equal(asked, REPLIES);
}

static void no_name_is_absent_after(unsigned int at, void (*what)(void))
{
	event_at = at;
	event = what;
	dir_list_names(&m, dir.ino);
	for (char name[] = "0"; name[0] < '5'; name[0]++) {
		uint64_t ino;

		assert_int_not_equal(names_find(&dir, name, &ino), NAMES_ABSENT);
	}
}

static void a_listing_begun_beside_others_does_not(void **state)
{
	(void)state;
	for (unsigned int at = 1; at < REPLIES; at++) {
		atomic_store(&m.share.shared, true);
		asked = 0;
		no_name_is_absent_after(at, be_alone);
	}
}

static void a_listing_in_which_knowledge_ends_does_not(void **state)
{
	(void)state;
	for (unsigned int at = 0; at < REPLIES; at++) {
		asked = 0;
		no_name_is_absent_after(at, forget);
	}
}

static void a_listing_in_which_a_name_changes_does_not(void **state)
{
	(void)state;
	for (unsigned int at = 0; at < REPLIES; at++) {
		asked = 0;
		no_name_is_absent_after(at, change);
	}
}

static void a_listing_ends_when_it_teaches_nothing(void **state)
{
	(void)state;
	event_at = 1;
	event = change;
	dir_list_names(&m, dir.ino);
	assert_int_equal(asked, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_listing_tells_all_names),
		TEST(a_listing_begun_beside_others_does_not),
		TEST(a_listing_in_which_knowledge_ends_does_not),
		TEST(a_listing_in_which_a_name_changes_does_not),
		TEST(a_listing_ends_when_it_teaches_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
