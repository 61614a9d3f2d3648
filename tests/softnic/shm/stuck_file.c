// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The least of FUSE needed to open a file, spoken to the kernel directly, because a FUSE
 * library would go on answering.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stuck_file.h"

enum { ROOT_ID = 1, FILE_ID = 2, REQUEST_BYTES_MAX = 1 << 17, STUCK_S = 60 };

static void reply(int fd, uint64_t unique, void *body, size_t length)
{
	struct fuse_out_header h = { .len = sizeof(h) + length, .unique = unique };
	struct iovec v[] = { { &h, sizeof(h) }, { body, length } };

	if (writev(fd, v, 2) < 0)
		_exit(1);
}

static struct fuse_attr attr_of(uint64_t id)
{
	return (struct fuse_attr){
		.ino = id,
		.mode = id == ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0666,
		.nlink = 1,
		.uid = geteuid(),
		.gid = getegid(),
		.blksize = 4096,
	};
}

/* Answer up to the open; later requests get no answer. */
static void answer(int fd, const struct fuse_in_header *in)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = 4096,
	};
	struct fuse_entry_out entry = { .nodeid = FILE_ID, .attr = attr_of(FILE_ID) };
	struct fuse_attr_out attr = { .attr = attr_of(ROOT_ID) };
	struct fuse_open_out opened = { 0 };

	if (in->opcode == FUSE_INIT)
		reply(fd, in->unique, &init, sizeof(init));
	else if (in->opcode == FUSE_GETATTR && in->nodeid == ROOT_ID)
		reply(fd, in->unique, &attr, sizeof(attr));
	else if (in->opcode == FUSE_LOOKUP)
		reply(fd, in->unique, &entry, sizeof(entry));
	else if (in->opcode == FUSE_OPEN)
		reply(fd, in->unique, &opened, sizeof(opened));
}

static void serve(int fd)
{
	static union {
		struct fuse_in_header header;
		char bytes[REQUEST_BYTES_MAX];
	} in;

	while (read(fd, &in, sizeof(in)) > 0)
		answer(fd, &in.header);
	_exit(0);
}

/* In a private mount namespace, so that no other process sees the mount. */
static bool mount_at(const char *dir, int fd)
{
	char options[96];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
		 geteuid(), getegid());
	return unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("stuck", dir, "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

/* An existing directory: a killed test leaves nothing behind. */
#define DIR "/tmp"

int stuck_file_open(void)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd = -1;
	bool mounted = fuse >= 0 && mount_at(DIR, fuse);
	pid_t pid = mounted ? fork() : -1;

	if (!pid) {
		alarm(STUCK_S); /* waiting processes cannot even be killed */
		serve(fuse);
	}
	if (fuse >= 0)
		close(fuse);
	if (pid > 0)
		fd = open(DIR "/file", O_RDWR | O_CLOEXEC);
	if (mounted)
		umount2(DIR, MNT_DETACH);
	return fd;
}
