/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/staging.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/futex.h"

/*
 * A piece on its way to or from the volume. The client can write its staging area at any time, so
 * the volume gets the bytes in memory of the server's own: else a client could change them between
 * a checksum and the wire, and donors would seem to have wrong bytes.
 */
struct staging_piece {
	struct staging *staging;
	int *status;
	uint8_t *area; /* receives the bytes of a read */
	size_t length;
	uint8_t bytes[];
};

void staging_init(struct staging *staging)
{
	*staging = (struct staging){ 0 };
	pthread_mutex_init(&staging->lock, NULL);
	TAILQ_INIT(&staging->conns);
}

void staging_fini(struct staging *staging)
{
	struct staging_conn *conn;

	while ((conn = TAILQ_FIRST(&staging->conns))) {
		TAILQ_REMOVE(&staging->conns, conn, entry);
		free(conn);
	}
	pthread_mutex_destroy(&staging->lock);
}

struct staging_conn *staging_join(struct staging *staging, struct weir_peer *peer)
{
	struct staging_conn *conn = calloc(1, sizeof(*conn));
	void *memory;

	if (!conn || weir_donor_region_create(staging->donor, weir_peer_tenant(peer),
					      STAGING_BYTES, &conn->token, &memory)) {
		free(conn);
		return NULL;
	}
	conn->staging = staging;
	conn->peer = peer;
	conn->memory = memory;
	conn->tenant = weir_peer_tenant(peer);
	conn->refs = 1;
	pthread_mutex_lock(&staging->lock);
	conn->number = ++staging->joined;
	TAILQ_INSERT_TAIL(&staging->conns, conn, entry);
	pthread_mutex_unlock(&staging->lock);
	return conn;
}

static uint64_t bytes_missing(const struct staging_conn *conn)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = STAGING_BYTES / page, missing = 0, i;
	unsigned char *is_there = calloc(pages, 1);

	if (!is_there || mincore(conn->memory, pages * page, is_there))
		missing = pages;
	for (i = 0; i < pages && missing < pages; i++)
		missing += !(is_there[i] & 1);
	free(is_there);
	return missing * page;
}

uint64_t staging_promised(struct staging *staging)
{
	struct staging_conn *conn;
	uint64_t bytes = 0;

	pthread_mutex_lock(&staging->lock);
	TAILQ_FOREACH(conn, &staging->conns, entry)
		bytes += bytes_missing(conn);
	pthread_mutex_unlock(&staging->lock);
	return bytes;
}

/* Context: the listener's thread. */
static void free_conn(void *arg)
{
	struct staging_conn *conn = arg;
	struct staging *staging = conn->staging;

	pthread_mutex_lock(&staging->lock);
	TAILQ_REMOVE(&staging->conns, conn, entry);
	pthread_mutex_unlock(&staging->lock);
	weir_donor_region_destroy(staging->donor, &conn->token);
	free(conn);
}

void staging_ref(struct staging_conn *conn)
{
	pthread_mutex_lock(&conn->staging->lock);
	conn->refs++;
	pthread_mutex_unlock(&conn->staging->lock);
}

/* Without memory for a timer, or once the listener is closed, staging_fini() frees it. */
void staging_unref(struct staging_conn *conn)
{
	struct staging *staging = conn->staging;
	bool is_last;

	pthread_mutex_lock(&staging->lock);
	is_last = !--conn->refs;
	pthread_mutex_unlock(&staging->lock);
	if (is_last)
		(void)weir_donor_after(staging->donor, 0, free_conn, conn);
}

struct staging_conn *staging_find(struct staging *staging, const struct weir_peer *peer)
{
	struct staging_conn *conn;

	pthread_mutex_lock(&staging->lock);
	TAILQ_FOREACH(conn, &staging->conns, entry) {
		if (conn->peer == peer)
			break;
	}
	pthread_mutex_unlock(&staging->lock);
	return conn;
}

void staging_leave(struct staging *staging, struct weir_peer *peer)
{
	struct staging_conn *conn = staging_find(staging, peer);

	if (!conn)
		return;
	pthread_mutex_lock(&staging->lock);
	conn->is_gone = true;
	conn->is_revoked = weir_peer_is_revoked(peer);
	conn->peer = NULL;
	pthread_mutex_unlock(&staging->lock);
	staging_unref(conn);
}

bool staging_is_gone(struct staging_conn *conn, bool *is_revoked)
{
	bool is_gone;

	pthread_mutex_lock(&conn->staging->lock);
	is_gone = conn->is_gone;
	*is_revoked = conn->is_revoked;
	pthread_mutex_unlock(&conn->staging->lock);
	return is_gone;
}

bool staging_is_end(int status)
{
	return status == -ESTALE || status == -ECANCELED;
}

static void end_piece(struct staging *staging, int *status, int rc)
{
	if (staging_is_end(rc))
		atomic_store(&staging->lost, rc);
	else if (rc && !status)
		atomic_store(&staging->lost, rc); /* no call can say so */
	if (rc && status)
		__atomic_store_n(status, rc, __ATOMIC_RELAXED);
	if (atomic_fetch_sub(&staging->moving, 1) == 1) {
		__atomic_add_fetch(&staging->settled, 1, __ATOMIC_SEQ_CST);
		weir_futex_wake(&staging->settled, INT_MAX);
	}
}

static void piece_done(void *arg, int rc)
{
	struct staging_piece *piece = arg;
	struct staging *staging = piece->staging;
	int *status = piece->status;

	if (!rc && piece->area)
		memcpy(piece->area, piece->bytes, piece->length);
	free(piece);
	end_piece(staging, status, rc);
}

static int start_piece(struct staging_piece *piece, uint8_t *area, const struct fsd_data *data)
{
	struct weir_volume *volume = piece->staging->volume;
	size_t end = data->length - data->after;

	switch (data->kind) {
	case FSD_DATA_READ:
		piece->area = area;
		return weir_volume_read_async(volume, data->volume, piece->bytes, data->length,
					      piece_done, piece);
	case FSD_DATA_WRITE:
		memset(piece->bytes, 0, data->before);
		memcpy(piece->bytes + data->before, area + data->before, end - data->before);
		memset(piece->bytes + end, 0, data->after);
		return weir_volume_write_async(volume, data->volume, piece->bytes, data->length,
					       piece_done, piece);
	default:
		return weir_volume_discard_async(volume, data->volume, data->length, piece_done,
						 piece);
	}
}

void staging_start(struct staging *staging, struct staging_conn *conn,
		   const struct fsd_data *data, int *status)
{
	bool has_place = data->kind != FSD_DATA_ZERO;
	struct staging_piece *piece;
	int rc = -ENOMEM;

	if (has_place &&
	    (data->place > STAGING_BYTES || data->length > STAGING_BYTES - data->place)) {
		*status = -EINVAL;
		return;
	}
	if (data->kind == FSD_DATA_HOLE) {
		memset(conn->memory + data->place, 0, data->length);
		return;
	}
	atomic_fetch_add(&staging->moving, 1);
	piece = malloc(sizeof(*piece) + (has_place ? data->length : 0));
	if (piece) {
		*piece = (struct staging_piece){
			.staging = staging,
			.status = status,
			.length = data->length,
		};
		rc = start_piece(piece, has_place ? conn->memory + data->place : NULL, data);
	}
	if (!rc)
		return;
	free(piece);
	end_piece(staging, status, rc);
}

int staging_settle(struct staging *staging)
{
	uint32_t seen = __atomic_load_n(&staging->settled, __ATOMIC_SEQ_CST);

	while (atomic_load(&staging->moving)) {
		weir_futex_wait(&staging->settled, seen, UINT64_MAX);
		seen = __atomic_load_n(&staging->settled, __ATOMIC_SEQ_CST);
	}
	return atomic_load(&staging->lost);
}
