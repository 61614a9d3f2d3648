// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "leaks.h"

#define NAME "weir-softnic-"

enum { LOOKS = 2000, LOOK_US = 5000 };

void leaks_note(struct leaked_sockets *l, pid_t pid)
{
	char path[64], target[64];
	unsigned long long inode;
	struct dirent *e;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (atoi(e->d_name) <= STDERR_FILENO)
			continue;
		n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (sscanf(target, "socket:[%llu]", &inode) == 1 && l->num < LITTER_MAX)
			l->sockets[l->num++] = inode;
	}
	if (d)
		closedir(d);
}

static bool is_noted(const struct leaked_sockets *l, uint64_t inode)
{
	uint32_t i;

	for (i = 0; i < l->num; i++)
		if (l->sockets[i] == inode)
			return true;
	return false;
}

/* Count the sockets in @l that exist now; only those with a softnic name, if @named. */
static uint32_t count(const struct leaked_sockets *l, bool named)
{
	FILE *list = fopen("/proc/net/unix", "re");
	char line[512], name[256];
	unsigned long long inode;
	uint32_t n = 0;

	while (list && fgets(line, sizeof(line), list)) {
		name[0] = '\0';
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %llu %255s", &inode, name) >= 1 &&
		    is_noted(l, inode))
			n += !named || !strncmp(name, "@" NAME, strlen("@" NAME));
	}
	if (list)
		fclose(list);
	return n;
}

/* The kernel's list is not a snapshot: sockets that close meanwhile may hide an entry. */
bool litter_is_named(const struct leaked_sockets *l, uint32_t least)
{
	int looks;

	for (looks = 0; looks < LOOKS; looks++, usleep(LOOK_US))
		if (count(l, true) >= least)
			return true;
	return false;
}

uint32_t leaks_left(const struct leaked_sockets *l)
{
	uint32_t left = count(l, false);
	int looks;

	for (looks = 0; left && looks < LOOKS; looks++) {
		usleep(LOOK_US);
		left = count(l, false);
	}
	return left;
}

bool litter_is_seen(void)
{
	static struct leaked_sockets planted;
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = offsetof(struct sockaddr_un, sun_path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool seen;

	/* The kernel shows the leading null byte of an abstract name as '@'. */
	len += 1 + snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, NAME "litter-%d",
			    (int)getpid());
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, len))
		return false;
	leaks_note(&planted, getpid());
	seen = litter_is_named(&planted, 1);
	close(fd);
	return seen && !leaks_left(&planted);
}
