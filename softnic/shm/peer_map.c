// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The peer's word that it shares a file no longer may find its socket full and be lost. But
 * then there are messages in it that we will read: so we look after each, whatever it is.
 */
#include <sys/mman.h>

#include "peer_map.h"
#include "softnic/verbs/nic.h"
#include "peer.h"
#include "softnic/qp/qp.h"

static struct near_file *place_of(struct peer *peer, uint32_t number)
{
	return &peer->near.files[number % SHARED_FILES];
}

static void ask(struct peer *peer, struct near_file *file, uint32_t number)
{
	const struct message m = { .type = MSG_ASK_FILE, .value = number };

	if (load_relaxed(&file->asked) != number &&
	    __atomic_exchange_n(&file->asked, number, __ATOMIC_RELAXED) != number)
		peer_tell(peer, &m);
}

void *near_find(struct peer *peer, const struct mr_place *place, uint64_t length)
{
	struct near_file *file = place_of(peer, place->file);

	if (!place->file || !peer->target.by_mapping)
		return NULL;
	if (load_acquire(&file->number) != place->file) {
		ask(peer, file, place->file);
		return NULL;
	}
	if (place->offset > file->size || length > file->size - place->offset)
		return NULL;
	return file->at + place->offset;
}

/* One that another has taken the place of meanwhile is not wanted. */
void near_add(struct peer *peer, uint64_t number, int fd)
{
	struct near_file *file = place_of(peer, number);
	void *map;

	if (!number || number != load_relaxed(&file->asked) || load_relaxed(&file->number) ||
	    number != load_acquire(&peer->pub->files[number % SHARED_FILES]) ||
	    shared_map(fd, 1, PROT_READ | PROT_WRITE, &map, &file->size))
		return;
	file->at = map;
	store_release(&file->number, number);
}

static bool is_shared(const struct peer *peer, const struct near_file *file)
{
	return load_acquire(&peer->pub->files[file - peer->near.files]) == file->number;
}

/* Nobody uses an address any more that was found before: they are used under qp->lock. */
static void wait_for_users(void)
{
	struct qp *qp = NULL;

	while ((qp = nic_next_qp(qp))) {
		pthread_mutex_lock(&qp->lock);
		pthread_mutex_unlock(&qp->lock);
	}
}

void near_sweep(struct peer *peer)
{
	struct near_file *file = peer->near.files, *end = file + SHARED_FILES;

	for (; file < end; file++) {
		if (!file->number || is_shared(peer, file))
			continue;
		store_ordered(&file->number, 0);
		wait_for_users();
		munmap(file->at, file->size);
	}
}

void near_fini(struct near *near)
{
	uint32_t i;

	for (i = 0; i < SHARED_FILES; i++)
		if (near->files[i].number)
			munmap(near->files[i].at, near->files[i].size);
}
