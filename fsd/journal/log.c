/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/log.h"

#include <errno.h>

#define LOG_MAGIC 0x0067666cu /* "lfg" */

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

/* Reads pages from the log's end on. @bytes: receives the pages at the end */
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

static bool is_next(const struct fsd_log *log, const struct batch_head *head)
{
	return head->magic == LOG_MAGIC && head->salt == log->salt && head->number == log->next &&
	       head->length <= log->bytes - log->end - sizeof(*head);
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
		rc = is_next(log, &head) ? 0 : -ENODATA;
	}
	if (!rc && pages_of(&head) > FSD_DISK_PAGE)
		rc = read_pages(log, &pages, pages_of(&head) - FSD_DISK_PAGE);
	if (!rc && sum(head, pages.at + sizeof(head)) != head.crc)
		rc = -ENODATA;
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
