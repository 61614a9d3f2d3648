/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lone client sends arbitrary batches of changes, reserves files and numbers, and copies
 * directories. The file system stays consistent, gives no number twice, and tells the result of
 * each change. Once a second client has mounted without the first client's consent, batches change
 * no names.
 *
 * The input is a list of steps: a byte selects the kind, the rest makes the changes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/fsd.h"
#include "fsd/inode.h"
#include "tests/fuzz/fs_check.h"
#include "tests/fuzz/fs_message.h"

#define CHUNK (256u * FS_BLOCK)
#define CHUNKS 3
#define STEPS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	void *chunk[CHUNKS];
	unsigned int nr_chunks;
	uint64_t now_ns;
	struct fsd *fsd;
	struct fsd_client *client, *other;
	uint64_t batch; /* number of the next */
	uint64_t first, numbers; /* reserved */
	bool is_copied; /* blocks of files are not zero from now on */
	size_t length; /* of the last reply */
	uint8_t reply[FSD_MESSAGE_MAX];
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
	(void)arg;
	(void)peer;
	(void)message;
	(void)length;
	return 0;
}

/* Mounts have no call to look at. */
static void answer(void *arg, void *call, const void *reply, size_t length)
{
	(void)arg;
	assert(length <= FSD_MESSAGE_MAX);
	if (call != &host)
		return;
	assert(!host.length);
	host.length = length;
	memcpy(host.reply, reply, length);
}

static void wall(void *arg, struct wire_fs_time *now)
{
	(void)arg;
	now->sec = 1;
}

static uint64_t clock_ns(void *arg)
{
	(void)arg;
	return host.now_ns;
}

/* Return: the status. */
static int submit(const void *message, size_t length)
{
	void *copy = malloc(length); /* so that a sanitizer knows its end */
	struct wire_fs_reply head;

	memcpy(copy, message, length);
	host.length = 0;
	fsd_request(host.client, &host, copy, length);
	free(copy);
	while (!host.length && host.fsd->snapshot)
		fsd_work(host.fsd);
	assert(host.length >= sizeof(head));
	memcpy(&head, host.reply, sizeof(head));
	return head.status;
}

static void join(struct fsd_client **client)
{
	const struct wire_fs_mount m = { .head.op = FS_MOUNT, .magic = FS_MAGIC,
					 .version = FS_VERSION };

	assert(!fsd_join(host.fsd, NULL, client));
	fsd_request(*client, &host.batch, &m, sizeof(m));
}

static void reserve(struct fuzz_input *in)
{
	const struct wire_fs_reserve wanted = {
		.head.op = FS_RESERVE,
		.files = input_take(in) % (FS_RESERVE_FILES_MAX + 2),
		.numbers = input_take(in),
	};
	struct wire_fs_reserved reserved;
	struct wire_fs_attr attr;

	if (submit(&wanted, sizeof(wanted)))
		return;
	assert(host.length >= sizeof(reserved));
	memcpy(&reserved, host.reply, sizeof(reserved));
	assert(reserved.files <= wanted.files && reserved.numbers == wanted.numbers);
	assert(!reserved.numbers || reserved.first >= host.first + host.numbers);
	if (reserved.files) {
		memcpy(&attr, host.reply + sizeof(reserved), sizeof(attr));
		assert(!attr.nlink && !attr.size && !attr.blocks);
	}
	if (reserved.numbers) {
		host.first = reserved.first;
		host.numbers = reserved.numbers;
	}
}

/* Mostly of a possible inode. */
static size_t name_something(struct fuzz_input *in, uint8_t *message)
{
	static const uint32_t modes[] = { 0100644, 0040755, 0120777, 0100600, 0042755, 0010600 };
	uint8_t byte = input_take(in);
	struct wire_fs_name name = { .head = { .op = FS_NAME, .ino = 1 + input_take(in) % 8 } };
	char text[1 + 3] = { (char)('a' + byte % 8), 'f', 'a', 'r' };

	name.head.name_length = 1;
	name.mode = modes[byte / 8 % 6];
	name.ino = (name.mode & 0170000) == 0100000 ?
			   host.fsd->next_ino - 1 - input_take(in) % 40 :
			   host.first + input_take(in) % (host.numbers + 40);
	name.target_length = (name.mode & 0170000) == 0120000 || byte == 0xff ? 3 : 0;
	memcpy(message, &name, sizeof(name));
	memcpy(message + sizeof(name), text, 1 + name.target_length);
	return sizeof(name) + 1 + name.target_length;
}

static size_t make_change(struct fuzz_input *in, uint8_t *message)
{
	static const uint8_t ops[] = { FS_UNLINK, FS_RMDIR, FS_RENAME, FS_SETATTR, FS_COMMIT,
				       FS_CLOSE, FS_RELEASE, FS_UNLINK };
	uint8_t byte = input_take(in);

	if (byte < 0x60)
		return name_something(in, message);
	if (byte >= 0xf0) /* mostly refused */
		return message_make(in, input_take(in) % 48, host.fsd->next_ino - 1, 0, message);
	return message_make(in, ops[byte % 8], host.fsd->next_ino - 1, 0, message);
}

static uint16_t ops[FS_BATCH_MAX + 1]; /* of the changes of a batch */

static bool is_name_change(uint16_t op)
{
	return op == FS_NAME || op == FS_UNLINK || op == FS_RMDIR || op == FS_RENAME;
}

/* After a name that fails, names are skipped; after a malformed change, all. */
static void check_results(const struct wire_fs_batch *batch)
{
	size_t at = sizeof(struct wire_fs_batched);
	struct wire_fs_result result;
	bool is_cut = false, is_whole = true;

	for (uint32_t i = 0; i < batch->changes; i++) {
		assert(host.length - at >= sizeof(result));
		memcpy(&result, host.reply + at, sizeof(result));
		assert((is_whole && !(is_cut && is_name_change(ops[i]))) || result.status == -125);
		is_whole &= result.status != -125 || (is_cut && is_name_change(ops[i]));
		is_cut |= result.status && is_name_change(ops[i]);
		assert(!result.length || result.length == sizeof(struct wire_fs_attr));
		at += sizeof(result) + result.length;
		assert(at <= host.length);
	}
	assert(at == host.length);
}

static void send_batch(struct fuzz_input *in, unsigned int changes)
{
	static uint8_t bytes[sizeof(struct wire_fs_batch) + 70000];
	struct wire_fs_batch batch = { .head.op = FS_BATCH, .number = host.batch };
	uint8_t *at = bytes + sizeof(batch), message[MESSAGE_MAX], odd = input_take(in);
	uint32_t padding = 0;
	bool again;
	int status;

	while (batch.changes < changes) {
		struct wire_fs_change change = { .time.sec = batch.changes };

		change.length = (uint32_t)make_change(in, message);
		if (at + sizeof(change) + change.length + 8 > bytes + sizeof(bytes))
			break;
		memset(at, 0, sizeof(change) + change.length + 8);
		memcpy(at + sizeof(change), message, change.length);
		ops[batch.changes] = (uint16_t)(message[0] | message[1] << 8);
		padding = (8 - change.length % 8) % 8;
		if (odd >= 0xf8 && batch.changes == odd - 0xf8u)
			change.length += odd % 2 ? 100000 : 9;
		memcpy(at, &change, sizeof(change));
		at += sizeof(change) + (change.length % 100000 + 7) / 8 * 8;
		batch.changes++;
	}
	at = at > bytes + sizeof(bytes) ? bytes + sizeof(bytes) : at;
	batch.bytes = (uint32_t)(at - bytes - sizeof(batch));
	batch.changes += odd == 0xf0 || odd == 0xf2;
	batch.bytes -= odd == 0xf2 ? padding : 0; /* of the last change */
	if (odd == 0xf0 || odd == 0xf2)
		ops[batch.changes - 1] = 0; /* missing */
	batch.number += odd == 0xf1;
	memcpy(bytes, &batch, sizeof(batch));
	status = submit(bytes, sizeof(batch) + batch.bytes);
	again = !status && odd % 4 == 0;
	if (status)
		return;
	host.batch++;
	check_results(&batch);
	assert(!again || submit(bytes, sizeof(batch) + batch.bytes));
}

static void check_all(void)
{
	const struct fsd_inode *inode;

	for (uint64_t i = 0; (inode = check_inode(host.fsd, i)); i++)
		assert(inode->ino < host.fsd->next_ino); /* later numbers are higher */
	check_tree(host.fsd);
	if (!host.is_copied)
		check_blocks(host.fsd);
}

/* Another client mounts, with or without consent, and leaves. */
static void interrupt(bool agrees, struct fuzz_input *in)
{
	const struct wire_fs_head shared = { .op = FS_SHARED };
	const uint64_t names = host.fsd->names.nr, batch = host.batch;

	join(&host.other);
	if (agrees) {
		submit(&shared, sizeof(shared));
	} else {
		host.now_ns += 100 * FS_ALONE_MS * 1000000ull;
		fsd_expired(host.fsd);
	}
	send_batch(in, 3);
	/* Only changes of files have an effect now. */
	assert(host.batch - batch > 1 || host.fsd->names.nr == names);
	fsd_leave(host.other);
	submit(&shared, sizeof(shared));
}

/* Copies a directory, perhaps below itself, or something else. */
static void copy(struct fuzz_input *in)
{
	const struct wire_fs_snapshot snapshot = {
		.head = { .op = FS_SNAPSHOT, .ino = 1 + input_take(in) % 8, .name_length = 1 },
		.parent = 1 + input_take(in) % 8,
		.patience_ms = 1,
	};
	uint8_t message[sizeof(snapshot) + 1];
	const uint64_t names = host.fsd->names.nr;

	memcpy(message, &snapshot, sizeof(snapshot));
	message[sizeof(snapshot)] = 'a' + input_take(in) % 8;
	host.is_copied = true;
	if (!submit(message, sizeof(message)))
		return;
	while (host.fsd->snapshot)
		fsd_work(host.fsd);
	assert(host.fsd->names.nr == names);
}

static void step(struct fuzz_input *in)
{
	uint8_t byte = input_take(in);

	if (byte < 0x30) {
		reserve(in);
	} else if (byte >= 0xf0) {
		interrupt(byte % 2, in);
	} else if (byte >= 0xe8) {
		copy(in);
	} else {
		send_batch(in, byte < 0x38 ? FS_BATCH_MAX : byte % 8);
	}
	check_all();
	if (byte % 4 == 0)
		fsd_work(host.fsd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fsd_host functions = { take_chunk, room, discard_message, answer, wall,
						   clock_ns, NULL };
	static const struct fsd_options options = { .bytes_max = (uint64_t)CHUNKS * CHUNK,
						    .chunk_bytes = CHUNK };
	struct fuzz_input in = { data, size };
	unsigned int steps = 0;

	memset(&host, 0, sizeof(host));
	host.batch = 1;
	assert(!fsd_open(&functions, &options, &host.fsd));
	join(&host.client);
	fsd_work(host.fsd);
	while (in.left && steps++ < STEPS_MAX)
		step(&in);
	fsd_leave(host.client);
	check_all();
	fsd_close(host.fsd);
	for (unsigned int i = 0; i < host.nr_chunks; i++)
		free(host.chunk[i]);
	return 0;
}
