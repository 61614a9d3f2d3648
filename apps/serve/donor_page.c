/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/donor_page.h"

#include "apps/inspect/memfd_scan.h"
#include "apps/serve/available_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/donor.h>

int donor_page_create(void)
{
	int fd = memfd_create(DONOR_PAGE_NAME, MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void donor_page_update(int fd, struct weir_donor *donor, const struct donor_page_keys *keys)
{
	struct weir_donor_info info;
	struct donor_page page = { .magic = DONOR_PAGE_MAGIC, .keys = *keys };

	weir_donor_info(donor, &info, sizeof(info));
	page.available_bytes = available_memory("");
	page.start_bytes = info.memory_bytes;
	page.limit_bytes = info.limit_bytes;
	page.lent_bytes = info.lent_bytes;
	page.clients = info.clients;
	page.regions = info.regions;
	page.joins = info.joins;
	page.rejects = info.rejects;
	page.messages = info.messages;
	page.unloaded = info.unloaded;
	snprintf(page.address, sizeof(page.address), "%s", info.address);
	snprintf(page.device, sizeof(page.device), "%s", info.device);
	if (pwrite(fd, &page, sizeof(page), 0) != sizeof(page))
		return; /* without memory the old state stays */
}

static int add_donor(void *arg, int fd, pid_t pid, const char *comm)
{
	struct donor_list *list = arg;
	struct donor_found *found, new = { .pid = pid };

	(void)comm;
	if (pread(fd, &new.page, sizeof(new.page), 0) != sizeof(new.page) ||
	    new.page.magic != DONOR_PAGE_MAGIC)
		return 0;
	found = reallocarray(list->found, list->count + 1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	list->found = found;
	memfd_scan_clean(new.page.address, sizeof(new.page.address));
	memfd_scan_clean(new.page.device, sizeof(new.page.device));
	memfd_scan_clean(new.page.keys.reason, sizeof(new.page.keys.reason));
	found[list->count++] = new;
	return 0;
}

int donor_list_add(struct donor_list *list, pid_t pid)
{
	const struct memfd_scan scan = { DONOR_PAGE_NAME, add_donor, list };

	return pid ? memfd_scan_process(&scan, pid) : memfd_scan_all(&scan);
}

void donor_list_free(struct donor_list *list)
{
	free(list->found);
	*list = (struct donor_list){ 0 };
}
