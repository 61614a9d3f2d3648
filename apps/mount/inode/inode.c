/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/inode/inode.h"

#include <errno.h>
#include <stdlib.h>

#include "apps/mount/mount.h"
#include "apps/mount/sealed/sealed.h"

#define BUCKETS_MIN 1024u

int inodes_init(struct inodes *inodes)
{
	pthread_mutex_init(&inodes->lock, NULL);
	inodes->buckets = BUCKETS_MIN;
	inodes->bucket = calloc(inodes->buckets, sizeof(*inodes->bucket));
	return inodes->bucket ? 0 : -ENOMEM;
}

static void free_inode(struct inode *inode)
{
	map_forget(&inode->map);
	if (!LIST_EMPTY(&inode->names.names)) /* whatever the donor now says that it is */
		names_drop(inode);
	pthread_mutex_destroy(&inode->lock);
	free(inode);
}

void inodes_fini(struct inodes *inodes)
{
	for (size_t i = 0; inodes->bucket && i < inodes->buckets; i++) {
		while (inodes->bucket[i]) {
			struct inode *inode = inodes->bucket[i];

			inodes->bucket[i] = inode->next;
			free_inode(inode);
		}
	}
	free(inodes->bucket);
	inodes->bucket = NULL;
}

static struct inode **bucket_of(struct inodes *inodes, uint64_t ino)
{
	/* Inode numbers are sequential, so their low bits distribute well. */
	return &inodes->bucket[ino & (inodes->buckets - 1)];
}

static struct inode **find_slot(struct inodes *inodes, uint64_t ino)
{
	struct inode **at = bucket_of(inodes, ino);

	while (*at && (*at)->ino != ino)
		at = &(*at)->next;
	return at;
}

/* Doubles the number of buckets. Without memory, the lists grow longer instead. */
static void grow(struct inodes *inodes)
{
	struct inodes bigger = { .buckets = 2 * inodes->buckets };

	bigger.bucket = calloc(bigger.buckets, sizeof(*bigger.bucket));
	if (!bigger.bucket)
		return;
	for (size_t i = 0; i < inodes->buckets; i++) {
		while (inodes->bucket[i]) {
			struct inode *inode = inodes->bucket[i];
			struct inode **to = bucket_of(&bigger, inode->ino);

			inodes->bucket[i] = inode->next;
			inode->next = *to;
			*to = inode;
		}
	}
	free(inodes->bucket);
	inodes->bucket = bigger.bucket;
	inodes->buckets = bigger.buckets;
}

static struct inode *create_inode(struct mount *m, const struct wire_fs_attr *attr)
{
	struct inode *inode = calloc(1, sizeof(*inode));

	if (!inode)
		return NULL;
	inode->mount = m;
	inode->ino = attr->ino;
	inode->attr = *attr;
	inode->known = inode->holes_phase = SHARING_NO_PHASE;
	inode->size = attr->size;
	inode->pages = attr->change;
	pthread_mutex_init(&inode->lock, NULL);
	LIST_INIT(&inode->grants);
	rw_gate_init(&inode->gate);
	return inode;
}

struct inode *inode_add(struct mount *m, const struct wire_fs_attr *attr, unsigned int phase)
{
	struct inodes *inodes = &m->inodes;
	struct inode **at;
	struct inode *inode;

	pthread_mutex_lock(&inodes->lock);
	at = find_slot(inodes, attr->ino);
	inode = *at;
	if (!inode) {
		inode = *at = create_inode(m, attr);
		if (inode && ++inodes->nr > inodes->buckets)
			grow(inodes);
	}
	if (inode)
		inode->refs++;
	pthread_mutex_unlock(&inodes->lock);
	if (inode)
		inode_learn(inode, attr, phase);
	return inode;
}

struct inode *inode_get(struct mount *m, uint64_t ino)
{
	struct inode *inode;

	pthread_mutex_lock(&m->inodes.lock);
	inode = *find_slot(&m->inodes, ino);
	if (inode)
		inode->refs++;
	pthread_mutex_unlock(&m->inodes.lock);
	return inode;
}

void inode_ref(struct inode *inode)
{
	pthread_mutex_lock(&inode->mount->inodes.lock);
	inode->refs++;
	pthread_mutex_unlock(&inode->mount->inodes.lock);
}

void inode_put(struct inode *inode, uint64_t refs)
{
	struct inodes *inodes = &inode->mount->inodes;
	bool unused;

	pthread_mutex_lock(&inodes->lock);
	inode->refs -= refs < inode->refs ? refs : inode->refs;
	unused = !inode->refs;
	if (unused) {
		*find_slot(inodes, inode->ino) = inode->next;
		inodes->nr--;
	}
	pthread_mutex_unlock(&inodes->lock);
	if (!unused)
		return;
	if (!inode->attr.nlink)
		sealed_is_gone(inode->mount, inode->ino);
	free_inode(inode);
}

void inodes_commit(struct mount *m)
{
	for (size_t i = 0; i < m->inodes.buckets; i++)
		for (struct inode *inode = m->inodes.bucket[i]; inode; inode = inode->next)
			/* An unresponsive donor: each further commit would wait as long. */
			if (inode_commit(inode, NULL) == -EIO)
				return;
}

/* Must not fail, so it does not allocate: the inodes to commit are linked through themselves. */
void inodes_commit_ahead(struct mount *m)
{
	struct inode *first = NULL;

	pthread_mutex_lock(&m->inodes.lock);
	for (size_t i = 0; i < m->inodes.buckets; i++)
		for (struct inode *inode = m->inodes.bucket[i]; inode; inode = inode->next) {
			inode->refs++;
			inode->next_commit = first;
			first = inode;
		}
	pthread_mutex_unlock(&m->inodes.lock);
	while (first) {
		struct inode *inode = first;

		first = inode->next_commit;
		inode_commit_ahead(inode);
		inode_put(inode, 1);
	}
}
