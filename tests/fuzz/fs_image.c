/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The image of a file server with some of its bytes changed, or with words copied to where others
 * were: it is refused, or it is a state that can be saved, loaded and used again.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fsd/image/image.h"
#include "fsd/lock.h"
#include "tests/fuzz/fs_check.h"

#define BYTES (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char waiting[2]; /* the calls that wait for a lock */
static unsigned int asked; /* which of them asks now */

static int take_chunk(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory)
{
	(void)arg;
	*chunk = (struct wire_fs_chunk){ .length = length };
	*memory = NULL;
	return 0;
}

static uint64_t room(void *arg)
{
	(void)arg;
	return BYTES;
}

static int send_nothing(void *arg, void *peer, const void *message, size_t length)
{
	(void)arg;
	(void)peer;
	(void)message;
	(void)length;
	return 0;
}

static void ignore_answer(void *arg, void *call, const void *reply, size_t length)
{
	(void)arg;
	(void)call;
	(void)reply;
	(void)length;
}

static void wall(void *arg, struct wire_fs_time *now)
{
	(void)arg;
	*now = (struct wire_fs_time){ .sec = 1 };
}

static uint64_t clock_ns(void *arg)
{
	(void)arg;
	return 0;
}

static void move(void *arg, const struct fsd_data *piece)
{
	(void)arg;
	if (piece->volume > BYTES || piece->length > BYTES)
		abort();
}

static uint64_t number(const void *call)
{
	return 1 + (uint64_t)((const char *)call - waiting);
}

static void *find_call(void *arg, uint64_t client, uint64_t call)
{
	(void)arg;
	(void)client;
	return call == 1 || call == 2 ? &waiting[call - 1] : NULL;
}

static const struct fsd_host host = {
	.take_chunk = take_chunk,
	.room = room,
	.tell = send_nothing,
	.answer = ignore_answer,
	.wall = wall,
	.clock_ns = clock_ns,
	.data = move,
};
static const struct fsd_options options = { .bytes_max = BYTES, .chunk_bytes = BYTES };
static const struct fsd_image_calls calls = { number, find_call, NULL };

static void ask(struct fsd_client *client, enum wire_fs_op op, uint64_t ino, void *fixed,
		size_t size, const char *name)
{
	struct wire_fs_head head = { .op = (uint16_t)op, .ino = ino };
	char message[256];

	head.name_length = name ? (uint32_t)strlen(name) : 0;
	memcpy(message, fixed, size);
	memcpy(message, &head, sizeof(head));
	if (name)
		memcpy(message + size, name, strlen(name));
	fsd_request(client, &waiting[asked], message, size + head.name_length);
}

/* Each kind of file, and each kind of state. */
static void use(struct fsd_client *client)
{
	struct wire_fs_mount mount = { .magic = FS_MAGIC, .version = FS_VERSION };
	struct wire_fs_make make = { .mode = S_IFDIR | 0700 };
	struct wire_fs_transfer write = { .offset = 5000, .place = 904, .length = 9000 };
	struct wire_fs_lock lock = { .end = UINT64_MAX, .type = F_WRLCK };
	struct wire_fs_xattr xattr = { 0 };
	struct wire_fs_rename rename = { .parent = 2, .new_length = 1 };

	ask(client, FS_MOUNT, FS_ROOT, &mount, sizeof(mount), NULL);
	ask(client, FS_MAKE, FS_ROOT, &make, sizeof(make), "d");
	ask(client, FS_MAKE, 2, &make, sizeof(make), "below");
	make.mode = S_IFREG | 0600;
	make.make = FS_MAKE_OPEN;
	ask(client, FS_MAKE, 2, &make, sizeof(make), "f");
	ask(client, FS_MAKE, FS_ROOT, &make, sizeof(make), "g");
	ask(client, FS_WRITE, 4, &write, sizeof(write), NULL);
	ask(client, FS_SETXATTR, 4, &xattr, sizeof(xattr), "user.x");
	lock.owner = 1;
	ask(client, FS_SETLK, 4, &lock, sizeof(lock), NULL);
	lock.owner = 2;
	lock.flags = FS_LOCK_WAIT;
	ask(client, FS_SETLK, 4, &lock, sizeof(lock), NULL);
	lock.owner = 3;
	asked = 1;
	ask(client, FS_SETLK, 4, &lock, sizeof(lock), NULL);
	asked = 0;
	ask(client, FS_RENAME, FS_ROOT, &rename, sizeof(rename), "de");
	ask(client, FS_UNLINK, 2, &rename, sizeof(rename.head), "f");
}

static void make_image(struct fsd_bytes *image)
{
	struct fsd_client *client;
	struct fsd *fsd;

	if (fsd_open(&host, &options, &fsd) || fsd_join(fsd, NULL, &client))
		abort();
	use(client);
	if (fsd_image_save(fsd, &calls, image))
		abort();
	fsd_close(fsd);
}

/* A call waits for one lock, and is answered once. */
static void check_waits(const struct fsd *fsd)
{
	const struct fsd_client *client;
	const struct fsd_wait *wait, *other;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		TAILQ_FOREACH(wait, &client->waits, of_client) {
			other = wait;
			while ((other = TAILQ_NEXT(other, of_client)))
				assert(other->call != wait->call);
		}
	}
}

/* Loads an image, uses the server, and saves it. Return: false: the image is refused. */
static bool load(const struct fsd_bytes *image, struct fsd_bytes *again)
{
	struct fsd_reader reader = { image->at, image->length };
	struct fsd_client *client;
	struct fsd *fsd;

	if (fsd_image_load(&host, &options, &calls, &reader, &fsd))
		return false;
	check_tree(fsd);
	check_waits(fsd);
	if (fsd_join(fsd, NULL, &client))
		abort();
	use(client);
	check_tree(fsd);
	fsd_leave(client);
	if (fsd_image_save(fsd, &calls, again))
		abort();
	fsd_close(fsd);
	return true;
}

/* @data: a place and a value; or, by the place's highest bit, another place, whose word it gets */
static size_t change(struct fsd_bytes *image, const uint8_t *data, size_t size)
{
	size_t at = (data[0] | (data[1] & 0x7f) << 8) % image->length, from;

	if (!(data[1] & 0x80) || size < 4) {
		image->at[at] ^= data[2];
		return 3;
	}
	from = (data[2] | data[3] << 8) % image->length;
	if (at + 8 <= image->length && from + 8 <= image->length)
		memmove(image->at + at, image->at + from, 8);
	return 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fsd_bytes image = { 0 }, again = { 0 }, last = { 0 };

	make_image(&image);
	while (size >= 3) {
		size_t used = change(&image, data, size);

		data += used;
		size -= used;
	}
	image.length -= size ? data[0] % image.length : 0;
	if (load(&image, &again) && !load(&again, &last))
		abort(); /* a saved image must load */
	fsd_bytes_free(&image);
	fsd_bytes_free(&again);
	fsd_bytes_free(&last);
	return 0;
}
