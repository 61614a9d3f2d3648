/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

#include "tests/fuzz/fs_message.h"

#define CHOOSE(in, set) ((set)[input_take(in) % (sizeof(set) / sizeof((set)[0]))])

/* A message under way: the fixed part, then strings. */
struct draft {
	union wire_fs_fixed fixed;
	char strings[MESSAGE_MAX - 512];
	uint32_t length; /* of the strings */
};

uint8_t input_take(struct fuzz_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static uint64_t take_ino(struct fuzz_input *in, uint64_t inodes)
{
	uint8_t byte = input_take(in);

	return byte < 0xf0 ? 1 + byte % inodes : 1 + inodes + byte;
}

/* Offsets and lengths: blocks, parts of blocks, and numbers at the limits. */
static uint64_t take_number(struct fuzz_input *in)
{
	static const uint64_t limits[] = { UINT64_MAX, INT64_MAX, 0x7ffffffffffff000u, 1, 0,
					   UINT64_MAX - FS_BLOCK };
	uint8_t byte = input_take(in);
	uint64_t number;

	if (byte >= 0xf8)
		return CHOOSE(in, limits);
	number = (uint64_t)((byte & 1) << 8 | input_take(in)) * FS_BLOCK;
	return byte & 4 ? number + 16u * input_take(in) : number;
}

/* Adds a name: mostly one of a few short ones. Long names fill replies; some are invalid. */
static uint32_t add_name(struct fuzz_input *in, struct draft *d, const char *prefix)
{
	static const char *const odd[] = { "", ".", "..", "a/b", "/", "" };
	uint8_t byte = input_take(in);
	char *to = d->strings + d->length;
	uint32_t start = d->length;

	d->length += (uint32_t)strlen(strcpy(to, prefix));
	to = d->strings + d->length;
	if (byte >= 0xfa) {
		d->length += (uint32_t)strlen(strcpy(to, odd[byte - 0xfa]));
	} else if (byte == 0xf9) {
		memset(to, 0, 3);
		d->length += 3;
	} else if (byte >= 0x80) {
		memset(to, 'x', 134u + byte % 0x80 - strlen(prefix));
		d->length += 134u + byte % 0x80 - (uint32_t)strlen(prefix);
	} else {
		*to = (char)('a' + byte % 8);
		d->length += 1;
	}
	return d->length - start;
}

static uint32_t add_filler(struct draft *d, uint32_t length)
{
	memset(d->strings + d->length, 'v', length);
	d->length += length;
	return length;
}

static void fill_make(struct fuzz_input *in, struct draft *d)
{
	static const uint32_t types[] = { 0100644, 0100600, 0040755, 0042775, 0120777,
					  0060600, 0010600, 0170000 };

	d->fixed.make.mode = CHOOSE(in, types);
	d->fixed.make.make = input_take(in) & 15;
	d->fixed.make.make &= d->fixed.make.make & 8 && d->fixed.make.make != 15 ? 7 : 15;
	d->fixed.head.name_length = add_name(in, d, "");
	if ((d->fixed.make.mode & 0170000) == 0120000)
		d->fixed.make.target_length = add_filler(d, 17u * input_take(in));
}

static void fill_setattr(struct fuzz_input *in, struct draft *d)
{
	d->fixed.setattr.mask = input_take(in);
	if (d->fixed.head.op != FS_SETATTR && !(d->fixed.setattr.mask & 1))
		d->fixed.setattr.mask &= ~FS_SET_SIZE;
	d->fixed.setattr.mode = input_take(in) * 16u;
	d->fixed.setattr.size = take_number(in);
	d->fixed.setattr.mtime.nsec = input_take(in) * 4000000u;
}

static void fill_lock(struct fuzz_input *in, struct draft *d, unsigned int client)
{
	static const uint32_t types[] = { F_RDLCK, F_WRLCK, F_UNLCK, F_WRLCK };
	uint8_t range = input_take(in), who = input_take(in);

	d->fixed.lock.start = range & 15;
	d->fixed.lock.end = d->fixed.lock.start + (range >> 4);
	if (d->fixed.lock.end >= LOCK_BYTES)
		d->fixed.lock.end = UINT64_MAX;
	d->fixed.lock.owner = who % LOCK_OWNERS;
	d->fixed.lock.cancel = d->fixed.lock.owner;
	d->fixed.lock.type = types[who >> 2 & 3];
	d->fixed.lock.flags = who >> 4 & (FS_LOCK_FLOCK | FS_LOCK_WAIT);
	d->fixed.lock.pid = client * LOCK_OWNERS + (uint32_t)d->fixed.lock.owner;
	if (who >= 0xf8) { /* refused, whatever the rest */
		d->fixed.lock.type = who;
		d->fixed.lock.start = UINT64_MAX;
	}
}

static void fill_range(struct fuzz_input *in, struct draft *d)
{
	static const uint32_t modes[] = {
		0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0xffff };

	/* offset and length are at the same places in all requests with a range */
	d->fixed.range.offset = take_number(in);
	d->fixed.range.length = take_number(in);
	if (d->fixed.head.op == FS_FALLOCATE)
		d->fixed.fallocate.mode = CHOOSE(in, modes);
}

static void fill_xattr(struct fuzz_input *in, struct draft *d)
{
	static const char *const spaces[] = { "user.", "user.", "trusted.", "usher." };

	d->fixed.head.name_length = add_name(in, d, CHOOSE(in, spaces));
	if (d->fixed.head.op != FS_SETXATTR)
		return;
	d->fixed.xattr.flags = input_take(in) & 3;
	d->fixed.xattr.value_length = add_filler(d, input_take(in) % 64 * 131u);
}

static void fill(struct fuzz_input *in, struct draft *d, uint64_t inodes, unsigned int client)
{
	switch (d->fixed.head.op) {
	case FS_MOUNT:
		d->fixed.mount.magic = FS_MAGIC;
		d->fixed.mount.version = FS_VERSION;
		break;
	case FS_VOLUME:
		d->fixed.volume.first = input_take(in) % 8;
		break;
	case FS_MAKE:
		fill_make(in, d);
		break;
	case FS_LINK:
		d->fixed.link.parent = take_ino(in, inodes);
		d->fixed.head.name_length = add_name(in, d, "");
		break;
	case FS_RENAME:
		d->fixed.rename.parent = take_ino(in, inodes);
		d->fixed.rename.flags = input_take(in) % 4;
		d->fixed.head.name_length = add_name(in, d, "");
		d->fixed.rename.new_length = add_name(in, d, "");
		break;
	case FS_LOOKUP:
	case FS_UNLINK:
	case FS_RMDIR:
		d->fixed.head.name_length = add_name(in, d, "");
		break;
	case FS_SETATTR:
	case FS_COMMIT:
	case FS_CLOSE:
		fill_setattr(in, d);
		break;
	case FS_OPEN:
		d->fixed.open.flags = input_take(in);
		d->fixed.open.open = d->fixed.open.flags >> 2 & FS_OPEN_MAP;
		d->fixed.open.flags = d->fixed.open.flags & 1 ? O_TRUNC | O_RDWR :
								d->fixed.open.flags & O_RDWR;
		break;
	case FS_READDIR:
		d->fixed.readdir.cookie = input_take(in) % 128;
		break;
	case FS_MAP:
	case FS_ALLOC:
	case FS_FALLOCATE:
		fill_range(in, d);
		break;
	case FS_SETXATTR:
	case FS_GETXATTR:
	case FS_REMOVEXATTR:
		fill_xattr(in, d);
		break;
	case FS_GETLK:
	case FS_SETLK:
	case FS_CANCELLK:
		fill_lock(in, d, client);
		break;
	case FS_RETURN:
		d->fixed.recall.epoch = input_take(in);
		break;
	}
}

static uint32_t fixed_size(uint8_t op)
{
	static const uint8_t sizes[] = {
		[FS_MOUNT] = sizeof(struct wire_fs_mount),
		[FS_VOLUME] = sizeof(struct wire_fs_volume),
		[FS_SETATTR] = sizeof(struct wire_fs_setattr),
		[FS_MAKE] = sizeof(struct wire_fs_make),
		[FS_LINK] = sizeof(struct wire_fs_link),
		[FS_RENAME] = sizeof(struct wire_fs_rename),
		[FS_OPEN] = sizeof(struct wire_fs_open),
		[FS_READDIR] = sizeof(struct wire_fs_readdir),
		[FS_MAP] = sizeof(struct wire_fs_range),
		[FS_ALLOC] = sizeof(struct wire_fs_range),
		[FS_COMMIT] = sizeof(struct wire_fs_setattr),
		[FS_FALLOCATE] = sizeof(struct wire_fs_fallocate),
		[FS_SETXATTR] = sizeof(struct wire_fs_xattr),
		[FS_GETLK] = sizeof(struct wire_fs_lock),
		[FS_SETLK] = sizeof(struct wire_fs_lock),
		[FS_CANCELLK] = sizeof(struct wire_fs_lock),
		[FS_RETURN] = sizeof(struct wire_fs_recall),
		[FS_SHARED] = 0,
		[FS_CLOSE] = sizeof(struct wire_fs_setattr),
	};

	return op < sizeof(sizes) && sizes[op] ? sizes[op] : sizeof(struct wire_fs_head);
}

size_t message_make(struct fuzz_input *in, uint8_t op, uint64_t inodes, unsigned int client,
		    uint8_t *message)
{
	struct draft d = { .length = 0 };
	uint32_t fixed = fixed_size(op);

	d.fixed.head.op = op;
	d.fixed.head.ino = take_ino(in, inodes);
	d.fixed.head.uid = client;
	fill(in, &d, inodes, client);
	memcpy(message, &d, fixed);
	memcpy(message + fixed, d.strings, d.length);
	return fixed + d.length;
}
