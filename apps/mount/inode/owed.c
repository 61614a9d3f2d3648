/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This client owes the donor closes and commits that could not be sent, because the session had too
 * many calls or memory was short, and commits not answered in time. The kernel may forget such an
 * inode, so the list holds a reference. It is linked through the inodes: it needs no memory.
 */
#include "apps/mount/inode/inode.h"
#include "apps/mount/mount.h"

/* Return: whether the main thread is to be woken. */
static bool owe(struct inode *inode, unsigned int closes)
{
	struct mount *m = inode->mount;
	struct inodes *inodes = &m->inodes;
	bool wakes;

	if (atomic_load(&m->is_down))
		return false; /* the donor has forgotten this client */
	pthread_mutex_lock(&inodes->lock);
	inode->owed_closes += closes;
	if (!inode->is_owing) {
		inode->is_owing = true;
		inode->refs++;
		inode->next_owing = inodes->owing;
		inodes->owing = inode;
	}
	wakes = !inodes->is_paying;
	pthread_mutex_unlock(&inodes->lock);
	return wakes;
}

void inode_owe(struct inode *inode, unsigned int closes)
{
	if (owe(inode, closes))
		deferred_queue_wake(&inode->mount->deferred);
}

void inode_owe_soon(struct inode *inode)
{
	if (owe(inode, 0))
		change_log_arm(inode->mount);
}

static struct inode *take_owing(struct inodes *inodes)
{
	struct inode *first;

	pthread_mutex_lock(&inodes->lock);
	first = inodes->owing;
	inodes->owing = NULL;
	inodes->is_paying = true;
	pthread_mutex_unlock(&inodes->lock);
	return first;
}

/* A message that cannot be sent now, either, is owed again. */
static void pay(struct inode *inode)
{
	struct inodes *inodes = &inode->mount->inodes;
	unsigned int closes;

	pthread_mutex_lock(&inodes->lock);
	closes = inode->owed_closes;
	inode->owed_closes = 0;
	inode->is_owing = false;
	pthread_mutex_unlock(&inodes->lock);
	if (!closes)
		inode_commit_ahead(inode);
	while (closes--)
		inode_close(inode);
	inode_put(inode, 1);
}

bool inodes_pay(struct mount *m)
{
	struct inodes *inodes = &m->inodes;
	struct inode *inode = take_owing(inodes), *next;
	bool any;

	for (; inode; inode = next) {
		next = inode->next_owing;
		pay(inode);
	}
	pthread_mutex_lock(&inodes->lock);
	inodes->is_paying = false;
	any = inodes->owing;
	pthread_mutex_unlock(&inodes->lock);
	return any;
}
