/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs random operations of two clients, and compares the server with a naive file system that
 * keeps each file as an array of bytes. After each step both agree on the operation's result, and
 * on names, attributes, contents and free space. No block ever belongs to two files. No block is
 * reused while a client has not returned a recalled map of it. Newly allocated blocks are zero.
 *
 * usage: fsd_model_test [SEED [STEPS]]; a failure names the seed and the step.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/rng.h"
#include "fsd/internal.h"
#include "tests/fsd/host.h"

#define BLOCKS_MAX 24 /* per file */
#define FILE_MAX (BLOCKS_MAX * FS_BLOCK)
#define CHUNK (16 * FS_BLOCK)
#define VOLUME (5 * CHUNK + CHUNK / 2)
#define VOLUME_BLOCKS (VOLUME / FS_BLOCK)
#define NODES 64
#define NAMES 9
#define CLIENTS 2

struct entry {
	struct node *node; /* NULL: the name does not exist */
};

struct node {
	bool used;
	uint32_t mode, nlink;
	uint64_t ino, size, kept_end;
	struct node *parent;
	struct entry entry[NAMES]; /* of a directory, indexed by name number */
	uint8_t data[FILE_MAX];
	bool allocated[BLOCKS_MAX];
	unsigned int opens[CLIENTS];
	uint64_t holds[CLIENTS]; /* epoch of the newest map, or 0 */
};

/* A block freed while a client held the map. */
struct limbo {
	uint64_t ino, epoch;
	bool waits[CLIENTS];
};

static struct node nodes[NODES], *root = &nodes[0];
static struct limbo limbo[VOLUME_BLOCKS];
static struct host host;
static struct fsd_peer peers[CLIENTS];
static uint64_t seed, random_state, step;
static const char *doing = "";

static uint64_t roll(uint64_t below)
{
	return weir_rng_scale(weir_rng_next(&random_state), below);
}

static void expect(bool truth, const char *what, long got, long wanted)
{
	if (truth)
		return;
	fprintf(stderr, "seed %llu step %llu: %s: %s: %ld, expected %ld\n",
		(unsigned long long)seed, (unsigned long long)step, doing, what, got, wanted);
	abort();
}

static void same(const char *what, long got, long wanted)
{
	expect(got == wanted, what, got, wanted);
}

static const char *name_of(unsigned int i)
{
	static const char *const names[NAMES] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };

	return names[i];
}

static bool is_dir(const struct node *node)
{
	return S_ISDIR(node->mode);
}

static bool is_open(const struct node *node)
{
	return node->opens[0] || node->opens[1];
}

/* A random live node that satisfies @test; NULL if there is none. */
static struct node *pick(bool (*test)(const struct node *node))
{
	unsigned int first = roll(NODES);

	for (unsigned int i = 0; i < NODES; i++) {
		struct node *node = &nodes[(first + i) % NODES];

		if (node->used && test(node))
			return node;
	}
	return NULL;
}

static bool is_live_dir(const struct node *node)
{
	return is_dir(node) && node->nlink;
}

static bool is_file(const struct node *node)
{
	return S_ISREG(node->mode);
}

static bool is_any(const struct node *node)
{
	return node->used;
}

static struct fsd_inode *inode_of(const struct node *node)
{
	for (uint64_t i = 0; i < host.fsd->inodes.buckets; i++) {
		struct fsd_hash_node *link = fsd_hashtable_bucket(&host.fsd->inodes, i);

		for (; link; link = link->next) {
			if (((struct fsd_inode *)link)->ino == node->ino)
				return (struct fsd_inode *)link;
		}
	}
	return NULL;
}

static unsigned int names_in(const struct node *dir)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < NAMES; i++)
		nr += !!dir->entry[i].node;
	return nr;
}

static unsigned int limbo_blocks(void)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < VOLUME_BLOCKS; i++)
		nr += limbo[i].waits[0] || limbo[i].waits[1];
	return nr;
}

static unsigned int used_blocks(void)
{
	unsigned int nr = limbo_blocks();

	for (unsigned int i = 0; i < NODES; i++) {
		for (unsigned int j = 0; nodes[i].used && j < BLOCKS_MAX; j++)
			nr += nodes[i].allocated[j];
	}
	return nr;
}

/* @client no longer holds maps of a file up to @epoch. */
static void let_go(const struct node *node, unsigned int client, uint64_t epoch)
{
	for (unsigned int i = 0; i < VOLUME_BLOCKS; i++) {
		if (limbo[i].ino == node->ino && limbo[i].epoch <= epoch)
			limbo[i].waits[client] = false;
	}
}

static void forget(struct node *node, unsigned int client)
{
	node->holds[client] = 0;
	let_go(node, client, UINT64_MAX);
}

static void node_put(struct node *node)
{
	if (!node->nlink && !is_open(node))
		node->used = false;
}

/* Blocks @first to @last are about to be freed; map holders keep them in limbo. */
static void freeing(struct node *node, unsigned int first, unsigned int last)
{
	struct fsd_inode *inode = inode_of(node);

	for (unsigned int i = first; i < last && i < BLOCKS_MAX; i++) {
		struct fsd_map_cursor place = fsd_map_seek(&inode->map, (uint64_t)i * FS_BLOCK);
		const struct wire_fs_extent *e = fsd_map_at(&place);
		struct limbo *l;

		if (!node->allocated[i])
			continue;
		node->allocated[i] = false;
		l = &limbo[(e->volume + i * FS_BLOCK - e->offset) / FS_BLOCK];
		*l = (struct limbo){ node->ino,
				     inode->epoch,
				     { !!node->holds[0], !!node->holds[1] } };
	}
}

static unsigned int blocks_of(uint64_t bytes)
{
	return (bytes + FS_BLOCK - 1) / FS_BLOCK;
}

static void try_make(unsigned int c)
{
	struct node *dir = pick(is_live_dir), *new = NULL;
	unsigned int name = roll(NAMES);
	static const uint32_t modes[] = { S_IFREG | 0644, S_IFREG | 0644, S_IFDIR | 0755,
					  S_IFIFO | 0600 };
	uint32_t mode = modes[roll(4)];
	bool open = S_ISREG(mode) && roll(2);
	int status;

	for (unsigned int i = 0; i < NODES && !new; i++)
		new = nodes[i].used ? NULL : &nodes[i];
	if (!new)
		return;
	doing = "make";
	status = do_make(&peers[c], dir->ino, name_of(name), mode, open ? FS_MAKE_OPEN : 0, NULL);
	same("status", status, !dir->entry[name].node ? 0 : open ? -ESTALE : -EEXIST);
	if (status)
		return;
	memset(new, 0, sizeof(*new));
	new->used = true;
	new->mode = mode;
	new->ino = attr(&peers[c]).ino;
	new->nlink = is_dir(new) ? 2 : 1;
	new->parent = dir;
	new->opens[c] = open;
	dir->nlink += is_dir(new);
	dir->entry[name].node = new;
}

static void try_link(unsigned int c)
{
	struct node *dir = pick(is_live_dir), *node = pick(is_any);
	unsigned int name = roll(NAMES);
	int status = do_link(&peers[c], node->ino, dir->ino, name_of(name));

	doing = "link";
	if (is_dir(node))
		same("status", status, -EPERM);
	else if (!node->nlink)
		same("status", status, -ENOENT);
	else
		same("status", status, dir->entry[name].node ? -EEXIST : 0);
	if (status)
		return;
	dir->entry[name].node = node;
	node->nlink++;
}

static void lose_name(struct node *dir, struct node *node)
{
	if (is_dir(node)) {
		node->nlink = 0;
		dir->nlink--;
	} else {
		node->nlink--;
	}
	node_put(node);
}

static void try_remove(unsigned int c)
{
	struct node *dir = pick(is_live_dir), *node;
	unsigned int name = roll(NAMES);
	bool rmdir = roll(2);
	int status, wanted = 0;

	doing = rmdir ? "rmdir" : "unlink";
	node = dir->entry[name].node;
	if (!node)
		wanted = -ENOENT;
	else if (rmdir && !is_dir(node))
		wanted = -ENOTDIR;
	else if (!rmdir && is_dir(node))
		wanted = -EISDIR;
	else if (rmdir && names_in(node))
		wanted = -ENOTEMPTY;
	status = rmdir ? do_rmdir(&peers[c], dir->ino, name_of(name)) :
			 do_unlink(&peers[c], dir->ino, name_of(name));
	same("status", status, wanted);
	if (status)
		return;
	dir->entry[name].node = NULL;
	lose_name(dir, node);
}

static bool lies_in(const struct node *dir, const struct node *node)
{
	for (; dir != root; dir = dir->parent) {
		if (dir == node)
			return true;
	}
	return node == root;
}

static int rename_wants(const struct node *from, const struct node *a, const struct node *to,
			const struct node *b, uint32_t flags)
{
	if (!a || (flags == RENAME_EXCHANGE && !b))
		return -ENOENT;
	if (flags == RENAME_NOREPLACE && b)
		return -EEXIST;
	if (is_dir(a) && lies_in(to, a))
		return -EINVAL;
	if (flags == RENAME_EXCHANGE)
		return is_dir(b) && lies_in(from, b) ? -EINVAL : 0;
	if (!b || a == b)
		return 0;
	if (is_dir(a) && !is_dir(b))
		return -ENOTDIR;
	if (!is_dir(a) && is_dir(b))
		return -EISDIR;
	return is_dir(b) && names_in(b) ? -ENOTEMPTY : 0;
}

static void move_to(struct node *node, struct node *from, struct node *to)
{
	if (!is_dir(node))
		return;
	from->nlink--;
	to->nlink++;
	node->parent = to;
}

static void try_rename(unsigned int c)
{
	static const uint32_t all[] = { 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	struct node *from = pick(is_live_dir), *to = pick(is_live_dir), *a, *b;
	unsigned int old = roll(NAMES), new = roll(NAMES);
	uint32_t flags = all[roll(4)];
	int status;

	doing = "rename";
	a = from->entry[old].node;
	b = to->entry[new].node;
	status = do_rename(&peers[c], from->ino, name_of(old), to->ino, name_of(new), flags);
	same("status", status, rename_wants(from, a, to, b, flags));
	if (status || a == b)
		return;
	to->entry[new].node = a;
	move_to(a, from, to);
	from->entry[old].node = NULL;
	if (flags == RENAME_EXCHANGE) {
		from->entry[old].node = b;
		move_to(b, to, from);
	} else if (b) {
		lose_name(to, b);
	}
}

static void cut(struct node *node, unsigned int c, uint64_t size)
{
	forget(node, c);
	if (size <= node->size) {
		freeing(node, blocks_of(size), BLOCKS_MAX);
		memset(node->data + size, 0, FILE_MAX - size);
		node->kept_end = 0;
	}
	node->size = size;
}

static void try_truncate(unsigned int c)
{
	struct node *node = pick(is_file);
	uint64_t size = roll(FILE_MAX);

	if (!node)
		return;
	doing = "truncate";
	cut(node, c, size);
	same("status", do_truncate(&peers[c], node->ino, size), 0);
}

static void try_open(unsigned int c)
{
	struct node *node = pick(is_any);
	uint32_t flags = roll(4) ? 0 : O_TRUNC;

	doing = "open";
	if (flags && is_file(node))
		cut(node, c, 0);
	same("status", do_open(&peers[c], node->ino, flags), 0);
	node->opens[c]++;
}

/* The client's last open has ended. */
static void closed(struct node *node, unsigned int c)
{
	forget(node, c);
	if (!is_open(node) && is_file(node)) {
		uint64_t end = node->size > node->kept_end ? node->size : node->kept_end;

		for (unsigned int i = blocks_of(end); i < BLOCKS_MAX; i++)
			node->allocated[i] = false;
	}
	node_put(node);
}

static void try_release(unsigned int c)
{
	struct node *node = pick(is_any);
	int status = do_release(&peers[c], node->ino);

	doing = "release";
	same("status", status, node->opens[c] ? 0 : -EBADF);
	if (!status && !--node->opens[c])
		closed(node, c);
}

/* Fills holes, and checks that success or -ENOSPC is correct. */
static bool filled(struct node *node, unsigned int first, unsigned int last, int status)
{
	unsigned int holes = 0, room = VOLUME_BLOCKS - used_blocks();

	for (unsigned int i = first; i < last; i++)
		holes += !node->allocated[i];
	same("status", status, holes > room ? -ENOSPC : 0);
	for (unsigned int i = first; i < last && !status; i++)
		node->allocated[i] = true;
	return !status;
}

/* New blocks in a client's map must be zero and belong to no other file. */
static void check_new(struct node *node, const bool *before)
{
	struct fsd_inode *inode = inode_of(node);
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, 0);
	const struct wire_fs_extent *e;

	for (; (e = fsd_map_at(&place)); fsd_map_step(&place)) {
		for (uint64_t at = 0; at < e->length; at += FS_BLOCK) {
			unsigned int block = (e->volume + at) / FS_BLOCK;
			uint8_t *memory = host_memory(&host, e->volume + at);

			same("limbo is in use", limbo[block].waits[0] || limbo[block].waits[1], 0);
			for (unsigned int i = 0;
			     i < FS_BLOCK && !before[(e->offset + at) / FS_BLOCK]; i++)
				same("a new byte", memory[i], 0);
		}
	}
}

static void got_map(struct node *node, unsigned int c)
{
	struct wire_fs_map map;

	memcpy(&map, peers[c].answer.bytes, sizeof(map));
	node->holds[c] = map.epoch;
}

static void try_write(unsigned int c)
{
	struct node *node = pick(is_file);
	static uint8_t data[FILE_MAX];
	bool before[BLOCKS_MAX];
	uint64_t offset, length;
	int status;

	if (!node)
		return;
	doing = "write";
	offset = roll(FILE_MAX - 1);
	length = 1 + roll(roll(4) ? FS_BLOCK : FILE_MAX);
	if (length > FILE_MAX - offset)
		length = FILE_MAX - offset;
	memcpy(before, node->allocated, sizeof(before));
	status = do_alloc(&peers[c], node->ino, offset, length);
	if (!node->opens[c]) {
		same("status", status, -EBADF);
		return;
	}
	if (!filled(node, offset / FS_BLOCK, blocks_of(offset + length), status))
		return;
	got_map(node, c);
	check_new(node, before);
	if (!roll(8))
		return; /* allocated ahead, never written */
	for (uint64_t i = 0; i < length; i++)
		data[i] = 1 + roll(255);
	same("write", do_write(&peers[c], node->ino, offset, data, length), 0);
	memcpy(node->data + offset, data, length);
	if (offset + length > node->size)
		node->size = offset + length;
}

static void try_fallocate(unsigned int c)
{
	static const uint32_t modes[] = { 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
					  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE };
	struct node *node = pick(is_file);
	uint64_t offset = roll(FILE_MAX - 1), end = offset + 1 + roll(FILE_MAX - offset - 1);
	uint32_t mode = modes[roll(4)];
	int status;

	if (!node)
		return;
	doing = "fallocate";
	if (mode & FALLOC_FL_PUNCH_HOLE) {
		forget(node, c);
		freeing(node, blocks_of(offset), end / FS_BLOCK);
	}
	status = do_fallocate(&peers[c], node->ino, mode, offset, end - offset);
	if (mode & FALLOC_FL_PUNCH_HOLE)
		same("status", status, 0);
	else if (!filled(node, offset / FS_BLOCK, blocks_of(end), status))
		return;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(node->data + offset, 0, end - offset);
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return;
	if (end > node->kept_end)
		node->kept_end = end;
	if (!(mode & FALLOC_FL_KEEP_SIZE) && end > node->size)
		node->size = end;
}

static void try_read(unsigned int c)
{
	static uint8_t data[FILE_MAX];
	struct node *node = pick(is_file);
	int status;

	if (!node)
		return;
	doing = "read";
	status = do_read(&peers[c], node->ino, 0, data, FILE_MAX);
	same("status", status, node->opens[c] ? 0 : -EBADF);
	if (status)
		return;
	got_map(node, c);
	for (unsigned int i = 0; i < FILE_MAX; i++)
		same("a byte read", data[i], node->data[i]);
}

/* Answers the oldest recall. */
static void try_return(unsigned int c)
{
	struct fsd_peer *p = &peers[c];
	uint64_t ino = p->told[0].recall.head.ino, epoch = p->told[0].recall.epoch;

	if (!p->nr_told)
		return;
	doing = "return";
	memmove(p->told, p->told + 1, --p->nr_told * sizeof(p->told[0]));
	for (unsigned int i = 0; i < NODES; i++) {
		if (!nodes[i].used || nodes[i].ino != ino)
			continue;
		same("status", do_return(p, ino, epoch), 0);
		let_go(&nodes[i], c, epoch);
		if (nodes[i].holds[c] <= epoch)
			forget(&nodes[i], c); /* the client had no newer map, so it has none */
	}
}

static void try_leave(unsigned int c)
{
	struct wire_fs_head shared = { .op = FS_SHARED };

	if (roll(20))
		return;
	doing = "leave";
	peer_leave(&peers[c]);
	for (unsigned int i = 0; i < NODES; i++) {
		if (!nodes[i].used || !nodes[i].opens[c])
			continue;
		nodes[i].opens[c] = 0;
		closed(&nodes[i], c);
	}
	peer_join(&peers[c], &host);
	ask(&peers[1 - c], &shared, sizeof(shared), NULL, NULL, 0);
	same("mounted", peers[c].answer.times, 1);
	if (peers[1 - c].nr_told && peers[1 - c].told[peers[1 - c].nr_told - 1].head.op == FS_SHARE)
		peers[1 - c].nr_told--;
}

static void check_node(const struct node *node)
{
	unsigned int blocks = 0;
	struct wire_fs_attr got;

	same("getattr", do_getattr(&peers[0], node->ino), 0);
	got = attr(&peers[0]);
	for (unsigned int i = 0; i < BLOCKS_MAX; i++)
		blocks += node->allocated[i];
	same("mode", got.mode, node->mode);
	same("nlink", got.nlink, node->nlink);
	same("size", got.size, is_dir(node) ? names_in(node) : node->size);
	same("blocks", got.blocks, blocks * 8);
	for (unsigned int i = 0; is_live_dir(node) && i < NAMES; i++) {
		int status = do_lookup(&peers[0], node->ino, name_of(i));

		same("lookup", status, node->entry[i].node ? 0 : -ENOENT);
		if (!status)
			same("ino", attr(&peers[0]).ino, node->entry[i].node->ino);
	}
}

static void check_listing(const struct node *dir)
{
	struct wire_fs_readdir readdir = { .head = { .op = FS_READDIR, .ino = dir->ino } };
	size_t at = sizeof(struct wire_fs_reply);
	unsigned int names = 0;

	same("readdir", ask(&peers[0], &readdir, sizeof(readdir), NULL, NULL, 0), 0);
	for (; at < peers[0].answer.length; names++) {
		struct wire_fs_dirent entry;

		memcpy(&entry, peers[0].answer.bytes + at, sizeof(entry));
		if (entry.cookie == 2)
			same("..", entry.attr.ino, dir->parent->ino);
		at += sizeof(entry) + (entry.name_length + 7) / 8 * 8;
	}
	same("names", names, dir->nlink ? names_in(dir) + 2 : 0);
}

static void check_all(void)
{
	struct wire_fs_head head = { .op = FS_STATFS };
	struct wire_fs_statfs statfs;
	unsigned int used = 0;
	static uint8_t owned[VOLUME_BLOCKS];

	memset(owned, 0, sizeof(owned));
	for (unsigned int i = 0; i < NODES; i++) {
		struct fsd_map_cursor place;
		const struct wire_fs_extent *e;

		if (!nodes[i].used)
			continue;
		used++;
		check_node(&nodes[i]);
		if (is_dir(&nodes[i]))
			check_listing(&nodes[i]);
		if (!is_file(&nodes[i]))
			continue;
		place = fsd_map_seek(&inode_of(&nodes[i])->map, 0);
		for (; (e = fsd_map_at(&place)); fsd_map_step(&place)) {
			same("chunk", e->volume / CHUNK, (e->volume + e->length - 1) / CHUNK);
			for (uint64_t b = 0; b < e->length; b += FS_BLOCK)
				same("owners before", owned[(e->volume + b) / FS_BLOCK]++, 0);
		}
	}
	same("statfs", ask(&peers[0], &head, sizeof(head), NULL, NULL, 0), 0);
	memcpy(&statfs, peers[0].answer.bytes, sizeof(statfs));
	same("blocks", statfs.blocks, VOLUME_BLOCKS);
	same("free", statfs.free, VOLUME_BLOCKS - used_blocks());
	same("files", statfs.files, used);
	same("limbo", host.fsd->space.limbo / FS_BLOCK, limbo_blocks());
}

static void run(uint64_t steps)
{
	static void (*const tries[])(unsigned int c) = {
		try_make,      try_make, try_link,    try_remove, try_rename, try_truncate,
		try_open,      try_open, try_release, try_write,  try_write,  try_write,
		try_fallocate, try_read, try_return,  try_return, try_leave,
	};
	struct wire_fs_head shared = { .op = FS_SHARED };

	host_init(&host, VOLUME, CHUNK);
	peer_join(&peers[0], &host);
	peer_join(&peers[1], &host);
	ask(&peers[0], &shared, sizeof(shared), NULL, NULL, 0);
	peers[0].nr_told = 0;
	memset(nodes, 0, sizeof(nodes));
	memset(limbo, 0, sizeof(limbo));
	*root = (struct node){
		.used = true, .mode = S_IFDIR | 0755, .nlink = 2, .ino = FS_ROOT, .parent = root
	};
	for (step = 0; step < steps; step++) {
		tries[roll(sizeof(tries) / sizeof(tries[0]))](roll(CLIENTS));
		if (!roll(4))
			fsd_work(host.fsd);
		check_all();
		while (peers[0].nr_told > TOLD_MAX / 2)
			try_return(0);
		while (peers[1].nr_told > TOLD_MAX / 2)
			try_return(1);
	}
	peer_leave(&peers[0]);
	peer_leave(&peers[1]);
	host_fini(&host);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t last = argc > 1 ? first : 20;
	uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 0) : 1500;

	for (seed = first; seed <= last; seed++) {
		random_state = seed;
		run(steps);
	}
	return 0;
}
