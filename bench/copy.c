/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * copy KEYFILE FROM TO MIB - a plain copy from one donor to another, by hand
 *
 * The program reads a region of one donor, 1 MiB at a time, and writes each piece to a new region
 * of the other, with eight pieces under way. No checksum, no map, no order between pieces. The time
 * begins before the new region is made: its memory is cleared then, as that of a new copy is. Then
 * the program copies once more to the same region. Prints bytes per second of both.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/key.h>
#include <weir/weir.h>

#define PIECE (1u << 20)
#define PIECES 8u

struct copy {
	struct weir_region *from, *to;
	uint64_t pieces;
	atomic_uint_least64_t next;
	atomic_uint running, failures;
};

struct piece {
	struct copy *copy;
	struct weir_iov read, write; /* of one buffer, registered at either end */
	uint64_t offset;
};

static void check(int rc, const char *what, const struct weir_error *error)
{
	if (!rc)
		return;
	fprintf(stderr, "copy: %s: %s\n", what, error ? error->text : weir_strerror(rc));
	exit(1);
}

static void begin_next(struct piece *piece);

static void end(struct piece *piece, int status)
{
	atomic_fetch_add(&piece->copy->failures, status != 0);
	atomic_fetch_sub(&piece->copy->running, 1);
}

static void written(void *arg, int status)
{
	if (status)
		end(arg, status);
	else
		begin_next(arg);
}

static void was_read(void *arg, int status)
{
	struct piece *piece = arg;
	struct weir_completion completion = { .done = written, .arg = piece };

	if (!status)
		status = weir_write_async(piece->copy->to, piece->offset, &piece->write, 1,
					  &completion, NULL);
	if (status)
		end(piece, status);
}

static void begin_next(struct piece *piece)
{
	struct weir_completion completion = { .done = was_read, .arg = piece };
	uint64_t number = atomic_fetch_add(&piece->copy->next, 1);
	int rc = 0;

	piece->offset = number * PIECE;
	if (number < piece->copy->pieces)
		rc = weir_read_async(piece->copy->from, piece->offset, &piece->read, 1, &completion,
				     NULL);
	if (rc || number >= piece->copy->pieces)
		end(piece, rc);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct weir_session *open_session(const char *address, struct weir_key *key)
{
	struct weir_session_options options = { .size = sizeof(options), .key = key };
	struct weir_session *session;
	struct weir_error error;

	check(weir_session_open(address, &options, &session, &error), address, &error);
	return session;
}

static struct weir_region *make_region(struct weir_session *session, uint64_t bytes)
{
	struct weir_region *region;
	struct weir_error error;

	check(weir_region_create(session, NULL, bytes, 0, &region, &error), "region", &error);
	return region;
}

static void register_piece(struct weir_session *session, void *buffer, struct weir_iov *iov)
{
	struct weir_error error;

	*iov = (struct weir_iov){ .addr = buffer, .length = PIECE };
	check(weir_memory_register(session, buffer, PIECE, &iov->memory, &error), "buffer", &error);
}

static void copy_all(struct copy *copy, struct piece pieces[PIECES])
{
	atomic_store(&copy->next, 0);
	atomic_store(&copy->running, PIECES);
	for (unsigned int i = 0; i < PIECES; i++)
		begin_next(&pieces[i]);
	while (atomic_load(&copy->running))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	check(atomic_load(&copy->failures) ? -1 : 0, "failed", NULL);
}

int main(int argc, char **argv)
{
	struct weir_session *from, *to;
	struct piece pieces[PIECES];
	struct copy copy = { 0 };
	struct weir_error error;
	struct weir_key *key;
	double begin;

	if (argc != 5)
		check(-1, "usage: copy KEYFILE FROM TO MIB", NULL);
	check(weir_key_load(argv[1], &key, &error), argv[1], &error);
	from = open_session(argv[2], key);
	to = open_session(argv[3], key);
	copy.pieces = strtoull(argv[4], NULL, 10);
	copy.from = make_region(from, copy.pieces * PIECE);
	for (unsigned int i = 0; i < PIECES; i++) {
		void *buffer = malloc(PIECE);

		pieces[i] = (struct piece){ .copy = &copy };
		memset(buffer, (int)i + 1, PIECE);
		register_piece(from, buffer, &pieces[i].read);
		register_piece(to, buffer, &pieces[i].write);
		for (uint64_t at = i; at < copy.pieces; at += PIECES)
			check(weir_write(copy.from, at * PIECE, buffer, PIECE), "write", NULL);
	}
	begin = now();
	copy.to = make_region(to, copy.pieces * PIECE);
	copy_all(&copy, pieces);
	printf("%.0f\n", (double)(copy.pieces * PIECE) / (now() - begin));
	begin = now();
	copy_all(&copy, pieces);
	printf("%.0f\n", (double)(copy.pieces * PIECE) / (now() - begin));
	return 0;
}
