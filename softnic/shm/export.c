// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * vma.h asks the kernel for the file behind an address. export.c then searches the program's
 * descriptors for that file, because no other way works without privilege. Afterwards the
 * program may close the descriptor, or even map other memory at the address. A peer that has
 * mapped the file still reaches the registered memory, as a NIC reaches pinned pages.
 *
 * A peer with the file could reach the whole file, not only the registered ranges. The peer
 * gains no right, because only a peer that may attach to us gets a file: see tracer.h.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "softnic/loop/fork.h"
#include "vma.h"
#include "softnic/verbs/nic.h"
#include "fd/passed_fd.h"
#include "server.h"
#include "export.h"

struct exported_file {
	uint32_t number; /* of the latest file in this entry */
	uint32_t users; /* memory regions; 0: the entry is free */
	int fd;
	struct stat file;
};

static struct {
	pthread_mutex_t lock;
	struct exported_file at[SHARED_FILES];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_mapped_file(const struct stat *file, const struct vma *m)
{
	return file->st_ino == m->inode && major(file->st_dev) == m->dev_major &&
	       minor(file->st_dev) == m->dev_minor;
}

static bool find_shared(int maps, uint64_t addr, struct vma *m)
{
	return !vma_find(maps, addr, m) && m->inode && m->is_shared && m->is_writable;
}

/* Sets the offset of @addr if the range is one run of the file, over any number of mappings. */
static bool find_file(uint64_t addr, uint64_t length, struct vma *first, uint64_t *offset)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct vma m;
	bool found = maps >= 0 && find_shared(maps, addr, first);
	uint64_t end = first->end;

	while (found && end - addr < length) {
		found = find_shared(maps, end, &m) && m.inode == first->inode &&
			m.dev_major == first->dev_major && m.dev_minor == first->dev_minor &&
			m.offset == first->offset + (end - first->start);
		end = m.end;
	}
	if (found)
		*offset = first->offset + (addr - first->start);
	if (maps >= 0)
		close(maps);
	return found;
}

/*
 * Opens the file again by its path in /proc, because the program may close @fd at any time. The
 * program's other files are asked only for seals: their file system might never answer more.
 */
static int reopen_if_mapped(int fd, const struct vma *m, struct stat *file)
{
	char path[32];
	int own;

	if (!passed_fd_is_sealed(fd))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (stat(path, file) < 0 || !is_mapped_file(file, m))
		return -1;
	own = open(path, O_RDWR | O_CLOEXEC);
	if (own < 0 || (shared_is_safe(own, file) && is_mapped_file(file, m)))
		return own;
	close(own);
	return -1;
}

static int find_fd(const struct vma *m, struct stat *file)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;
	int own = -1;

	while (all && own < 0 && (entry = readdir(all)))
		if (entry->d_name[0] != '.')
			own = reopen_if_mapped(atoi(entry->d_name), m, file);
	if (all)
		closedir(all);
	return own;
}

/* table.lock held. Peers map a file once, so a file that has grown counts as another file. */
static struct exported_file *find_export(const struct vma *m, uint64_t end)
{
	uint32_t i;

	for (i = 0; i < SHARED_FILES; i++) {
		struct exported_file *s = &table.at[i];

		if (s->users && is_mapped_file(&s->file, m) && end <= (uint64_t)s->file.st_size)
			return s;
	}
	return NULL;
}

/* table.lock held. Numbers are never reused, so that a late number names no file. */
static struct exported_file *new_export(const struct vma *m, uint64_t end)
{
	struct exported_file *s = table.at;

	while (s < table.at + SHARED_FILES && s->users)
		s++;
	if (s == table.at + SHARED_FILES)
		return NULL;
	s->fd = find_fd(m, &s->file);
	if (s->fd < 0)
		return NULL;
	if (end > (uint64_t)s->file.st_size) {
		close(s->fd);
		return NULL;
	}
	s->number = s->number ? s->number + SHARED_FILES : SHARED_FILES + (s - table.at);
	store_release(&nic.pub->files[s - table.at], s->number);
	return s;
}

uint32_t export_get(const void *addr, size_t length, uint64_t *offset)
{
	struct vma m;
	uint32_t number = 0;
	struct exported_file *s;

	if (!find_file((uintptr_t)addr, length, &m, offset))
		return 0;
	pthread_mutex_lock(&table.lock);
	s = find_export(&m, *offset + length);
	if (!s)
		s = new_export(&m, *offset + length);
	if (s) {
		s->users++;
		number = s->number;
	}
	pthread_mutex_unlock(&table.lock);
	return number;
}

void export_put(uint32_t number)
{
	struct exported_file *s = &table.at[number % SHARED_FILES];
	bool last;

	if (!number)
		return;
	pthread_mutex_lock(&table.lock);
	last = !--s->users;
	if (last) {
		store_ordered(&nic.pub->files[s - table.at], 0);
		close(s->fd);
	}
	pthread_mutex_unlock(&table.lock);
	if (last)
		server_announce_files();
}

void export_send(int socket, uint32_t number)
{
	struct exported_file *s = &table.at[number % SHARED_FILES];
	struct shm_msg m = { .type = MSG_FILE, .value = number };

	pthread_mutex_lock(&table.lock);
	if (s->users && s->number == number)
		shm_msg_send(socket, &m, &s->fd, 1);
	pthread_mutex_unlock(&table.lock);
}

static void reset_exports(void)
{
	uint32_t i;

	for (i = 0; i < SHARED_FILES; i++) {
		if (table.at[i].users)
			close(table.at[i].fd);
		table.at[i] = (struct exported_file){ 0 };
	}
}

const struct fork_part export_fork = { &table.lock, reset_exports };
