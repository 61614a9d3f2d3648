// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wrong_fd.h"
#include "stuck_file.h"

static int open_pipe(void)
{
	int fds[2];

	return pipe2(fds, O_CLOEXEC) ? -1 : fds[0];
}

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, size) || fcntl(fd, F_ADD_SEALS, seals))
		_exit(1);
	return fd;
}

int odd_file_open(enum wrong_fd_kind kind, int good)
{
	char path[32];

	switch (kind) {
	case GOOD:
		return good;
	case PIPE:
		return open_pipe();
	case DIRECTORY:
		return open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case PATH_ONLY:
		return open("/proc/self/mem", O_PATH | O_CLOEXEC);
	case EVENTS:
		return eventfd(0, EFD_CLOEXEC);
	case UNSEALED:
		return memfd(1 << 26, F_SEAL_GROW);
	case SHORT:
		return memfd(32, F_SEAL_SHRINK);
	case STUCK:
		return stuck_file_open();
	case OF_CALLER:
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
		return open(path, O_RDWR | O_CLOEXEC);
	default:
		return -1;
	}
}
