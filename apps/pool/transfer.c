/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir pool volume import and export: bytes from a file into a volume, and back. Several pieces are
 * under way at once; the file is read and written in order.
 */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/pool/pool.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/volume.h>

#define PIECE (1u << 20)
#define PIECES 8u
#define PROGRESS_NS (WEIR_NS_PER_S / 2)

struct transfer_options {
	const char *device, *key;
	bool json;
};

/* One piece under way. @length: 0: none */
struct transfer_piece {
	struct transfer *transfer;
	char *bytes;
	uint64_t offset;
	size_t length;
	bool is_busy;
	int status;
};

/**
 * struct transfer - a file and a volume
 * @is_import: into the volume
 * @fd, @file: the file and its name
 * @total: bytes to move, or UINT64_MAX until the file ends
 * @done: bytes moved
 * @lock: guards @is_busy and @status of the pieces; @ended: one has ended
 */
struct transfer {
	const char *cmd, *file;
	bool is_import;
	int fd;
	struct weir_key *key;
	struct weir_volume *volume;
	struct weir_volume_info info;
	uint64_t total, done, start_ns, shown_ns;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct transfer_piece pieces[PIECES];
};

static const struct cmdline_option options[] = {
	CLIENT_KEY_OPTION(struct transfer_options, key),
	CLIENT_ENCRYPT_OPTION,
	DEVICE_OPTION(struct transfer_options, device),
	CMDLINE_JSON(struct transfer_options, json),
	{ NULL },
};

static const struct cmdline import_line = {
	.usage = "Usage: weir pool volume import [OPTION...] POOL NAME [FILE]\n"
		 "Writes a file, or standard input, to the beginning of a volume. Donors may die\n"
		 "meanwhile: the command goes on while each part of the volume has a copy.\n",
	.options = options,
	.arguments = "POOL NAME [FILE]",
	.arguments_min = 2,
	.arguments_max = 3,
};

static const struct cmdline export_line = {
	.usage = "Usage: weir pool volume export [OPTION...] POOL NAME [FILE]\n"
		 "Writes all bytes of a volume to a file, or to standard output.\n",
	.options = options,
	.arguments = "POOL NAME [FILE]",
	.arguments_min = 2,
	.arguments_max = 3,
};

static void piece_done(void *arg, int status)
{
	struct transfer_piece *piece = arg;

	pthread_mutex_lock(&piece->transfer->lock);
	piece->status = status;
	piece->is_busy = false;
	pthread_cond_broadcast(&piece->transfer->ended);
	pthread_mutex_unlock(&piece->transfer->lock);
}

static void show_progress(struct transfer *t, bool is_last)
{
	uint64_t now_ns = weir_now_ns();

	if (!isatty(STDERR_FILENO) || (!is_last && now_ns - t->shown_ns < PROGRESS_NS))
		return;
	t->shown_ns = now_ns;
	fprintf(stderr, "\r%s of %s, %s/s   %s", size_format(t->done).text,
		t->total == UINT64_MAX ? "?" : size_format(t->total).text,
		size_format(t->done * WEIR_NS_PER_S / (now_ns - t->start_ns + 1)).text,
		is_last ? "\n" : "");
}

/* Waits for a piece. A request for a stop is seen within a second. */
static int wait_for_piece(struct transfer *t, struct transfer_piece *piece)
{
	int status;

	pthread_mutex_lock(&t->lock);
	while (piece->is_busy && !stop_requested()) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&t->ended, &t->lock, &until);
	}
	status = piece->is_busy ? -EINTR : piece->status;
	pthread_mutex_unlock(&t->lock);
	return status;
}

static int start_piece(struct transfer *t, struct transfer_piece *piece, uint64_t offset,
		       size_t length)
{
	int rc;

	piece->offset = offset;
	piece->length = length;
	piece->is_busy = true;
	rc = t->is_import ? weir_volume_write_async(t->volume, offset, piece->bytes, length,
						    piece_done, piece) :
			    weir_volume_read_async(t->volume, offset, piece->bytes, length,
						   piece_done, piece);
	if (rc) /* no call of piece_done() follows */
		piece->is_busy = false;
	return rc;
}

/* Return: the bytes read, fewer than @length at the end of the file only; or a negative errno. */
static ssize_t read_file(const struct transfer *t, char *bytes, size_t length)
{
	size_t count = 0;

	while (count < length && !stop_requested()) {
		ssize_t got = read(t->fd, bytes + count, length - count);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			break;
		count += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)count;
}

static int write_file(const struct transfer *t, const char *bytes, size_t length)
{
	while (length) {
		ssize_t put = write(t->fd, bytes, length);

		if (put < 0 && errno != EINTR)
			return -errno;
		bytes += put > 0 ? put : 0;
		length -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

static int fail_at(struct transfer *t, const char *what, uint64_t offset, int rc)
{
	if (rc == -EINTR || stop_requested())
		return failure(t->cmd, "stopped at byte %llu", (unsigned long long)offset);
	return failure(t->cmd, "%s, at byte %llu: %s", what, (unsigned long long)offset,
		       rc == -ESTALE ? "another client has the volume, or this one was silent "
				       "for too long" :
				       weir_strerror(rc));
}

/* Ends the oldest piece. Return: 0, or an exit status. */
static int finish_piece(struct transfer *t, struct transfer_piece *piece)
{
	int rc = piece->length ? wait_for_piece(t, piece) : 0;

	if (rc)
		return fail_at(t, "the volume", piece->offset, rc);
	if (!t->is_import && piece->length)
		rc = write_file(t, piece->bytes, piece->length);
	if (rc)
		return fail_at(t, t->file, piece->offset, rc);
	t->done += piece->length;
	piece->length = 0;
	show_progress(t, false);
	return EXIT_OK;
}

/* Return: the length of the next piece, 0 at the end; or a negative errno. */
static ssize_t next_length(struct transfer *t, struct transfer_piece *piece, uint64_t offset)
{
	uint64_t left = t->info.bytes - offset;
	size_t length = left < PIECE ? (size_t)left : PIECE;
	char extra;

	if (!t->is_import)
		return (ssize_t)length;
	if (!length)
		return read_file(t, &extra, 1) ? -EFBIG : 0;
	return read_file(t, piece->bytes, length);
}

static int move_bytes(struct transfer *t)
{
	uint64_t offset = 0;
	unsigned int next = 0;
	int status = EXIT_OK;
	ssize_t length = 1;

	while (!status && length) {
		struct transfer_piece *piece = &t->pieces[next++ % PIECES];
		int rc = 0;

		status = finish_piece(t, piece);
		length = status ? 0 : next_length(t, piece, offset);
		if (length < 0)
			return fail_at(t, t->file, offset, (int)length);
		if (length)
			rc = start_piece(t, piece, offset, (size_t)length);
		if (rc)
			return fail_at(t, "the volume", offset, rc);
		offset += (uint64_t)length;
	}
	for (unsigned int i = 0; !status && i < PIECES; i++)
		status = finish_piece(t, &t->pieces[next++ % PIECES]);
	if (!status && stop_requested())
		return fail_at(t, "stopped", t->done, -EINTR);
	return status;
}

static int open_file(struct transfer *t)
{
	off_t length;

	if (!strcmp(t->file, "-")) {
		t->fd = t->is_import ? STDIN_FILENO : STDOUT_FILENO;
		t->file = t->is_import ? "standard input" : "standard output";
	} else {
		t->fd = t->is_import ? open(t->file, O_RDONLY | O_CLOEXEC) :
				       open(t->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
					    0666);
	}
	if (t->fd < 0)
		return failure(t->cmd, "%s: %s", t->file, strerror(errno));
	t->total = t->info.bytes;
	if (!t->is_import)
		return EXIT_OK;
	length = lseek(t->fd, 0, SEEK_END);
	if (length >= 0)
		lseek(t->fd, 0, SEEK_SET);
	t->total = length >= 0 ? (uint64_t)length : UINT64_MAX;
	return EXIT_OK;
}

static int open_volume(struct transfer *t, const struct transfer_options *given, const char *device,
		       const char *pool, const char *name)
{
	struct weir_volume_options wanted = { .size = sizeof(wanted), .device = device };
	struct weir_error error;
	char place[1024];

	if (given->key && weir_key_load(given->key, &t->key, &error))
		return failure(t->cmd, "%s", error.text);
	snprintf(place, sizeof(place), "%s/%s", pool, name);
	wanted.volume = place;
	wanted.key = t->key;
	wanted.encryption = client_encryption();
	if (weir_volume_open(&wanted, &t->volume, &error))
		return failure(t->cmd, "%s", error.text);
	weir_volume_info(t->volume, &t->info, sizeof(t->info));
	if (t->is_import && t->total != UINT64_MAX && t->total > t->info.bytes)
		return failure(t->cmd, "%s has %s, and volume %s only %s", t->file,
			       size_format(t->total).text, name, size_format(t->info.bytes).text);
	return EXIT_OK;
}

static void say_result(struct transfer *t, bool is_json)
{
	double seconds = (double)(weir_now_ns() - t->start_ns) / 1e9;
	struct json json;

	show_progress(t, true);
	if (!is_json)
		return;
	weir_volume_info(t->volume, &t->info, sizeof(t->info));
	json_begin(&json, stdout);
	json_uint(&json, "bytes", t->done);
	json_double(&json, "seconds", seconds);
	json_uint(&json, "failovers", t->info.failovers);
	json_uint(&json, "missed_writes", t->info.missed_writes);
	json_uint(&json, "mismatches", t->info.mismatches);
	json_uint(&json, "repaired_bytes", t->info.repaired_bytes);
	json_end(&json);
}

static int alloc_pieces(struct transfer *t)
{
	for (unsigned int i = 0; i < PIECES; i++) {
		t->pieces[i].transfer = t;
		t->pieces[i].bytes = malloc(PIECE);
		if (!t->pieces[i].bytes)
			return failure(t->cmd, "out of memory");
	}
	return EXIT_OK;
}

/* The volume ends its requests first: they use the pieces. */
static void close_all(struct transfer *t)
{
	weir_volume_close(t->volume);
	weir_key_free(t->key);
	for (unsigned int i = 0; i < PIECES; i++)
		free(t->pieces[i].bytes);
	if (t->fd > STDERR_FILENO)
		close(t->fd);
}

static int transfer(const char *cmd, int argc, char **argv, bool is_import)
{
	struct transfer_options given = { 0 };
	struct transfer t = { .cmd = cmd, .is_import = is_import, .file = "-" };
	int status = cmdline_parse(is_import ? &import_line : &export_line, argc, argv, &given);
	const char *device;

	if (status != CMDLINE_PARSED)
		return status;
	if (argc - optind == 3)
		t.file = argv[optind + 2];
	if (given.json && !is_import && !strcmp(t.file, "-"))
		return usage_error(cmd, "--json: standard output has the volume's bytes: name a "
					"FILE");
	status = device_choose(cmd, given.device, &device);
	if (status)
		return status;
	stop_on_signals();
	pthread_mutex_init(&t.lock, NULL);
	pthread_cond_init(&t.ended, NULL);
	status = alloc_pieces(&t);
	if (!status && is_import)
		status = open_file(&t);
	if (!status)
		status = open_volume(&t, &given, device, argv[optind], argv[optind + 1]);
	if (!status && !is_import) /* not earlier: it empties the file */
		status = open_file(&t);
	t.start_ns = t.shown_ns = weir_now_ns();
	if (!status)
		status = move_bytes(&t);
	if (!status)
		say_result(&t, given.json);
	close_all(&t);
	return status;
}

int pool_volume_import(const char *cmd, int argc, char **argv)
{
	return transfer(cmd, argc, argv, true);
}

int pool_volume_export(const char *cmd, int argc, char **argv)
{
	return transfer(cmd, argc, argv, false);
}
