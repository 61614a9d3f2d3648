/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/mount_page.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/inspect/memfd_scan.h"
#include "apps/mount/mount.h"

#define INTERVAL_MS 1000

const char *const operation_names[OPERATION_KINDS] = { "read", "write", "metadata" };

void mount_page_values(struct mount *m, struct mount_values *values)
{
	*values = (struct mount_values){
		.is_up = !atomic_load(&m->is_down),
		.in_flight = atomic_load(&m->in_flight),
		.threads = atomic_load(&m->loop.threads),
		.waiting = atomic_load(&m->loop.waiting),
		.shared = atomic_load(&m->share.shared),
	};
	pthread_mutex_lock(&m->inodes.lock);
	values->inodes = m->inodes.nr;
	pthread_mutex_unlock(&m->inodes.lock);
}

int mount_page_open(struct mount *m)
{
	struct mount_page *page;
	int rc, fd = memfd_create(MOUNT_PAGE_NAME, MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	page = ftruncate(fd, sizeof(*page)) ?
		       MAP_FAILED :
		       mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		rc = -errno;
		close(fd);
		return rc;
	}
	snprintf(page->mountpoint, sizeof(page->mountpoint), "%s", m->options->mountpoint);
	snprintf(page->donor, sizeof(page->donor), "%s", m->options->donor);
	m->page = (struct mount_page_writer){ .page = page, .fd = fd };
	return 0;
}

static void *keep_up_to_date(void *arg)
{
	struct mount *m = arg;
	struct pollfd ends = { .fd = m->page.ends, .events = POLLIN };

	do {
		mount_page_values(m, &m->page.page->values);
		__atomic_store_n(&m->page.page->magic, MOUNT_PAGE_MAGIC, __ATOMIC_RELEASE);
	} while (poll(&ends, 1, INTERVAL_MS) < 1);
	return NULL;
}

int mount_page_start(struct mount *m)
{
	int rc;

	m->page.ends = eventfd(0, EFD_CLOEXEC);
	if (m->page.ends < 0)
		return -errno;
	rc = -pthread_create(&m->page.thread, NULL, keep_up_to_date, m);
	if (rc)
		close(m->page.ends);
	m->page.is_started = !rc;
	return rc;
}

void mount_page_stop(struct mount *m)
{
	if (!m->page.is_started)
		return;
	eventfd_write(m->page.ends, 1);
	pthread_join(m->page.thread, NULL);
	close(m->page.ends);
	m->page.is_started = false;
}

void mount_page_close(struct mount *m)
{
	munmap(m->page.page, sizeof(*m->page.page));
	close(m->page.fd);
}

/* Skips files that are no pages. */
static int add_mount(void *arg, int fd, pid_t pid, const char *comm)
{
	struct mount_list *list = arg;
	struct mount_found **found = reallocarray(list->found, list->count + 1, sizeof(*found));
	struct mount_found *new;

	(void)comm;
	if (!found)
		return -ENOMEM;
	list->found = found;
	new = malloc(sizeof(*new));
	if (!new)
		return -ENOMEM;
	if (pread(fd, &new->page, sizeof(new->page), 0) != sizeof(new->page) ||
	    new->page.magic != MOUNT_PAGE_MAGIC) {
		free(new);
		return 0;
	}
	new->pid = pid;
	memfd_scan_clean(new->page.mountpoint, sizeof(new->page.mountpoint));
	memfd_scan_clean(new->page.donor, sizeof(new->page.donor));
	list->found[list->count++] = new;
	return 0;
}

int mount_list_add(struct mount_list *list)
{
	const struct memfd_scan scan = { MOUNT_PAGE_NAME, add_mount, list };

	return memfd_scan_all(&scan);
}

void mount_list_free(struct mount_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->found[i]);
	free(list->found);
	*list = (struct mount_list){ 0 };
}
