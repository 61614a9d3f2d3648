/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor answers a mount with arbitrary bytes. The mount reads nothing beyond the reply, hands the
 * kernel no more than it asked for, hides names that only root may see, and keeps its map in order.
 *
 * The input is a list of replies: a byte selects the operation, one says how to repair the reply,
 * one is the length. The rest of the mount is replaced by stubs.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/operation_span.h"
#include "apps/mount/fuse/ops.h"
#include "apps/mount/inode/map.h"

#define PAGE 4096u
#define REPAIRED 1u
#define AT_THE_END 2u /* of the largest reply */
#define IS_USER 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct mount_options options;
static struct mount m;
static struct inode directory = { .mount = &m, .ino = 1 };
static struct fuse_ctx context;
static struct donor_reply next;
static size_t asked;
static unsigned int replies_left; /* before the replies end with their heads */
static bool lists_names;

/* ---- what the files under test call ---- */

void *fuse_req_userdata(fuse_req_t req)
{
	(void)req;
	return &m;
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	(void)req;
	return &context;
}

void op_reply(fuse_req_t req, int rc)
{
	(void)req;
	assert(rc <= 0 && rc > -4096);
}

struct weir_span *operation_span(void)
{
	return NULL;
}

struct weir_span *operation_span_call(const struct mount *mount, const struct weir_span *of,
				      uint16_t op)
{
	(void)mount;
	(void)of;
	(void)op;
	return NULL;
}

void weir_span_finish(struct weir_span *span, int status)
{
	(void)span;
	(void)status;
}

int fuse_reply_err(fuse_req_t req, int err)
{
	op_reply(req, -err);
	return 0;
}

int fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
	(void)req;
	(void)fi;
	return 0;
}

int fuse_reply_xattr(fuse_req_t req, size_t count)
{
	(void)req;
	assert(count <= WEIR_MESSAGE_MAX);
	return 0;
}

int fuse_reply_buf(fuse_req_t req, const char *bytes, size_t length)
{
	char *copy = malloc(length + 1);

	(void)req;
	assert(length <= asked);
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	for (size_t at = 0; lists_names && context.uid && at < length; at += strlen(copy + at) + 1)
		assert(strncmp(copy + at, "trusted.", 8) != 0);
	free(copy);
	return 0;
}

int weir_call(struct weir_session *session, const void *message, size_t length, void *reply,
	      size_t room, size_t *reply_length)
{
	(void)session;
	(void)message;
	assert(length <= WEIR_MESSAGE_MAX && next.length <= room);
	memcpy(reply, next.bytes, next.length);
	*reply_length = next.length;
	if (replies_left)
		replies_left--;
	else if (*reply_length > sizeof(next.head))
		*reply_length = sizeof(next.head);
	return 0;
}

int weir_call_while(struct weir_session *session, const void *message, size_t length, void *reply,
		    size_t room, size_t *reply_length, bool (*goes_on)(void *arg), void *arg)
{
	assert(goes_on && arg);
	return weir_call(session, message, length, reply, room, reply_length);
}

int weir_call_async(struct weir_session *session, const void *message, size_t length,
		    uint64_t timeout_ns, weir_reply_fn *fn, void *arg)
{
	(void)session;
	(void)message;
	(void)length;
	(void)timeout_ns;
	fn(arg, 0, next.bytes, next.length);
	return 0;
}

int change_log_settle(struct mount *mount, struct fuse_req *req)
{
	(void)mount;
	(void)req;
	return 0;
}

struct sharing_request sharing_note_request(const struct sharing *share)
{
	(void)share;
	return (struct sharing_request){ 0 };
}

/* Of mounts of a pool. */
int link_call(struct link *link, const void *message, size_t length, void *data, weir_reply_fn *fn,
	      void *arg)
{
	(void)link;
	(void)message;
	(void)length;
	(void)data;
	(void)fn;
	(void)arg;
	abort();
}

int link_call_wait(struct link *link, const void *message, size_t length, void *reply,
		   size_t reply_max, size_t *reply_length, bool (*goes_on)(void *arg), void *arg)
{
	(void)link;
	(void)message;
	(void)length;
	(void)reply;
	(void)reply_max;
	(void)reply_length;
	(void)goes_on;
	(void)arg;
	abort();
}

void sharing_note_reply(struct sharing *share, struct sharing_request request, uint32_t shared)
{
	(void)request;
	atomic_store(&share->shared, !sharing_allows(shared));
}

void sharing_forget(struct sharing *share)
{
	(void)share;
}

void loop_wait_begin(struct mount *mount)
{
	(void)mount;
}

void loop_wait_end(struct mount *mount)
{
	(void)mount;
}

void mount_begin(struct mount *mount)
{
	mount->in_flight++;
}

void mount_end(struct mount *mount)
{
	mount->in_flight--;
}

struct inode *inode_get(struct mount *mount, uint64_t ino)
{
	(void)mount;
	(void)ino;
	return &directory;
}

bool sharing_knows(const struct sharing *share, unsigned int phase)
{
	(void)share;
	return phase % 2 == 0;
}

struct inode *inode_add(struct mount *mount, const struct wire_fs_attr *attr, unsigned int phase)
{
	static struct inode inode;

	(void)mount;
	(void)phase;
	inode.attr = *attr;
	return &inode;
}

void inode_learn_changed(struct mount *mount, const struct wire_fs_attr *attr, unsigned int phase)
{
	(void)mount;
	(void)attr;
	(void)phase;
}

void inode_put(struct inode *inode, uint64_t lookups)
{
	(void)inode;
	(void)lookups;
}

void entry_fill(struct inode *inode, struct fuse_entry_param *entry, unsigned int phase)
{
	(void)phase;
	entry->ino = inode->attr.ino;
	attr_stat(&inode->attr, &entry->attr);
}

void attr_stat(const struct wire_fs_attr *attr, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = attr->ino;
	st->st_mode = attr->mode;
}

/* ---- replies ---- */

/* Names of entries get lengths that fit most of the time. */
static void repair_listing(char *body, size_t length)
{
	struct wire_fs_dirent entry;
	size_t size;

	for (; length >= sizeof(entry); body += size, length -= size) {
		memcpy(&entry, body, sizeof(entry));
		entry.name_length %= FS_NAME_MAX + 2;
		memcpy(body, &entry, sizeof(entry));
		size = sizeof(entry) + (entry.name_length + 7) / 8 * 8;
		if (size > length)
			return;
	}
}

/* Extents follow each other, in blocks. */
static void repair_map(char *body, size_t length)
{
	struct wire_fs_map *map = (struct wire_fs_map *)next.bytes;
	size_t fixed = sizeof(*map) - sizeof(map->reply);
	uint64_t offset = 0;
	struct wire_fs_extent e;

	if (length < fixed)
		return;
	map->size %= 1 << 30;
	map->end |= 1ull << 40;
	map->extents = (uint32_t)((length - fixed) / sizeof(e)) + map->extents % 2;
	for (size_t at = fixed; length - at >= sizeof(e) && at < length; at += sizeof(e)) {
		memcpy(&e, body + at, sizeof(e));
		e.offset = offset + e.offset % 4 * FS_BLOCK;
		e.volume = e.volume % 4096 * FS_BLOCK;
		e.length = e.length % 8 * FS_BLOCK;
		offset = e.offset + e.length;
		memcpy(body + at, &e, sizeof(e));
	}
}

static void make_reply(const uint8_t *bytes, size_t length, uint8_t op, uint8_t how)
{
	size_t at = how & AT_THE_END ? sizeof(next.bytes) - length : 0;

	for (size_t i = 0; i < at; i++)
		next.bytes[i] = i % 2 ? '\0' : 'a';
	memcpy(next.bytes + at, bytes, length);
	next.length = at + length;
	if (!(how & REPAIRED) || next.length < sizeof(next.head))
		return;
	next.head.status = 0;
	if (op == 2 || op == 3)
		repair_listing(next.bytes + sizeof(next.head), next.length - sizeof(next.head));
	else if (op == 4)
		repair_map(next.bytes + sizeof(next.head), next.length - sizeof(next.head));
}

static void check_map(const struct map *map)
{
	uint64_t end = 0, volume, left;

	for (uint32_t i = 0; i < map->nr; i++) {
		const struct wire_fs_extent *e = &map->extent[i];

		assert(e->length && e->offset >= end);
		end = e->offset + e->length;
		assert(map_find(map, end - 1, &volume, &left) && left == 1);
		assert(volume == e->volume + e->length - 1);
	}
	assert(map->nr <= map->room && map->known <= map->known_end);
}

static void learn(struct map *map)
{
	struct wire_fs_map head;
	struct wire_fs_extent e;
	uint64_t end = 0;

	if (call_status(0, next.bytes, next.length, 0) ||
	    !map_makes_sense(next.bytes, next.length, 0, &head))
		return;
	assert(sizeof(head) + head.extents * sizeof(e) <= next.length);
	for (uint32_t i = 0; i < head.extents; i++, end = e.offset + e.length) {
		memcpy(&e, next.bytes + sizeof(head) + i * sizeof(e), sizeof(e));
		assert(e.offset >= end && e.length && !((e.offset | e.length) % FS_BLOCK));
	}
	map_learn(map, 0, head.end, next.bytes + sizeof(head), head.extents);
	check_map(map);
}

static void play(uint8_t op, struct map *map)
{
	struct fuse_file_info fi = { 0 };

	lists_names = op == 1;
	replies_left = 8;
	asked = op < 2 ? FS_XATTR_MAX * 2 : PAGE;
	if (op == 0) {
		op_getxattr(NULL, 1, "user.a", asked);
	} else if (op == 1) {
		op_listxattr(NULL, 1, asked);
	} else if (op == 4) {
		learn(map);
	} else {
		op_opendir(NULL, 1, &fi);
		for (int page = 0; page < 3; page++)
			(op == 2 ? op_readdir : op_readdirplus)(NULL, 1, PAGE, page * 7, &fi);
		op_releasedir(NULL, 1, &fi);
		dir_list_names(&m, 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct map map = { 0 };

	names_init(&m.names);
	m.options = &options;
	m.fuse = (struct fuse_session *)&m; /* serving, as call_wait() sees it */
	atomic_store(&m.share.shared, true);
	while (size > 3) {
		size_t length = data[2] * 8u < size - 3 ? data[2] * 8u : size - 3;

		context.uid = data[1] & IS_USER;
		make_reply(data + 3, length, data[0] % 5, data[1]);
		play(data[0] % 5, &map);
		data += 3 + length;
		size -= 3 + length;
	}
	map_forget(&map);
	names_drop(&directory);
	assert(!m.names.table.nr);
	names_fini(&m.names);
	return 0;
}
