/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/staging.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/futex.h"

/* A piece on its way to or from the volume. */
struct staging_piece {
	struct staging *staging;
	int *status;
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
	conn->peer = NULL;
	pthread_mutex_unlock(&staging->lock);
	staging_unref(conn);
}

bool staging_is_gone(struct staging_conn *conn)
{
	bool is_gone;

	pthread_mutex_lock(&conn->staging->lock);
	is_gone = conn->is_gone;
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
	struct staging_piece piece = *(struct staging_piece *)arg;

	free(arg);
	end_piece(piece.staging, piece.status, rc);
}

static int start_piece(struct staging *staging, uint8_t *at, const struct fsd_data *piece,
		       struct staging_piece *arg)
{
	struct weir_volume *volume = staging->volume;

	switch (piece->kind) {
	case FSD_DATA_READ:
		return weir_volume_read_async(volume, piece->volume, at, piece->length, piece_done,
					      arg);
	case FSD_DATA_WRITE:
		memset(at, 0, piece->before);
		memset(at + piece->length - piece->after, 0, piece->after);
		return weir_volume_write_async(volume, piece->volume, at, piece->length,
					       piece_done, arg);
	default:
		return weir_volume_discard_async(volume, piece->volume, piece->length, piece_done,
						 arg);
	}
}

void staging_start(struct staging *staging, struct staging_conn *conn,
		   const struct fsd_data *piece, int *status)
{
	bool has_place = piece->kind != FSD_DATA_ZERO;
	struct staging_piece *arg;
	int rc = 0;

	if (has_place && (piece->place > STAGING_BYTES ||
			  piece->length > STAGING_BYTES - piece->place)) {
		*status = -EINVAL;
		return;
	}
	if (piece->kind == FSD_DATA_HOLE) {
		memset(conn->memory + piece->place, 0, piece->length);
		return;
	}
	atomic_fetch_add(&staging->moving, 1);
	arg = malloc(sizeof(*arg));
	if (arg) {
		*arg = (struct staging_piece){ staging, status };
		rc = start_piece(staging, has_place ? conn->memory + piece->place : NULL, piece,
				 arg);
	}
	if (arg && !rc)
		return;
	free(arg);
	end_piece(staging, status, rc ? rc : -ENOMEM);
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
