/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two clients send arbitrary requests. The file system answers each call once and stays
 * consistent: it touches no foreign memory, and accounts for all of its space after both have
 * left.
 *
 * The input is a list of messages. Most are repaired to get deep: small inode numbers, lengths
 * that fit. The rest is used as is.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/fsd.h"

#define CHUNK (16u * FS_BLOCK)
#define CHUNKS 4
#define CALLS_MAX 2048 /* of one input */
#define FIXED_MAX 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	void *chunk[CHUNKS];
	unsigned int nr_chunks, nr_calls;
	uint8_t answered[CALLS_MAX];
	uint64_t now_ns;
} host;

static int take_chunk(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory)
{
	(void)arg;
	if (host.nr_chunks == CHUNKS)
		return -28;
	*memory = calloc(1, length);
	host.chunk[host.nr_chunks++] = *memory;
	*chunk = (struct wire_fs_chunk){ (uintptr_t)*memory, length, 1, 0 };
	return 0;
}

static uint64_t room(void *arg)
{
	(void)arg;
	return (CHUNKS - host.nr_chunks) * (uint64_t)CHUNK;
}

static int discard_message(void *arg, void *peer, const void *message, size_t length)
{
	struct wire_fs_head head;

	(void)arg;
	(void)peer;
	assert(length >= sizeof(head));
	memcpy(&head, message, sizeof(head));
	assert(head.op >= FS_RECALL);
	return 0;
}

static void answer(void *arg, void *call, const void *reply, size_t length)
{
	uint8_t *answered = call;
	struct wire_fs_reply head;

	(void)arg;
	assert(!(*answered)++);
	assert(length >= sizeof(head) && length <= FSD_MESSAGE_MAX);
	memcpy(&head, reply, sizeof(head));
	assert(head.status <= 0 && (!head.status || length == sizeof(head)));
}

static void wall(void *arg, struct wire_fs_time *now)
{
	(void)arg;
	now->sec = 1;
}

static uint64_t clock_ns(void *arg)
{
	(void)arg;
	return host.now_ns += 100000000;
}

static const uint8_t fixed_size[] = {
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
};

/* Repair a message, to pass the first checks. */
static void mend(uint8_t *message, size_t fixed, size_t length)
{
	struct wire_fs_head head;
	struct wire_fs_make make;
	uint32_t strings = length - fixed, first = strings;
	uint64_t small;

	memcpy(&head, message, sizeof(head));
	head.ino = 1 + head.ino % 12;
	if (head.op == FS_MAKE) {
		static const uint32_t types[] = { 0100644, 0100644, 0040755, 0120777 };

		memcpy(&make, message, sizeof(make));
		make.mode = types[make.mode % 4];
		make.make &= 3;
		make.target_length = make.mode == 0120777 ? strings / 2 : 0;
		first -= make.target_length;
		memcpy(message, &make, sizeof(make));
	} else if (head.op == FS_RENAME || head.op == FS_SETXATTR) {
		uint32_t second = strings / 2;
		size_t at = head.op == FS_RENAME ? offsetof(struct wire_fs_rename, new_length) :
						   offsetof(struct wire_fs_xattr, value_length);

		first -= second;
		memcpy(message + at, &second, sizeof(second));
	}
	if (head.op == FS_LINK || head.op == FS_RENAME) { /* the other directory */
		memcpy(&small, message + sizeof(head), sizeof(small));
		small = 1 + small % 12;
		memcpy(message + sizeof(head), &small, sizeof(small));
	}
	if (head.op == FS_MAP || head.op == FS_ALLOC || head.op == FS_FALLOCATE) {
		for (size_t at = sizeof(head); at < sizeof(struct wire_fs_range); at += 8) {
			memcpy(&small, message + at, sizeof(small));
			small %= 2 * CHUNKS * CHUNK;
			memcpy(message + at, &small, sizeof(small));
		}
	}
	head.name_length = first;
	memcpy(message, &head, sizeof(head));
}

static void request(struct fsd_client *client, const uint8_t *bytes, size_t length, uint8_t op,
		    bool mended)
{
	size_t fixed = op < sizeof(fixed_size) && fixed_size[op] ? fixed_size[op] :
								   sizeof(struct wire_fs_head);
	uint8_t *message;

	if (mended && length < fixed)
		return;
	message = malloc(length ? length : 1);
	memcpy(message, bytes, length);
	if (mended) {
		message[0] = op;
		message[1] = 0;
		mend(message, fixed, length);
	}
	if (host.nr_calls < CALLS_MAX)
		fsd_request(client, &host.answered[host.nr_calls++], message, length);
	free(message);
}

static void mount(struct fsd_client *client)
{
	struct wire_fs_mount m = { .head.op = FS_MOUNT, .magic = FS_MAGIC, .version = FS_VERSION };
	struct wire_fs_head shared = { .op = FS_SHARED };

	fsd_request(client, &host.answered[host.nr_calls++], &m, sizeof(m));
	fsd_request(client, NULL, &shared, sizeof(shared));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fsd_host functions = { take_chunk, room, discard_message, answer, wall,
				      clock_ns,	  NULL };
	struct fsd_options options = { .bytes_max = CHUNKS * CHUNK, .chunk_bytes = CHUNK };
	struct fsd_client *client[2];
	struct fsd_info info;
	struct fsd *fsd;

	memset(&host, 0, sizeof(host));
	assert(!fsd_open(&functions, &options, &fsd));
	assert(!fsd_join(fsd, NULL, &client[0]));
	assert(!fsd_join(fsd, NULL, &client[1]));
	mount(client[0]);
	mount(client[1]);
	/*
	 * The first byte selects the client and whether to repair, the second the operation,
	 * the third the length.
	 */
	while (size >= 3) {
		size_t length = data[2] < size - 3 ? data[2] : size - 3;

		request(client[data[0] & 1], data + 3, length, data[1] % 32, data[0] & 6);
		if (data[0] & 8)
			fsd_work(fsd);
		if (data[0] & 16)
			fsd_expired(fsd);
		data += 3 + length;
		size -= 3 + length;
	}
	fsd_leave(client[0]);
	fsd_leave(client[1]);
	for (unsigned int i = 0; i < host.nr_calls; i++)
		assert(host.answered[i] == 1);
	fsd_info(fsd, &info);
	assert(!info.bytes_limbo && !info.mounted);
	fsd_close(fsd);
	for (unsigned int i = 0; i < host.nr_chunks; i++)
		free(host.chunk[i]);
	return 0;
}
