/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile client of a server of files, for pool_test.py. Prints the statuses of its calls.
 *
 *	files_client ADDRESS beyond	a file's bytes beyond the staging area
 *	files_client ADDRESS many	mounts without an end
 *	files_client ADDRESS region	a region of its own
 *	files_client ADDRESS crowd KEY	as many connections as it gets, and a line of input's wait
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/key.h>
#include <weir/message.h>
#include <weir/region.h>
#include <weir/session.h>

#include "wire/fs.h"

#define MOUNTS 300u
#define CROWD 80u

static struct weir_session *session;
static uint64_t number;

static void connect_to(const char *address)
{
	const struct weir_session_options options = { .size = sizeof(options) };
	struct weir_error error;

	if (session)
		weir_session_close(session);
	if (!weir_session_open(address, &options, &session, &error))
		return;
	fprintf(stderr, "files_client: %s\n", error.text);
	exit(1);
}

/* Return: the status of the reply; @attr: NULL, or its first attributes. */
static int ask(uint64_t mount, const union wire_fs_fixed *fixed, size_t size, const char *name,
	       struct wire_fs_attr *attr)
{
	struct wire_fs_call head = { .mount = mount };
	union wire_fs_fixed first = *fixed;
	uint8_t message[512], bytes[1024] = { 0 };
	struct wire_fs_reply reply;
	size_t length;
	int rc;

	first.head.name_length = (uint32_t)strlen(name);
	head.number = head.answered = ++number;
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), &first, size);
	memcpy(message + sizeof(head) + size, name, strlen(name));
	rc = weir_call(session, message, sizeof(head) + size + strlen(name), bytes, sizeof(bytes),
		       &length);
	if (rc || length < sizeof(reply)) {
		fprintf(stderr, "files_client: no reply: %s\n", strerror(-rc));
		exit(1);
	}
	memcpy(&reply, bytes, sizeof(reply));
	if (attr)
		memcpy(attr, bytes + sizeof(reply), sizeof(*attr));
	return reply.status;
}

static int mount(uint64_t id)
{
	const union wire_fs_fixed m = {
		.mount = { .head.op = FS_MOUNT, .magic = FS_MAGIC, .version = FS_VERSION },
	};

	return ask(id, &m, sizeof(m.mount), "", NULL);
}

static int write_at(uint64_t ino, uint64_t place)
{
	const union wire_fs_fixed t = { .transfer = { .head = { .op = FS_WRITE, .ino = ino },
						      .place = place,
						      .length = FS_BLOCK } };

	return ask(1, &t, sizeof(t.transfer), "", NULL);
}

/* The file has no blocks afterwards. */
static void write_beyond(void)
{
	const union wire_fs_fixed make = { .make = { .head = { .op = FS_MAKE, .ino = FS_ROOT },
						     .mode = S_IFREG | 0600,
						     .make = FS_MAKE_OPEN } };
	struct wire_fs_attr attr;
	union wire_fs_fixed get;

	printf("%d", mount(1));
	printf(" %d", ask(1, &make, sizeof(make.make), "beyond", &attr));
	printf(" %d", write_at(attr.ino, 1ull << 40));
	printf(" %d", write_at(attr.ino, -(uint64_t)FS_BLOCK));
	get = (union wire_fs_fixed){ .head = { .op = FS_GETATTR, .ino = attr.ino } };
	printf(" %d", ask(1, &get, sizeof(get.head), "", &attr));
	printf(" %llu %llu\n", (unsigned long long)attr.size, (unsigned long long)attr.blocks);
}

/* One connection has one mount, and one key half of the mounts. */
static void mount_many(const char *address)
{
	unsigned int admitted = 0;
	int status = 0;

	printf("%d", mount(1));
	printf(" %d", mount(2));
	for (uint64_t id = 2; !status && id < MOUNTS; id++) {
		do { /* the server soon takes the areas of closed connections back */
			connect_to(address);
			status = mount(id);
		} while (status == -ENOMEM && !usleep(100000));
		admitted += !status;
	}
	printf(" %u %d\n", admitted, status);
}

static void create_region(void)
{
	struct weir_region *region;

	printf("%d\n", weir_region_create(session, NULL, 1 << 20, 0, &region, NULL));
}

static int crowd(const char *address, const char *path)
{
	struct weir_session_options options = { .size = sizeof(options) };
	struct weir_session *others[CROWD];
	struct weir_key *key;
	unsigned int admitted = 0;

	if (weir_key_load(path, &key, NULL))
		return 1;
	options.key = key;
	while (admitted < CROWD && !weir_session_open(address, &options, &others[admitted], NULL))
		admitted++;
	printf("%u\n", admitted);
	fflush(stdout);
	(void)getchar();
	while (admitted)
		weir_session_close(others[--admitted]);
	weir_key_free(key);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[2], "crowd"))
		return crowd(argv[1], argv[3]);
	if (argc != 3)
		return 2;
	connect_to(argv[1]);
	if (!strcmp(argv[2], "beyond"))
		write_beyond();
	else if (!strcmp(argv[2], "region"))
		create_region();
	else
		mount_many(argv[1]);
	weir_session_close(session);
	return 0;
}
