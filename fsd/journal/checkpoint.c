/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/checkpoint.h"

#include <errno.h>

#define CHECKPOINT_MAGIC 0x31706366u /* "fcp1" */
#define STATE_VERSION 2u
#define WRITE_MAX (1u << 20) /* bytes of a write */

/* @crc: of the head, with 0 here; @state_crc, @version: of the state, from the next page on */
struct checkpoint_head {
	uint32_t magic, crc;
	uint64_t generation, salt, length;
	uint32_t state_crc, version;
};

static uint32_t sum_head(struct checkpoint_head head)
{
	head.crc = 0;
	return fsd_disk_sum(&head, sizeof(head), ~0u);
}

static int write_state(const struct fsd_disk *disk, uint64_t offset, const struct fsd_bytes *state)
{
	uint8_t last[FSD_DISK_PAGE] = { 0 };
	size_t whole = fsd_disk_within(state->length), at = 0;
	int rc = 0;

	for (; at < whole && !rc; at += WRITE_MAX)
		rc = disk->write(disk->arg, offset + at, state->at + at,
				 whole - at < WRITE_MAX ? whole - at : WRITE_MAX);
	if (rc || whole == state->length)
		return rc;
	memcpy(last, state->at + whole, state->length - whole);
	return disk->write(disk->arg, offset + whole, last, sizeof(last));
}

int fsd_checkpoint_write(const struct fsd_disk *disk, const struct fsd_layout *layout,
			 uint64_t generation, uint64_t salt, const struct fsd_bytes *state)
{
	uint64_t offset = layout->checkpoint[generation % 2];
	struct checkpoint_head head = {
		.magic = CHECKPOINT_MAGIC,
		.generation = generation,
		.salt = salt,
		.length = state->length,
		.version = STATE_VERSION,
	};
	uint8_t page[FSD_DISK_PAGE] = { 0 };
	int rc;

	if (state->length > layout->checkpoint_bytes - FSD_DISK_PAGE)
		return -ENOSPC;
	head.state_crc = fsd_disk_sum(state->at, state->length, ~0u);
	head.crc = sum_head(head);
	rc = write_state(disk, offset + FSD_DISK_PAGE, state);
	if (rc)
		return rc;
	memcpy(page, &head, sizeof(head));
	return disk->write(disk->arg, offset, page, sizeof(page));
}

/* @head: all zero if there is none. */
static int read_head(const struct fsd_disk *disk, const struct fsd_layout *layout, unsigned int i,
		     struct checkpoint_head *head)
{
	uint8_t page[FSD_DISK_PAGE];
	int rc = disk->read(disk->arg, layout->checkpoint[i], page, sizeof(page));

	if (rc)
		return rc;
	memcpy(head, page, sizeof(*head));
	if (head->magic != CHECKPOINT_MAGIC || head->crc != sum_head(*head) ||
	    head->generation % 2 != i || head->length > layout->checkpoint_bytes - FSD_DISK_PAGE)
		*head = (struct checkpoint_head){ 0 };
	return 0;
}

static int read_state(const struct fsd_disk *disk, uint64_t offset,
		      const struct checkpoint_head *head, struct fsd_bytes *state)
{
	size_t length = fsd_disk_holding(head->length);
	int rc;

	*state = (struct fsd_bytes){ .at = malloc(length ? length : 1), .room = length };
	if (!state->at)
		return -ENOMEM;
	state->length = head->length;
	rc = length ? disk->read(disk->arg, offset, state->at, length) : 0;
	if (!rc && fsd_disk_sum(state->at, state->length, ~0u) != head->state_crc)
		rc = -EIO;
	if (rc)
		fsd_bytes_free(state);
	return rc;
}

int fsd_checkpoint_read(const struct fsd_disk *disk, const struct fsd_layout *layout,
			uint64_t *generation, uint64_t *salt, struct fsd_bytes *state)
{
	const struct checkpoint_head *newest;
	struct checkpoint_head head[2];
	int rc = read_head(disk, layout, 0, &head[0]);

	if (!rc)
		rc = read_head(disk, layout, 1, &head[1]);
	if (rc)
		return rc;
	newest = &head[head[1].generation > head[0].generation];
	if (!newest->generation)
		return -EIO;
	if (newest->version != STATE_VERSION)
		return -EPROTONOSUPPORT;
	*generation = newest->generation;
	*salt = newest->salt;
	return read_state(disk, layout->checkpoint[newest->generation % 2] + FSD_DISK_PAGE, newest,
			  state);
}
