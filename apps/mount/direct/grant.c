/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which files the lanes' requests may name. */
#include <errno.h>
#include <string.h>

#include "apps/mount/direct/lane.h"

/* The process must find out anew what its descriptors are. direct.lock held. */
static void note_close(struct direct_grant *grant)
{
	struct lane *lane = grant->lane;

	grant->closes++;
	__atomic_store_n(&lane->shared->grant[grant - lane->grant].closes, grant->closes,
			 __ATOMIC_RELEASE);
}

/* direct.lock held. */
static void take_back(struct direct_grant *grant)
{
	struct inode *inode = grant->inode;

	note_close(grant);
	LIST_REMOVE(grant, of_inode);
	if (atomic_fetch_sub(&inode->nr_grants, 1) == 1)
		atomic_store(&inode->written_past, false);
	grant->inode = NULL;
	inode_put(inode, 1);
}

static struct direct_grant *find_grant(struct lane *lane, const struct inode *inode)
{
	for (unsigned int i = 0; i < FILES_GRANTS; i++)
		if (lane->grant[i].inode == inode)
			return &lane->grant[i];
	return NULL;
}

/* A request in flight keeps the inode, which therefore keeps its grant. */
static struct direct_grant *free_grant(struct lane *lane)
{
	struct direct_grant *grant = find_grant(lane, NULL);

	for (unsigned int i = 0; !grant && i < FILES_GRANTS; i++) {
		struct direct_grant *next = &lane->grant[lane->next_grant++ % FILES_GRANTS];

		if (atomic_load(&next->busy))
			continue;
		take_back(next);
		grant = next;
	}
	return grant;
}

static void give(struct direct_grant *grant, struct inode *inode)
{
	struct lane *lane = grant->lane;

	inode_ref(inode);
	grant->inode = inode;
	grant->access = 0;
	LIST_INSERT_HEAD(&inode->grants, grant, of_inode);
	atomic_fetch_add(&inode->nr_grants, 1);
	lane->shared->grant[grant - lane->grant].ino = inode->ino;
	note_close(grant);
}

/*
 * From now on the kernel asks for the attributes each time, because writes past it change them.
 * The first write drops those that the kernel has. direct.lock held, as when the last grant ends.
 */
static void watch_writes(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->kernel_pages = true;
	pthread_mutex_unlock(&inode->lock);
	atomic_store(&inode->written_past, true);
}

static struct lane *find_lane(struct direct *direct, const struct wire_files_ask *ask)
{
	struct lane *lane = ask->lane < DIRECT_LANES_MAX ? direct->lane[ask->lane] : NULL;

	return lane && lane->secret == ask->secret ? lane : NULL;
}

static int ask_locked(struct direct *direct, struct inode *inode, unsigned int access,
		      struct wire_files_ask *ask)
{
	struct lane *lane = find_lane(direct, ask);
	struct direct_grant *grant;

	if (!lane)
		return -EACCES;
	grant = find_grant(lane, inode);
	if (!grant) {
		grant = free_grant(lane);
		if (!grant)
			return -EMFILE;
		give(grant, inode);
	}
	if (access & FILES_MAY_WRITE)
		watch_writes(inode);
	grant->access |= access;
	ask->grant = (uint32_t)(grant - lane->grant);
	ask->closes = grant->closes;
	ask->access = grant->access;
	ask->ino = inode->ino;
	return 0;
}

int direct_ask(struct mount *m, struct inode *inode, unsigned int access,
	       struct wire_files_ask *ask)
{
	int rc;

	if (!m->direct.is_open)
		return -EACCES;
	direct_visit(&m->direct);
	rc = ask_locked(&m->direct, inode, access, ask);
	direct_leave(&m->direct);
	if (!rc)
		ring_wake(&m->direct);
	return rc;
}

void direct_mapped(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->mapped = true;
	pthread_mutex_unlock(&inode->lock);
}

void direct_closes(struct inode *inode)
{
	struct direct_grant *grant;

	if (!atomic_load(&inode->nr_grants))
		return;
	direct_visit(&inode->mount->direct);
	LIST_FOREACH(grant, &inode->grants, of_inode)
		note_close(grant);
	direct_leave(&inode->mount->direct);
}

bool lane_end(struct lane *lane)
{
	bool ended = true;

	for (unsigned int i = 0; i < FILES_GRANTS; i++) {
		struct direct_grant *grant = &lane->grant[i];

		if (grant->inode && atomic_load(&grant->busy))
			ended = false;
		else if (grant->inode)
			take_back(grant);
	}
	__atomic_store_n(&lane->shared->watch, FILES_ENDED, __ATOMIC_RELEASE);
	return ended && !atomic_load(&lane->busy);
}
