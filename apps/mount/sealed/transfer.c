/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes of sealed files. The receiving thread does all of it: the cipher needs a CPU
 * anyway. Reads of a file share its gate; a write has the gate alone, because it reads, changes and
 * writes whole blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mount/fuse/io.h"
#include "apps/mount/fuse/privilege.h"
#include "apps/mount/sealed/sealed.h"
#include "core/base/platform.h"
#include "lib/base/clock.h"

/**
 * struct blocks - some neighbouring blocks of a file, as they are stored
 * @first, @nr: the blocks
 * @slots: a buffer of the tree's pool
 * @from, @to: of these, the slots that have been read
 * @floor: the generation known of each block before its slot was read
 */
struct blocks {
	struct inode *inode;
	struct sealed_tree *tree;
	uint64_t first;
	unsigned int nr;
	uint8_t *slots;
	unsigned int from, to;
	uint64_t floor[SEALED_BLOCKS_MAX];
};

/* The part of a block that a program reads or writes. */
struct block_span {
	size_t begin, length;
};

static struct block_span span_of(uint64_t block, uint64_t offset, uint64_t end)
{
	uint64_t start = block * FS_BLOCK;
	uint64_t from = start > offset ? start : offset;
	uint64_t to = end - start > FS_BLOCK ? start + FS_BLOCK : end;

	return (struct block_span){ from - start, to - from };
}

static void take_blocks(struct blocks *b, struct inode *inode, uint64_t offset, uint64_t end)
{
	b->inode = inode;
	b->tree = inode->mount->sealed;
	b->first = offset / FS_BLOCK;
	b->nr = (unsigned int)((end - 1) / FS_BLOCK - b->first + 1);
	b->slots = weir_pool_get_wait(b->tree->pool);
}

static void put_blocks(struct blocks *b)
{
	weir_pool_put(b->tree->pool, b->slots);
}

static uint8_t *slot_at(const struct blocks *b, unsigned int i)
{
	return b->slots + (size_t)i * WEIR_SEALED_SLOT;
}

/*
 * Reads slots up to the end of the file, and zeroes behind it. @below: receives the bytes of the
 * slots that are in the file.
 */
static int fetch(struct blocks *b, unsigned int from, unsigned int nr, uint64_t *below)
{
	struct io_at_once io = {
		.inode = b->inode,
		.memory = weir_pool_memory(b->tree->pool),
		.data = (char *)slot_at(b, from),
		.offset = (b->first + from) * WEIR_SEALED_SLOT,
		.length = (uint64_t)nr * WEIR_SEALED_SLOT,
		.below_end = below,
	};
	int rc;

	for (unsigned int i = from; i < from + nr; i++)
		b->floor[i] = seen_find(&b->tree->seen, b->inode->ino, b->first + i);
	rc = io_at_once(&io);
	if (!rc)
		memset(slot_at(b, from) + *below, 0, io.length - *below);
	return rc;
}

/* @only_places: reserves the donor's memory, and moves nothing */
static int store(struct blocks *b, uint64_t length, bool only_places)
{
	struct io_at_once io = {
		.inode = b->inode,
		.memory = weir_pool_memory(b->tree->pool),
		.data = (char *)b->slots,
		.offset = b->first * WEIR_SEALED_SLOT,
		.length = length,
		.write = true,
		.only_places = only_places,
	};

	return io_at_once(&io);
}

static void complain(const struct blocks *b, unsigned int i, int rc)
{
	const char *why = rc == -ESTALE ? "is older than one that this mount has seen there: the "
					  "donor has put an old block back" :
			  rc == -EOPNOTSUPP ? "needs a CPU with AES instructions" :
					      "is not what a holder of the key wrote there";

	mount_log(WEIR_LOG_ERROR,
		  "bad block block=%llu inode=%llu id=W503: the block of the file %s (find -inum "
		  "names the file)",
		  (unsigned long long)(b->first + i), (unsigned long long)b->inode->ino, why);
}

static int decrypt(struct blocks *b, unsigned int i, uint8_t *text, uint64_t *generation)
{
	const struct weir_slot_place place = { b->inode->ino, b->first + i };
	struct weir_slot_trailer trailer;

	memcpy(&trailer, slot_at(b, i), sizeof(trailer));
	return weir_slot_open(b->tree->keys, &place, &trailer, slot_at(b, i) + SEALED_HEAD,
			      FS_BLOCK, text, generation);
}

/* Whether a slot proves that the donor went back. */
static bool is_old(const struct blocks *b, unsigned int i, uint64_t generation)
{
	uint64_t floor = b->floor[i] & ~SEEN_MAY_BE_HOLE;

	if (generation != WEIR_SLOT_NEVER)
		return generation < floor;
	return floor && !(b->floor[i] & SEEN_MAY_BE_HOLE);
}

/* Decrypts slot @i into FS_BLOCK bytes at @text. Return: 0; -EIO, after a line in the log. */
static int open_block(struct blocks *b, unsigned int i, uint8_t *text)
{
	uint64_t generation;
	int rc = decrypt(b, i, text, &generation);

	if (!rc && is_old(b, i, generation)) {
		memset(text, 0, FS_BLOCK);
		rc = -ESTALE;
	}
	if (rc) {
		complain(b, i, rc);
		return -EIO;
	}
	if (generation != WEIR_SLOT_NEVER)
		seen_note(&b->tree->seen, b->inode->ino, b->first + i, generation);
	return 0;
}

/* Seals @length bytes of @text as slot @i. Its generation goes to floor[i]. */
static void seal_block(struct blocks *b, unsigned int i, const uint8_t *text, size_t length)
{
	const struct weir_slot_place place = { b->inode->ino, b->first + i };
	struct weir_slot_trailer trailer = {
		.counter = atomic_fetch_add(&b->tree->counter, 1),
		.cipher = b->tree->cipher,
		.length = (uint32_t)length,
	};
	uint64_t floor = 0;

	do {
		trailer.generation = weir_slot_generation(&b->tree->latest, floor);
		floor = seen_seal(&b->tree->seen, place.object, place.block, trailer.generation);
	} while (trailer.generation <= floor);
	b->floor[i] = trailer.generation;
	memcpy(trailer.writer, b->tree->writer, sizeof(trailer.writer));
	weir_slot_seal(b->tree->keys, &place, &trailer, text, slot_at(b, i) + SEALED_HEAD);
	memcpy(slot_at(b, i), &trailer, sizeof(trailer));
}

/* The length of the text of a slot that has been opened. */
static size_t length_of(const struct blocks *b, unsigned int i)
{
	struct weir_slot_trailer trailer;

	memcpy(&trailer, slot_at(b, i), sizeof(trailer));
	return trailer.length;
}

/* Whether a write needs nothing of the old block. @size: of the file */
static bool replaces(struct block_span span, uint64_t block, uint64_t size)
{
	return !span.begin &&
	       (span.length == FS_BLOCK || block * FS_BLOCK + span.length >= size);
}

/* Whether this client has seen the slot of a block, and not only when it cannot have been older. */
static bool is_known(const struct blocks *b, uint64_t block)
{
	uint64_t generation = seen_find(&b->tree->seen, b->inode->ino, block);

	return generation && !(generation & SEEN_MAY_BE_HOLE);
}

/*
 * Reads the slots that a write must know: those of blocks that it replaces in part, and those
 * without a known generation. There are none behind the end of the file.
 */
static int fetch_for_write(struct blocks *b, uint64_t offset, uint64_t end, uint64_t size)
{
	uint64_t below;

	b->from = b->nr;
	b->to = 0;
	for (unsigned int i = 0; i < b->nr; i++) {
		uint64_t block = b->first + i;

		if (block * FS_BLOCK < size &&
		    (!replaces(span_of(block, offset, end), block, size) ||
		     !is_known(b, block))) {
			b->from = b->from < i ? b->from : i;
			b->to = i + 1;
		}
	}
	return b->to ? fetch(b, b->from, b->to - b->from, &below) : 0;
}

/* Seals a new block. The old slot matters only for its generation, which must be smaller. */
static void replace_block(struct blocks *b, unsigned int i, bool is_fetched, const uint8_t *data,
			  size_t length)
{
	uint8_t text[FS_BLOCK];
	uint64_t generation;

	if (is_fetched && !decrypt(b, i, text, &generation) && generation != WEIR_SLOT_NEVER)
		seen_note(&b->tree->seen, b->inode->ino, b->first + i, generation);
	seal_block(b, i, data, length);
}

/* Seals block @i with the part that a write has at @data. @size: of the file */
static int fill_block(struct blocks *b, unsigned int i, struct block_span span, const uint8_t *data,
		      uint64_t size)
{
	bool is_fetched = i >= b->from && i < b->to;
	uint8_t text[FS_BLOCK] = { 0 };
	size_t length = 0;
	int rc;

	if (replaces(span, b->first + i, size)) {
		replace_block(b, i, is_fetched, data, span.length);
		return 0;
	}
	if (is_fetched) {
		rc = open_block(b, i, text);
		if (rc)
			return rc;
		length = length_of(b, i);
	}
	memcpy(text + span.begin, data, span.length);
	if (length < span.begin + span.length)
		length = span.begin + span.length;
	seal_block(b, i, text, length);
	return 0;
}

/*
 * Stores the slots of a write up to @end. It replaces the last slot of the file in place, so that
 * nothing may fail or end between: first all has a place, and the donor knows the new size. Until
 * the slot is replaced, the bytes behind its text read as zeroes.
 */
static int store_write(struct blocks *b, uint64_t offset, uint64_t end)
{
	uint64_t length =
		(b->nr - 1ull) * WEIR_SEALED_SLOT + SEALED_HEAD + length_of(b, b->nr - 1);
	int rc = store(b, length, true);

	if (!rc)
		rc = inode_grow(b->inode, sealed_stored_size(end));
	if (rc)
		return rc;
	rc = store(b, length, false);
	/* also after an error: the slots may have arrived */
	inode_wrote(b->inode, sealed_stored_size(end), end - offset);
	for (unsigned int i = 0; i < b->nr && !rc; i++)
		seen_note(&b->tree->seen, b->inode->ino, b->first + i, b->floor[i]);
	return rc;
}

static int write_sealed(struct inode *inode, const uint8_t *data, uint64_t offset, uint64_t end)
{
	struct blocks b;
	uint64_t size;
	int rc;

	pthread_mutex_lock(&inode->lock);
	size = sealed_size(inode->size);
	pthread_mutex_unlock(&inode->lock);
	take_blocks(&b, inode, offset, end);
	rc = fetch_for_write(&b, offset, end, size);
	for (unsigned int i = 0; i < b.nr && !rc; i++) {
		struct block_span span = span_of(b.first + i, offset, end);

		rc = fill_block(&b, i, span, data, size);
		data += span.length;
	}
	if (!rc)
		rc = store_write(&b, offset, end);
	put_blocks(&b);
	return rc;
}

void sealed_write(fuse_req_t req, size_t size, uint64_t offset, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	struct mount *m = inode->mount;
	struct buffer *buffer = buffer_claim();
	uint64_t begun_ns = operation_time_begin(&m->operation_time);
	int rc;

	mount_begin(m);
	inode_enter_writing(inode);
	rc = offset > SEALED_FILE_MAX - size ? -EFBIG :
	     size ? write_sealed(inode, (uint8_t *)buffer->data, offset, offset + size) :
		    0;
	if (!rc)
		traffic_add(inode, true, false, size);
	inode_leave(inode);
	operation_time_end(&m->operation_time, OPERATION_WRITE, begun_ns);
	if (rc)
		op_reply(req, rc);
	else
		fuse_reply_write(req, size);
	buffer_put(m, buffer);
	mount_end(m);
}

/* Reads up to @length bytes. @got: receives their number, less at the end of the file. */
static int read_sealed(struct inode *inode, uint8_t *data, uint64_t offset, size_t length,
		       size_t *got)
{
	uint8_t text[FS_BLOCK];
	uint64_t clipped = 0, end;
	struct blocks b;
	int rc;

	take_blocks(&b, inode, offset, offset + length);
	rc = fetch(&b, 0, b.nr, &clipped);
	end = sealed_size(b.first * WEIR_SEALED_SLOT + clipped);
	*got = rc || end <= offset ? 0 : end - offset < length ? end - offset : length;
	end = offset + *got;
	for (unsigned int i = 0; !rc && (b.first + i) * FS_BLOCK < end; i++) {
		struct block_span span = span_of(b.first + i, offset, end);

		rc = open_block(&b, i, span.length == FS_BLOCK ? data : text);
		if (!rc && span.length < FS_BLOCK)
			memcpy(data, text + span.begin, span.length);
		data += span.length;
	}
	put_blocks(&b);
	return rc;
}

void sealed_read(fuse_req_t req, size_t size, uint64_t offset, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	struct mount *m = inode->mount;
	struct buffer *buffer = buffer_claim();
	uint64_t begun_ns = operation_time_begin(&m->operation_time);
	size_t got = 0;
	int rc = 0;

	mount_begin(m);
	inode_enter_shared(inode);
	if (size && offset < SEALED_FILE_MAX)
		rc = read_sealed(inode, (uint8_t *)buffer->data, offset, size, &got);
	if (!rc)
		traffic_add(inode, false, false, got);
	inode_leave(inode);
	operation_time_end(&m->operation_time, OPERATION_READ, begun_ns);
	if (rc)
		op_reply(req, rc);
	else
		fuse_reply_buf(req, buffer->data, got);
	buffer_put(m, buffer);
	mount_end(m);
}

/* Shortens the block that contains the new end. */
static int cut_block(struct inode *inode, uint64_t size)
{
	size_t length = size % FS_BLOCK;
	uint8_t text[FS_BLOCK];
	struct blocks b;
	uint64_t below;
	int rc;

	take_blocks(&b, inode, size - length, size);
	rc = fetch(&b, 0, 1, &below);
	if (!rc)
		rc = open_block(&b, 0, text);
	if (!rc && length_of(&b, 0) > length) {
		seal_block(&b, 0, text, length);
		rc = store(&b, SEALED_HEAD + length, false);
		if (!rc)
			seen_note(&b.tree->seen, inode->ino, b.first, b.floor[0]);
	}
	put_blocks(&b);
	return rc;
}

/* Only an open file has a map. Programs may close theirs meanwhile. */
static int open_for_cut(struct inode *inode)
{
	struct donor_message q;
	struct wire_fs_open *open = call_begin(&q, FS_OPEN, inode->ino, sizeof(*open), NULL);
	struct wire_fs_attr attr;

	open->flags = O_RDWR;
	return call_attr(inode->mount, &q, &attr);
}

static void close_after_cut(struct inode *inode)
{
	const struct wire_fs_head release = { .op = FS_RELEASE, .ino = inode->ino };

	if (call_without_reply(inode->mount, &release, sizeof(release)))
		inode_owe(inode, 1);
}

int sealed_cut(struct inode *inode, uint64_t size)
{
	bool cuts_block;
	int rc;

	seen_cut(&inode->mount->sealed->seen, inode->ino, (size + FS_BLOCK - 1) / FS_BLOCK,
		 UINT64_MAX);
	pthread_mutex_lock(&inode->lock);
	cuts_block = S_ISREG(inode->attr.mode) && size % FS_BLOCK &&
		     size < sealed_size(inode->size);
	pthread_mutex_unlock(&inode->lock);
	if (!cuts_block)
		return 0;
	rc = open_for_cut(inode);
	if (rc)
		return rc;
	rc = cut_block(inode, size);
	pthread_mutex_lock(&inode->lock);
	map_forget(&inode->map);
	pthread_mutex_unlock(&inode->lock);
	close_after_cut(inode);
	return rc;
}

void sealed_was_cut(struct inode *inode, uint64_t size)
{
	struct sealed_tree *tree = inode->mount->sealed;

	seen_raise(&tree->seen, inode->ino, (size + FS_BLOCK - 1) / FS_BLOCK,
		   weir_slot_generation(&tree->latest, 0));
}

void sealed_was_made(struct mount *m, uint64_t ino)
{
	if (m->sealed)
		seen_raise(&m->sealed->seen, ino, 0, weir_slot_generation(&m->sealed->latest, 0));
}

void sealed_is_gone(struct mount *m, uint64_t ino)
{
	if (m->sealed)
		seen_end(&m->sealed->seen, ino, weir_slot_generation(&m->sealed->latest, 0));
}

static int zero_part(struct inode *inode, uint64_t from, uint64_t to)
{
	static const uint8_t zeroes[FS_BLOCK];

	return from < to ? write_sealed(inode, zeroes, from, to) : 0;
}

int sealed_punch(struct inode *inode, uint64_t offset, uint64_t end, uint64_t *first,
		 uint64_t *after)
{
	uint64_t size;
	int rc;

	pthread_mutex_lock(&inode->lock);
	size = sealed_size(inode->size);
	pthread_mutex_unlock(&inode->lock);
	if (end > size) /* the last block goes with its end */
		end = (size + FS_BLOCK - 1) / FS_BLOCK * FS_BLOCK;
	*first = (offset + FS_BLOCK - 1) / FS_BLOCK;
	*after = end / FS_BLOCK;
	if (*first > *after) {
		rc = zero_part(inode, offset, end < size ? end : size);
	} else {
		rc = zero_part(inode, offset, *first * FS_BLOCK < size ? *first * FS_BLOCK : size);
		if (!rc)
			rc = zero_part(inode, *after * FS_BLOCK, end < size ? end : size);
	}
	pthread_mutex_lock(&inode->lock);
	map_forget(&inode->map);
	pthread_mutex_unlock(&inode->lock);
	if (!rc && *first < *after)
		seen_cut(&inode->mount->sealed->seen, inode->ino, *first, *after);
	return rc;
}

void sealed_was_punched(struct inode *inode, uint64_t first, uint64_t after)
{
	struct sealed_tree *tree = inode->mount->sealed;

	seen_punch(&tree->seen, inode->ino, first, after, weir_slot_generation(&tree->latest, 0));
}
