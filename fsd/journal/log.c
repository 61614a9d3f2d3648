/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/log.h"

#include <errno.h>

#define LOG_MAGIC 0x0067666cu /* "lfg" */
#define SEARCH_BYTES (1u << 20) /* read at once */

struct batch_head {
	uint32_t magic, crc; /* CRC32C of head and batch, with 0 here */
	uint64_t salt, number;
	uint64_t length; /* of the batch */
	uint32_t version, zero;
};

void fsd_log_begin(struct fsd_log *log, uint64_t salt)
{
	log->salt = salt;
	log->next = log->end = 0;
}

static uint32_t sum(struct batch_head head, const void *batch)
{
	head.crc = 0;
	return fsd_disk_sum(batch, head.length, fsd_disk_sum(&head, sizeof(head), ~0u));
}

int fsd_log_append(struct fsd_log *log, const struct fsd_bytes *batch)
{
	struct batch_head head = {
		.magic = LOG_MAGIC,
		.salt = log->salt,
		.number = log->next,
		.length = batch->length,
		.version = FSD_LOG_VERSION,
	};
	struct fsd_bytes out = { 0 };
	int rc;

	if (batch->length > log->bytes || log->end + sizeof(head) + batch->length > log->bytes)
		return -ENOSPC;
	head.crc = sum(head, batch->at);
	fsd_bytes_put(&out, &head, sizeof(head));
	fsd_bytes_put(&out, batch->at, batch->length);
	fsd_bytes_align(&out, FSD_DISK_PAGE);
	rc = out.is_short ? -ENOMEM :
			    log->disk->write(log->disk->arg, log->start + log->end, out.at,
					     out.length);
	if (!rc) {
		log->next++;
		log->end += out.length;
	}
	fsd_bytes_free(&out);
	return rc;
}

/* Reads pages from the log's end on. @bytes: receives the pages behind those that it has */
static int read_pages(const struct fsd_log *log, struct fsd_bytes *bytes, size_t length)
{
	size_t had = bytes->length;
	uint8_t *at = realloc(bytes->at, had + length);

	if (!at)
		return -ENOMEM;
	bytes->at = at;
	bytes->length = bytes->room = had + length;
	return log->disk->read(log->disk->arg, log->start + log->end + had, at + had, length);
}

static bool is_of_log(const struct fsd_log *log, const struct batch_head *head)
{
	return head->magic == LOG_MAGIC && head->salt == log->salt;
}

static bool is_next(const struct fsd_log *log, const struct batch_head *head)
{
	return is_of_log(log, head) && head->number == log->next &&
	       head->length <= log->bytes - log->end - sizeof(*head);
}

/* Whether one of @length bytes of pages begins a batch after the next. */
static bool has_later(const struct fsd_log *log, const uint8_t *pages, size_t length)
{
	struct batch_head head;

	for (size_t at = 0; at < length; at += FSD_DISK_PAGE) {
		memcpy(&head, pages + at, sizeof(head));
		if (is_of_log(log, &head) && head.number > log->next)
			return true;
	}
	return false;
}

/*
 * The next batch is torn or damaged. A server begins a batch when the batch before is durable. So
 * if there is a later batch, this one was whole, and its requests had their replies. Return:
 * -ENODATA it was torn; -EIO it is damaged; -ENOMEM; or of the disk.
 */
static int find_reason(const struct fsd_log *log)
{
	uint64_t at = log->end, left = log->bytes - log->end;
	uint8_t *pages = malloc(SEARCH_BYTES);
	int rc = pages ? 0 : -ENOMEM;

	while (!rc && left) {
		size_t part = left < SEARCH_BYTES ? left : SEARCH_BYTES;

		rc = log->disk->read(log->disk->arg, log->start + at, pages, part);
		if (!rc && has_later(log, pages, part))
			rc = -EIO;
		at += part;
		left -= part;
	}
	free(pages);
	return rc ? rc : -ENODATA;
}

static size_t pages_of(const struct batch_head *head)
{
	return fsd_disk_holding(sizeof(*head) + head->length);
}

int fsd_log_read(struct fsd_log *log, struct fsd_bytes *batch)
{
	struct fsd_bytes pages = { 0 };
	struct batch_head head;
	int rc;

	if (log->end == log->bytes)
		return -ENODATA;
	rc = read_pages(log, &pages, FSD_DISK_PAGE);
	if (!rc) {
		memcpy(&head, pages.at, sizeof(head));
		if (!is_of_log(log, &head))
			rc = -ENODATA;
		else if (!is_next(log, &head))
			rc = find_reason(log);
	}
	if (!rc && pages_of(&head) > FSD_DISK_PAGE)
		rc = read_pages(log, &pages, pages_of(&head) - FSD_DISK_PAGE);
	if (!rc && sum(head, pages.at + sizeof(head)) != head.crc)
		rc = find_reason(log);
	if (!rc && head.version != FSD_LOG_VERSION)
		rc = -EPROTONOSUPPORT;
	if (!rc) {
		*batch = (struct fsd_bytes){ 0 };
		fsd_bytes_put(batch, pages.at + sizeof(head), head.length);
		rc = batch->is_short ? -ENOMEM : 0;
		log->next++;
		log->end += pages_of(&head);
	}
	fsd_bytes_free(&pages);
	return rc;
}
