/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/fsd/host.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int take_chunk(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory)
{
	struct host *host = arg;

	if (length > host->room || host->nr_chunks == HOST_CHUNKS_MAX)
		return -ENOSPC;
	host->room -= length;
	*memory = calloc(1, length);
	host->chunk[host->nr_chunks++] = *memory;
	*chunk = (struct wire_fs_chunk){ (uintptr_t)*memory, length, host->nr_chunks, 0 };
	return 0;
}

static uint64_t room(void *arg)
{
	return ((struct host *)arg)->room;
}

static int send_message(void *arg, void *peer, const void *message, size_t length)
{
	struct fsd_peer *p = peer;

	(void)arg;
	if (p->deaf)
		return -EAGAIN;
	assert(p->nr_told < TOLD_MAX && length <= sizeof(p->told[0]));
	memset(&p->told[p->nr_told], 0, sizeof(p->told[0]));
	memcpy(&p->told[p->nr_told++], message, length);
	return 0;
}

static void answer_call(void *arg, void *call, const void *reply, size_t length)
{
	struct fsd_answer *answer = call;
	struct wire_fs_reply head;

	(void)arg;
	assert(length >= sizeof(head) && length <= FSD_MESSAGE_MAX);
	memcpy(&head, reply, sizeof(head));
	answer->times++;
	answer->status = head.status;
	answer->sharing = head.shared;
	answer->shared = head.shared;
	answer->length = length;
	memcpy(answer->bytes, reply, length);
	assert(answer->times == 1);
}

static void wall(void *arg, struct wire_fs_time *now)
{
	struct host *host = arg;

	now->sec = host->now_ns / 1000000000;
	now->nsec = host->now_ns % 1000000000;
	host->now_ns++;
}

static uint64_t clock_ns(void *arg)
{
	return ((struct host *)arg)->now_ns;
}

void host_init(struct host *host, uint64_t bytes, uint64_t chunk_bytes)
{
	struct fsd_host functions = {
		take_chunk, room, send_message, answer_call, wall, clock_ns, host,
	};
	struct fsd_options options = { .bytes_max = bytes, .chunk_bytes = chunk_bytes };

	memset(host, 0, sizeof(*host));
	host->room = bytes;
	host->now_ns = 1000000000;
	host->chunk_bytes = chunk_bytes;
	assert(!fsd_open(&functions, &options, &host->fsd));
}

void host_fini(struct host *host)
{
	fsd_close(host->fsd);
	for (unsigned int i = 0; i < host->nr_chunks; i++)
		free(host->chunk[i]);
}

void *host_memory(struct host *host, uint64_t volume)
{
	return (char *)host->chunk[volume / host->chunk_bytes] + volume % host->chunk_bytes;
}

void peer_join_only(struct fsd_peer *peer, struct host *host)
{
	memset(peer, 0, sizeof(*peer));
	peer->host = host;
	assert(!fsd_join(host->fsd, peer, &peer->client));
}

static void join(struct fsd_peer *peer, struct host *host, uint16_t flags)
{
	struct wire_fs_mount mount = { .head = { .op = FS_MOUNT, .flags = flags },
				       .magic = FS_MAGIC,
				       .version = FS_VERSION };

	peer_join_only(peer, host);
	ask(peer, &mount, sizeof(mount), NULL, NULL, 0);
}

void peer_join(struct fsd_peer *peer, struct host *host)
{
	join(peer, host, 0);
}

void peer_join_for_leases(struct fsd_peer *peer, struct host *host)
{
	join(peer, host, FS_MOUNT_LEASES);
}

void peer_leave(struct fsd_peer *peer)
{
	fsd_leave(peer->client);
	peer->client = NULL;
}

int ask_for(struct fsd_peer *peer, struct fsd_answer *answer, void *fixed, size_t size,
	    const char *name, const void *second, size_t second_length)
{
	size_t name_length = name ? strlen(name) : 0;
	size_t length = size + name_length + second_length;
	struct wire_fs_head head;
	char *message = malloc(length); /* exactly as long, so that the sanitizer finds overruns */

	memcpy(&head, fixed, sizeof(head));
	head.uid = peer->uid;
	head.gid = peer->gid;
	head.name_length = name_length;
	memcpy(message, fixed, size);
	memcpy(message, &head, sizeof(head));
	if (name)
		memcpy(message + size, name, name_length);
	if (second_length)
		memcpy(message + size + name_length, second, second_length);
	memset(answer, 0, offsetof(struct fsd_answer, bytes));
	fsd_request(peer->client, answer, message, length);
	free(message);
	return answer->times ? answer->status : PENDING;
}

int ask(struct fsd_peer *peer, void *fixed, size_t size, const char *name, const void *second,
	size_t second_length)
{
	return ask_for(peer, &peer->answer, fixed, size, name, second, second_length);
}

const void *body(const struct fsd_peer *peer)
{
	return peer->answer.bytes + sizeof(struct wire_fs_reply);
}

struct wire_fs_attr attr(const struct fsd_peer *peer)
{
	return attr_at(peer, 0);
}

struct wire_fs_attr attr_at(const struct fsd_peer *peer, unsigned int index)
{
	const size_t at = sizeof(struct wire_fs_reply) + index * sizeof(struct wire_fs_attr);
	struct wire_fs_attr attr;

	assert(peer->answer.length >= at + sizeof(attr));
	memcpy(&attr, peer->answer.bytes + at, sizeof(attr));
	return attr;
}

struct wire_fs_map map_after(const struct fsd_peer *peer, unsigned int attrs)
{
	const size_t at = attrs * sizeof(struct wire_fs_attr);
	struct wire_fs_map map;

	assert(peer->answer.length >= at + sizeof(map));
	memcpy(&map, peer->answer.bytes + at, sizeof(map));
	assert(peer->answer.length ==
	       at + sizeof(map) + map.extents * sizeof(struct wire_fs_extent));
	return map;
}

static int ask_name(struct fsd_peer *p, enum wire_fs_op op, uint64_t ino, const char *name)
{
	struct wire_fs_head head = { .op = op, .ino = ino };

	return ask(p, &head, sizeof(head), name, NULL, 0);
}

int do_lookup(struct fsd_peer *p, uint64_t dir, const char *name)
{
	return ask_name(p, FS_LOOKUP, dir, name);
}

int do_getattr(struct fsd_peer *p, uint64_t ino)
{
	return ask_name(p, FS_GETATTR, ino, NULL);
}

int do_make(struct fsd_peer *p, uint64_t dir, const char *name, uint32_t mode, uint32_t make,
	    const char *target)
{
	struct wire_fs_make m = {
		.head = { .op = FS_MAKE, .ino = dir },
		.mode = mode,
		.make = make,
		.target_length = target ? strlen(target) : 0,
	};

	return ask(p, &m, sizeof(m), name, target, m.target_length);
}

int do_link(struct fsd_peer *p, uint64_t ino, uint64_t dir, const char *name)
{
	struct wire_fs_link link = { .head = { .op = FS_LINK, .ino = ino }, .parent = dir };

	return ask(p, &link, sizeof(link), name, NULL, 0);
}

int do_unlink(struct fsd_peer *p, uint64_t dir, const char *name)
{
	return ask_name(p, FS_UNLINK, dir, name);
}

int do_rmdir(struct fsd_peer *p, uint64_t dir, const char *name)
{
	return ask_name(p, FS_RMDIR, dir, name);
}

int do_rename(struct fsd_peer *p, uint64_t from, const char *old, uint64_t to, const char *new,
	      uint32_t flags)
{
	struct wire_fs_rename rename = {
		.head = { .op = FS_RENAME, .ino = from },
		.parent = to,
		.flags = flags,
		.new_length = strlen(new),
	};

	return ask(p, &rename, sizeof(rename), old, new, strlen(new));
}

int do_open(struct fsd_peer *p, uint64_t ino, uint32_t flags)
{
	struct wire_fs_open open = { .head = { .op = FS_OPEN, .ino = ino }, .flags = flags };

	return ask(p, &open, sizeof(open), NULL, NULL, 0);
}

int do_release(struct fsd_peer *p, uint64_t ino)
{
	return ask_name(p, FS_RELEASE, ino, NULL);
}

int do_close(struct fsd_peer *p, uint64_t ino, uint64_t size)
{
	struct wire_fs_setattr set = { .head = { .op = FS_CLOSE, .ino = ino }, .size = size };

	return ask(p, &set, sizeof(set), NULL, NULL, 0);
}

int do_truncate(struct fsd_peer *p, uint64_t ino, uint64_t size)
{
	struct wire_fs_setattr set = {
		.head = { .op = FS_SETATTR, .ino = ino },
		.mask = FS_SET_SIZE,
		.size = size,
	};

	return ask(p, &set, sizeof(set), NULL, NULL, 0);
}

/* A reply that waits for memory arrives eventually. */
static int wait_for_memory(struct fsd_peer *p, int status)
{
	while (status == PENDING) {
		p->host->now_ns += 100000000;
		fsd_work(p->host->fsd);
		if (p->answer.times)
			status = p->answer.status;
	}
	return status;
}

int do_fallocate(struct fsd_peer *p, uint64_t ino, uint32_t mode, uint64_t offset, uint64_t length)
{
	struct wire_fs_fallocate f = {
		.head = { .op = FS_FALLOCATE, .ino = ino },
		.offset = offset,
		.length = length,
		.mode = mode,
	};

	return wait_for_memory(p, ask(p, &f, sizeof(f), NULL, NULL, 0));
}

static int ask_range(struct fsd_peer *p, enum wire_fs_op op, uint64_t ino, uint64_t offset,
		     uint64_t length)
{
	struct wire_fs_range range = { { .op = op, .ino = ino }, offset, length };

	return ask(p, &range, sizeof(range), NULL, NULL, 0);
}

int do_map(struct fsd_peer *p, uint64_t ino, uint64_t offset, uint64_t length)
{
	return ask_range(p, FS_MAP, ino, offset, length);
}

int do_alloc(struct fsd_peer *p, uint64_t ino, uint64_t offset, uint64_t length)
{
	return wait_for_memory(p, ask_range(p, FS_ALLOC, ino, offset, length));
}

int do_commit(struct fsd_peer *p, uint64_t ino, uint64_t size)
{
	struct wire_fs_setattr commit = { .head = { .op = FS_COMMIT, .ino = ino }, .size = size };

	return ask(p, &commit, sizeof(commit), NULL, NULL, 0);
}

int do_return(struct fsd_peer *p, uint64_t ino, uint64_t epoch)
{
	struct wire_fs_recall recall = { { .op = FS_RETURN, .ino = ino }, epoch };

	return ask(p, &recall, sizeof(recall), NULL, NULL, 0);
}

/* Calls @fn for each extent of a range in the latest map. */
static void each_piece(struct fsd_peer *p, uint64_t offset, size_t length,
		       void (*fn)(void *memory, size_t at, size_t length, void *data), void *data)
{
	struct wire_fs_map map;

	memcpy(&map, p->answer.bytes, sizeof(map));
	assert(map.end >= offset + length);
	for (uint32_t i = 0; i < map.extents; i++) {
		struct wire_fs_extent e;
		uint64_t from, to;

		memcpy(&e, p->answer.bytes + sizeof(map) + i * sizeof(e), sizeof(e));
		from = e.offset > offset ? e.offset : offset;
		to = e.offset + e.length < offset + length ? e.offset + e.length : offset + length;
		if (from < to)
			fn(host_memory(p->host, e.volume + from - e.offset), from - offset,
			   to - from, data);
	}
}

static void piece_write(void *memory, size_t at, size_t length, void *data)
{
	memcpy(memory, (char *)data + at, length);
}

static void piece_read(void *memory, size_t at, size_t length, void *data)
{
	memcpy((char *)data + at, memory, length);
}

int do_write(struct fsd_peer *p, uint64_t ino, uint64_t offset, const void *data, size_t length)
{
	int rc = do_alloc(p, ino, offset, length);

	if (rc)
		return rc;
	each_piece(p, offset, length, piece_write, (void *)data);
	return do_commit(p, ino, offset + length);
}

int do_read(struct fsd_peer *p, uint64_t ino, uint64_t offset, void *data, size_t length)
{
	int rc = do_map(p, ino, offset, length);

	if (rc)
		return rc;
	memset(data, 0, length);
	each_piece(p, offset, length, piece_read, data);
	return 0;
}

/* The directory of a path; @name receives the last component. */
static uint64_t walk_to(struct fsd_peer *p, const char *path, const char **name)
{
	const char *slash;
	uint64_t dir = FS_ROOT;
	char part[FS_NAME_MAX + 1];

	for (; (slash = strchr(path, '/')); path = slash + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (do_lookup(p, dir, part))
			return 0;
		dir = attr(p).ino;
	}
	*name = path;
	return dir;
}

uint64_t walk(struct fsd_peer *p, const char *path)
{
	const char *name;
	uint64_t dir;

	if (!*path)
		return FS_ROOT;
	dir = walk_to(p, path, &name);
	return dir && !do_lookup(p, dir, name) ? attr(p).ino : 0;
}

static int chmod_path(struct fsd_peer *p, const char *mode, const char *path)
{
	struct wire_fs_setattr set = {
		.head = { .op = FS_SETATTR, .ino = walk(p, path) },
		.mask = FS_SET_MODE,
		.mode = strtoul(mode, NULL, 8),
	};

	return ask(p, &set, sizeof(set), NULL, NULL, 0);
}

static unsigned int count_names(struct fsd_peer *p, uint64_t dir)
{
	struct wire_fs_readdir readdir = { .head = { .op = FS_READDIR, .ino = dir } };
	unsigned int names = 0;

	for (;;) {
		size_t at = sizeof(struct wire_fs_reply);
		struct wire_fs_dirent entry;

		assert(!ask(p, &readdir, sizeof(readdir), NULL, NULL, 0));
		if (p->answer.length == at)
			return names;
		for (; at < p->answer.length; names++) {
			memcpy(&entry, p->answer.bytes + at, sizeof(entry));
			assert(entry.cookie > readdir.cookie);
			readdir.cookie = entry.cookie;
			at += sizeof(entry) + (entry.name_length + 7) / 8 * 8;
		}
		assert(at == p->answer.length);
	}
}

static int check(bool truth)
{
	return truth ? 0 : -EBADMSG;
}

static int step(struct fsd_peer *p, const char *op, const char *a, const char *b)
{
	const char *name = NULL, *name_b = NULL;
	uint64_t dir, dir_b;

	if (!strcmp(op, "chmod"))
		return chmod_path(p, a, b);
	if (!strcmp(op, "symlink")) {
		dir = walk_to(p, b, &name);
		return do_make(p, dir, name, S_IFLNK | 0777, 0, a);
	}
	if (!strcmp(op, "is"))
		return check(walk(p, a));
	if (!strcmp(op, "no"))
		return check(!walk(p, a));
	if (!strcmp(op, "same"))
		return check(walk(p, a) && walk(p, a) == walk(p, b));
	if (!strcmp(op, "nlink"))
		return check(walk(p, a) && !do_getattr(p, walk(p, a)) &&
			     attr(p).nlink == (uint32_t)atoi(b));
	if (!strcmp(op, "list"))
		return check(count_names(p, walk(p, !strcmp(a, ".") ? "" : a)) ==
			     (unsigned int)atoi(b));
	if (!strcmp(op, "open"))
		return do_open(p, walk(p, a), 0);
	if (!strcmp(op, "release"))
		return do_release(p, walk(p, a));
	dir = walk_to(p, a, &name);
	if (!dir)
		return -ENOENT;
	if (!strcmp(op, "file"))
		return do_make(p, dir, name, S_IFREG | 0644, 0, NULL);
	if (!strcmp(op, "mkdir"))
		return do_make(p, dir, name, S_IFDIR | 0755, 0, NULL);
	if (!strcmp(op, "unlink"))
		return do_unlink(p, dir, name);
	if (!strcmp(op, "rmdir"))
		return do_rmdir(p, dir, name);
	dir_b = walk_to(p, b, &name_b);
	if (!strcmp(op, "link"))
		return do_link(p, walk(p, a), dir_b, name_b);
	if (!strcmp(op, "rename"))
		return do_rename(p, dir, name, dir_b, name_b, 0);
	if (!strcmp(op, "noreplace"))
		return do_rename(p, dir, name, dir_b, name_b, RENAME_NOREPLACE);
	if (!strcmp(op, "exchange"))
		return do_rename(p, dir, name, dir_b, name_b, RENAME_EXCHANGE);
	abort();
}

int script(struct fsd_peer *p, const char *text)
{
	char line[128], op[16], a[64], b[64];
	const char *end;
	int rc = 0;

	while (*text && !rc) {
		end = strstr(text, "; ");
		end = end ? end : text + strlen(text);
		snprintf(line, sizeof(line), "%.*s", (int)(end - text), text);
		*a = *b = 0;
		sscanf(line, "%15s %63s %63s", op, a, b);
		rc = step(p, op, a, b);
		text = *end ? end + 2 : end;
	}
	return rc;
}
