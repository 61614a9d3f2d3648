// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * MSG_FILES, sent when the peer stops exporting a file, is lost if the socket is full. A full
 * socket holds other messages that the engine will read, so the engine sweeps after each message.
 */
#include <sys/mman.h>

#include "peer_map.h"
#include "softnic/verbs/nic.h"
#include "peer.h"
#include "softnic/qp/qp.h"

static struct peer_map_file *file_slot(struct shm_peer *peer, uint32_t number)
{
	return &peer->peer_map.files[number % SHARED_FILES];
}

static void ask_for_file(struct shm_peer *peer, struct peer_map_file *file, uint32_t number)
{
	const struct shm_msg m = { .type = MSG_ASK_FILE, .value = number };

	if (load_relaxed(&file->asked) != number &&
	    __atomic_exchange_n(&file->asked, number, __ATOMIC_RELAXED) != number)
		peer_send(peer, &m);
}

void *peer_map_find(struct shm_peer *peer, const struct mr_place *place, uint64_t length)
{
	struct peer_map_file *file = file_slot(peer, place->file);

	if (!place->file || !peer->target.by_mapping)
		return NULL;
	if (load_acquire(&file->number) != place->file) {
		ask_for_file(peer, file, place->file);
		return NULL;
	}
	if (place->offset > file->size || length > file->size - place->offset)
		return NULL;
	return file->at + place->offset;
}

/* Refuses a file that the peer has replaced by a newer file. */
void peer_map_add(struct shm_peer *peer, uint64_t number, int fd)
{
	struct peer_map_file *file = file_slot(peer, number);
	void *map;

	if (!number || number != load_relaxed(&file->asked) || load_relaxed(&file->number) ||
	    number != load_acquire(&peer->pub->files[number % SHARED_FILES]) ||
	    shared_map(fd, 1, PROT_READ | PROT_WRITE, &map, &file->size))
		return;
	file->at = map;
	store_release(&file->number, number);
}

static bool is_shared(const struct shm_peer *peer, const struct peer_map_file *file)
{
	return load_acquire(&peer->pub->files[file - peer->peer_map.files]) == file->number;
}

/* Afterwards no thread uses an address found before, because addresses need qp->lock. */
static void wait_for_copies(void)
{
	struct qp *qp = NULL;

	while ((qp = nic_next_qp(qp))) {
		pthread_mutex_lock(&qp->lock);
		pthread_mutex_unlock(&qp->lock);
	}
}

void peer_map_sweep(struct shm_peer *peer)
{
	struct peer_map_file *file = peer->peer_map.files, *end = file + SHARED_FILES;

	for (; file < end; file++) {
		if (!file->number || is_shared(peer, file))
			continue;
		store_ordered(&file->number, 0);
		wait_for_copies();
		munmap(file->at, file->size);
	}
}

void peer_map_fini(struct peer_map *peer_map)
{
	uint32_t i;

	for (i = 0; i < SHARED_FILES; i++)
		if (peer_map->files[i].number)
			munmap(peer_map->files[i].at, peer_map->files[i].size);
}
