/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two clients send arbitrary requests. The file system answers each call once and stays
 * consistent: it touches no foreign memory, keeps names, links, opens, blocks and locks as the
 * answers say, and accounts for all of its space after both have left.
 *
 * The input is a list of steps. The first byte selects the client and what happens beside the
 * request, the second the operation. Most requests are made from choices, so that they meet; some
 * are the bytes of the input.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/fsd.h"
#include "fsd/inode.h"
#include "tests/fuzz/fs_check.h"
#include "tests/fuzz/fs_locks.h"
#include "tests/fuzz/fs_message.h"

#define CHUNK (256u * FS_BLOCK)
#define CHUNKS 3
#define CALLS_MAX 4096 /* of one input */
#define CLIENTS 2

#define STEP_CLIENT 1
/* 7: the input's bytes; 6: the client leaves and comes again; 5: a few bytes are missing */
#define STEP_KIND 0x0e
#define STEP_WORKS 0x10
#define STEP_EXPIRES 0x20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_call {
	bool is_answered;
	uint8_t op;
	unsigned int client;
	int status;
	struct wire_fs_lock lock; /* of an FS_SETLK or FS_GETLK */
};

#define CLOSE_FROM 252u /* a multiple of the number of operations before FS_CLOSE */

static struct {
	void *chunk[CHUNKS];
	unsigned int nr_chunks, nr_calls;
	struct fuzz_call call[CALLS_MAX];
	uint64_t now_ns;
	bool is_deaf; /* clients take no messages */
	struct fsd *fsd;
	struct fsd_client *client[CLIENTS], *observer;
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
	return host.is_deaf ? -11 : 0;
}

static void answer(void *arg, void *opaque, const void *reply, size_t length)
{
	struct fuzz_call *call = opaque;
	struct wire_fs_reply head;

	(void)arg;
	assert(!call->is_answered);
	call->is_answered = true;
	assert(length >= sizeof(head) && length <= FSD_MESSAGE_MAX);
	memcpy(&head, reply, sizeof(head));
	assert(head.status <= 0 && (!head.status || length == sizeof(head)));
	call->status = head.status;
	if (head.status)
		return;
	check_reply(call->op, reply, length);
	if (call->op == FS_SETLK)
		locks_set(call->client, &call->lock);
	if (call->op == FS_GETLK && length == sizeof(head) + sizeof(call->lock))
		memcpy(&call->lock, (const char *)reply + sizeof(head), sizeof(call->lock));
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

static bool get_lock(struct wire_fs_lock *lock)
{
	struct fuzz_call call = { .op = FS_GETLK };

	fsd_request(host.observer, &call, lock, sizeof(*lock));
	assert(call.is_answered);
	*lock = call.lock;
	return !call.status;
}

static void submit(unsigned int client, const void *message, size_t length)
{
	struct fuzz_call *call = &host.call[host.nr_calls++];
	struct wire_fs_head head = { 0 };
	void *copy = malloc(length ? length : 1); /* so that a sanitizer knows its end */

	memcpy(copy, message, length);
	if (length >= sizeof(head))
		memcpy(&head, message, sizeof(head));
	*call = (struct fuzz_call){ .op = (uint8_t)head.op, .client = client };
	if (head.op == FS_SETLK)
		memcpy(&call->lock, message, sizeof(call->lock));
	(void)fsd_may_change(copy, length); /* as a server with a log asks first */
	fsd_request(host.client[client], call, copy, length);
	free(copy);
	if (head.op == FS_SETLK && !call->is_answered)
		locks_given_up(client, &call->lock);
}

static void check_all(uint64_t ino)
{
	check_tree(host.fsd);
	check_blocks(host.fsd);
	for (unsigned int i = 0; i < CLIENTS; i++)
		locks_sync(host.fsd, i, host.client[i]);
	locks_check(ino, get_lock);
}

static void join(unsigned int client)
{
	struct wire_fs_mount m = { .head.op = FS_MOUNT, .magic = FS_MAGIC, .version = FS_VERSION };
	struct wire_fs_head shared = { .op = FS_SHARED };

	assert(!fsd_join(host.fsd, NULL, &host.client[client]));
	submit(client, &m, sizeof(m));
	fsd_request(host.client[!client] ? host.client[!client] : host.client[client], NULL,
		    &shared, sizeof(shared));
	fsd_request(host.observer, NULL, &shared, sizeof(shared));
}

static void leave(unsigned int client)
{
	fsd_leave(host.client[client]);
	host.client[client] = NULL;
	for (unsigned int i = 0; i < host.nr_calls; i++)
		assert(host.call[i].is_answered || host.call[i].client != client);
}

static void request(struct fuzz_input *in, unsigned int client, unsigned int kind)
{
	uint8_t byte = input_take(in), message[MESSAGE_MAX];
	uint8_t op = byte < CLOSE_FROM ? 1 + byte % FS_SHARED : FS_CLOSE;
	struct wire_fs_head head = { 0 };
	size_t length;

	if (kind == 7 && op != FS_SETLK) {
		length = input_take(in);
		length = length < in->left ? length : in->left;
		memcpy(message, in->at, length);
		in->at += length;
		in->left -= length;
		if (length > 1 && message[1]) {
			message[0] = op;
			message[1] = 0;
		}
		if (length > 1 && message[0] == FS_SETLK)
			message[0] = FS_GETATTR;
	} else {
		length = message_make(in, op, host.fsd->next_ino - 1, client, message);
		length -= kind == 5 ? input_take(in) % 8 : 0;
	}
	if (length >= sizeof(head))
		memcpy(&head, message, sizeof(head));
	submit(client, message, length);
	check_all(head.ino);
}

static void step(struct fuzz_input *in)
{
	uint8_t byte = input_take(in);
	unsigned int client = byte & STEP_CLIENT, kind = (byte & STEP_KIND) >> 1;

	host.is_deaf = byte >> 6 == 3;
	if (kind == 6 && byte & STEP_WORKS) {
		leave(client);
		check_all(1);
		join(client);
	}
	request(in, client, kind);
	if (byte & STEP_WORKS)
		fsd_work(host.fsd);
	if (byte & STEP_EXPIRES)
		fsd_expired(host.fsd);
}

/* Removes a name that can be removed. */
static bool remove_one(void)
{
	const struct fsd_hashtable *names = &host.fsd->names;

	for (uint64_t i = 0; i < names->buckets; i++) {
		struct fsd_hash_node *node = fsd_hashtable_bucket(names, i);

		for (; node; node = node->next) {
			const struct fsd_name *name = (const struct fsd_name *)node;
			struct wire_fs_head head = { .op = FS_UNLINK, .ino = name->dir->ino };
			uint8_t message[sizeof(head) + FS_NAME_MAX];

			if (fsd_inode_is_dir(name->inode))
				head.op = FS_RMDIR;
			if (fsd_inode_is_dir(name->inode) && name->inode->dir.names)
				continue;
			head.name_length = name->length;
			memcpy(message, &head, sizeof(head));
			memcpy(message + sizeof(head), name->text, name->length);
			fsd_request(host.observer, NULL, message, sizeof(head) + name->length);
			return true;
		}
	}
	return false;
}

static void end(void)
{
	struct fsd_info info;

	leave(0);
	leave(1);
	check_all(1);
	fsd_expired(host.fsd);
	while (remove_one())
		;
	fsd_work(host.fsd);
	check_all(1);
	fsd_info(host.fsd, &info);
	assert(info.files == 1 && !info.bytes_used && !info.bytes_limbo && info.mounted == 1);
	if (TAILQ_EMPTY(&host.fsd->root->xattrs))
		assert(host.fsd->meta_bytes == sizeof(struct fsd_inode));
	fsd_leave(host.observer);
	fsd_close(host.fsd);
	for (unsigned int i = 0; i < host.nr_chunks; i++)
		free(host.chunk[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fsd_host functions = { take_chunk, room, discard_message, answer, wall,
						   clock_ns, NULL };
	static const struct fsd_options options = { .bytes_max = (uint64_t)CHUNKS * CHUNK,
						    .chunk_bytes = CHUNK };
	static const struct wire_fs_mount m = { .head.op = FS_MOUNT, .magic = FS_MAGIC,
						.version = FS_VERSION };
	struct fuzz_input in = { data, size };
	struct fuzz_call mounts = { .op = FS_MOUNT };

	memset(&host, 0, sizeof(host));
	locks_init();
	assert(!fsd_open(&functions, &options, &host.fsd));
	assert(!fsd_join(host.fsd, NULL, &host.observer));
	fsd_request(host.observer, &mounts, &m, sizeof(m));
	join(0);
	join(1);
	while (in.left >= 3 && host.nr_calls < CALLS_MAX - CLIENTS)
		step(&in);
	end();
	return 0;
}
