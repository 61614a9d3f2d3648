/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The image of a file server with some of its bytes changed: it is refused, or it is a state that
 * can be saved, loaded and used again.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fsd/image/image.h"

#define BYTES (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char waiting; /* the call that waits for a lock */

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
	(void)call;
	return 1;
}

static void *find_call(void *arg, uint64_t client, uint64_t call)
{
	(void)arg;
	(void)client;
	return call == 1 ? &waiting : NULL;
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
	fsd_request(client, &waiting, message, size + head.name_length);
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
	make.mode = S_IFREG | 0600;
	make.make = FS_MAKE_OPEN;
	ask(client, FS_MAKE, 2, &make, sizeof(make), "f");
	ask(client, FS_WRITE, 3, &write, sizeof(write), NULL);
	ask(client, FS_SETXATTR, 3, &xattr, sizeof(xattr), "user.x");
	lock.owner = 1;
	ask(client, FS_SETLK, 3, &lock, sizeof(lock), NULL);
	lock.owner = 2;
	lock.flags = FS_LOCK_WAIT;
	ask(client, FS_SETLK, 3, &lock, sizeof(lock), NULL);
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

/* Loads an image, uses the server, and saves it. Return: false: the image is refused. */
static bool load(const struct fsd_bytes *image, struct fsd_bytes *again)
{
	struct fsd_reader reader = { image->at, image->length };
	struct fsd_client *client;
	struct fsd *fsd;

	if (fsd_image_load(&host, &options, &calls, &reader, &fsd))
		return false;
	if (fsd_join(fsd, NULL, &client))
		abort();
	use(client);
	fsd_leave(client);
	if (fsd_image_save(fsd, &calls, again))
		abort();
	fsd_close(fsd);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fsd_bytes image = { 0 }, again = { 0 }, last = { 0 };

	make_image(&image);
	for (; size >= 3; data += 3, size -= 3)
		image.at[(data[0] | data[1] << 8) % image.length] ^= data[2];
	image.length -= size ? data[0] % image.length : 0;
	if (load(&image, &again) && !load(&again, &last))
		abort(); /* a saved image must load */
	fsd_bytes_free(&image);
	fsd_bytes_free(&again);
	fsd_bytes_free(&last);
	return 0;
}
