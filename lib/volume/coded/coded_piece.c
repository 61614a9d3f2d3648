/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A piece at the shards of its stripe. A read goes to the shards with its pages. If one of them
 * cannot be read, or is wrong, k whole fragments are read, and the others computed. A write has two
 * steps, fragments and records: core/volume/coded.h says why.
 */
#include <errno.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/volume/checksum.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/request.h"

#define FRAGMENT_PAGES WEIR_CODED_FRAGMENT_PAGES
#define FRAGMENT_BYTES WEIR_VOLUME_FRAGMENT_BYTES
#define IOV_MAX_FRAGMENT FRAGMENT_PAGES

enum coded_step {
	READ_PAGES, /* into the user's memory */
	READ_FRAGMENTS, /* of k shards */
	READ_PROOF, /* any page: the stripe is zeroes, if the donor lets this client read */
	WRITE_FRAGMENTS,
	WRITE_RECORDS,
};

static struct weir_volume_coded *coded_of(const struct weir_volume_piece *piece)
{
	return piece->request->volume->coded;
}

static struct weir_coded_extent *extent_of(const struct weir_volume_piece *piece)
{
	return &coded_of(piece)->extent[piece->extent];
}

static uint32_t stripe_of(const struct weir_volume_piece *piece)
{
	return piece->page / weir_coded_stripe_pages(&coded_of(piece)->layout);
}

/* The first page of the piece in its stripe. */
static uint32_t first_of(const struct weir_volume_piece *piece)
{
	return piece->page % weir_coded_stripe_pages(&coded_of(piece)->layout);
}

static bool is_blank(const struct weir_volume_piece *piece)
{
	return extent_of(piece)->current[stripe_of(piece)] == WEIR_CODED_NO_PLACE;
}

static uint16_t data_shards(const struct weir_volume_piece *piece)
{
	return (uint16_t)((1u << coded_of(piece)->layout.data) - 1);
}

/* The shards with pages of the piece. */
static uint16_t shards_of(const struct weir_volume_piece *piece)
{
	uint32_t first = first_of(piece);
	uint16_t shards = 0;

	for (uint32_t i = first; i < first + piece->pages; i++)
		shards |= (uint16_t)(1u << i / FRAGMENT_PAGES);
	return shards;
}

static char *fragment_of(const struct weir_volume_piece *piece, uint8_t shard)
{
	return piece->coded.fragments + (size_t)shard * FRAGMENT_BYTES;
}

static uint8_t shard_at(const struct weir_volume_piece *piece, uint8_t slot)
{
	return piece->request->volume->extents[piece->extent].replica[slot].shard;
}

static uint64_t offset_of(const struct weir_volume_piece *piece, uint32_t place)
{
	return (uint64_t)weir_coded_place_page(&coded_of(piece)->layout, place) *
	       WEIR_VOLUME_PAGE_BYTES;
}

/* The number of a fragment's page, as its checksum has it. */
static uint64_t number_of(const struct weir_volume_piece *piece, uint8_t shard, uint32_t page)
{
	const struct weir_coded_layout *layout = &coded_of(piece)->layout;
	uint64_t stripe = (uint64_t)piece->extent * layout->stripes + stripe_of(piece);

	return (stripe * layout->width + shard) * FRAGMENT_PAGES + page;
}

static void finish(struct weir_volume_piece *piece, int status)
{
	if (piece->request->op == WEIR_VOLUME_REPAIR && !is_blank(piece))
		weir_coded_repaired(extent_of(piece), stripe_of(piece), 0);
	free(piece->coded.fragments);
	piece->coded.fragments = NULL;
	weir_volume_piece_end(piece, status);
}

static bool has_fragments(struct weir_volume_piece *piece)
{
	if (!piece->coded.fragments)
		piece->coded.fragments =
			calloc(coded_of(piece)->layout.width, FRAGMENT_BYTES);
	return piece->coded.fragments;
}

/*
 * Checks pages of a fragment, from @first on. If their checksums are not known, because an earlier
 * client wrote them, a whole fragment has one in its record; and the checksums are known from now
 * on.
 */
static bool is_right(const struct weir_volume_piece *piece, uint8_t shard, uint32_t first,
		     uint32_t count, char *const *pages)
{
	const struct weir_volume *v = piece->request->volume;
	const struct weir_coded_extent *c = extent_of(piece);
	uint32_t *sums = weir_coded_sum(&v->coded->layout, c, stripe_of(piece), shard);
	uint32_t crc = ~0u;
	bool is_known = true;

	for (uint32_t i = 0; i < count; i++) {
		is_known &= sums[first + i] != WEIR_SUM_UNKNOWN;
		if (!weir_volume_checksum_accept(&v->checksum_key,
						 number_of(piece, shard, first + i), pages[i],
						 sums[first + i]))
			return false;
	}
	if (is_known || count < FRAGMENT_PAGES)
		return true;
	for (uint32_t i = 0; i < count; i++)
		crc = crc32_iscsi((unsigned char *)pages[i], WEIR_VOLUME_PAGE_BYTES, crc);
	if (crc != c->record[stripe_of(piece)].sum[shard])
		return false;
	for (uint32_t i = 0; i < count; i++)
		sums[i] = weir_volume_checksum(&v->checksum_key, number_of(piece, shard, i),
					       pages[i]);
	return true;
}

static bool is_fragment_right(const struct weir_volume_piece *piece, uint8_t shard)
{
	char *pages[FRAGMENT_PAGES];

	for (uint32_t i = 0; i < FRAGMENT_PAGES; i++)
		pages[i] = fragment_of(piece, shard) + (size_t)i * WEIR_VOLUME_PAGE_BYTES;
	return is_right(piece, shard, 0, FRAGMENT_PAGES, pages);
}

/* The pages of the piece in a shard: @count from @first on; @at: the first, in the piece. */
static void pages_in(const struct weir_volume_piece *piece, uint8_t shard, uint32_t *first,
		     uint32_t *count, uint32_t *at)
{
	uint32_t begin = first_of(piece), end = begin + piece->pages;
	uint32_t low = shard * FRAGMENT_PAGES, high = low + FRAGMENT_PAGES;

	low = low < begin ? begin : low;
	high = high > end ? end : high;
	*first = low % FRAGMENT_PAGES;
	*count = high - low;
	*at = low - begin;
}

static bool are_pages_right(const struct weir_volume_piece *piece, uint8_t shard)
{
	char *pages[FRAGMENT_PAGES];
	uint32_t first, count, at;

	pages_in(piece, shard, &first, &count, &at);
	for (uint32_t i = 0; i < count; i++)
		pages[i] = weir_volume_page_of(piece->request, piece->first + at + i);
	return is_right(piece, shard, first, count, pages);
}

/* Pushes the read of one shard. */
static int push_shard(struct weir_volume_piece *piece, uint8_t shard)
{
	uint32_t place = extent_of(piece)->current[stripe_of(piece)], first, count, at;
	struct weir_iov iov[IOV_MAX_FRAGMENT] = { { fragment_of(piece, shard), FRAGMENT_BYTES,
						    NULL } };
	uint8_t slot = piece->coded.set.slot[shard];
	uint64_t offset;

	if (piece->step == READ_PROOF) {
		iov[0].length = WEIR_VOLUME_PAGE_BYTES;
		return weir_volume_piece_push(piece, slot, false, 0, iov, 1);
	}
	offset = offset_of(piece, place);
	if (piece->step == READ_FRAGMENTS)
		return weir_volume_piece_push(piece, slot, false, offset, iov, 1);
	pages_in(piece, shard, &first, &count, &at);
	return weir_volume_piece_push(piece, slot, false,
				      offset + (uint64_t)first * WEIR_VOLUME_PAGE_BYTES, iov,
				      weir_volume_piece_fill_iov(piece, at, count, iov));
}

/* Return: 0: under way; or an errno. */
static int push_read(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	struct weir_coded_set *set = &piece->coded.set;
	bool is_read = piece->request->op == WEIR_VOLUME_READ;
	int rc;

	/* A repair makes the extent usable. */
	if (piece->request->op != WEIR_VOLUME_REPAIR && !weir_volume_piece_is_usable(piece))
		return -EIO;
	rc = weir_coded_choose(&v->coded->layout, &v->core, extent_of(piece), piece->extent,
			       stripe_of(piece), piece->tried,
			       is_read ? shards_of(piece) : data_shards(piece), set);
	if (rc)
		return piece->status ? piece->status : rc;
	piece->step = is_blank(piece)		? READ_PROOF :
		      is_read && set->is_direct ? READ_PAGES :
						  READ_FRAGMENTS;
	if (piece->step != READ_PAGES && !has_fragments(piece)) {
		weir_coded_release(&v->core, piece->extent, set->slots);
		return -ENOMEM;
	}
	weir_volume_piece_begin_ops(piece, UINT16_MAX);
	for (uint8_t shard = 0; shard < v->coded->layout.width; shard++) {
		rc = set->shards >> shard & 1 ? push_shard(piece, shard) : 0;
		if (rc)
			weir_volume_piece_op_failed(piece, set->slot[shard], rc);
	}
	weir_volume_piece_op_ended(piece);
	return 0;
}

static void try_read(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	int rc = v->status ? v->status : push_read(piece);

	/* A repair would keep others from the stripe: it comes again later. */
	if (piece->request->op == WEIR_VOLUME_REPAIR) {
		if (rc)
			finish(piece, rc);
		return;
	}
	if (!rc || weir_volume_piece_read_later(piece, rc))
		return;
	if (piece->is_wrong && !v->status)
		rc = weir_volume_piece_prove(piece);
	if (rc)
		finish(piece, rc);
}

/* Return: the slots that were read and have wrong bytes. */
static uint16_t find_wrong(const struct weir_volume_piece *piece)
{
	const struct weir_coded_set *set = &piece->coded.set;
	uint16_t wrong = 0;

	for (uint8_t shard = 0; shard < coded_of(piece)->layout.width; shard++) {
		bool is_ok = true;

		if (!(set->shards >> shard & 1) || piece->failed >> set->slot[shard] & 1)
			continue;
		if (piece->step == READ_PAGES)
			is_ok = are_pages_right(piece, shard);
		else if (piece->step == READ_FRAGMENTS)
			is_ok = is_fragment_right(piece, shard);
		wrong |= (uint16_t)(!is_ok << set->slot[shard]);
	}
	return wrong;
}

/* The bytes of the request in this stripe; in the stripe and in the request. */
static void bytes_in(const struct weir_volume_piece *piece, uint64_t *at, uint64_t *from,
		     uint64_t *length)
{
	const struct weir_volume_request *r = piece->request;
	uint64_t stripe = (piece->first - first_of(piece)) * WEIR_VOLUME_PAGE_BYTES;
	uint64_t bytes = (uint64_t)coded_of(piece)->layout.data * FRAGMENT_BYTES;
	uint64_t begin = r->offset > stripe ? r->offset : stripe;
	uint64_t end = r->offset + r->length;

	end = end < stripe + bytes ? end : stripe + bytes;
	*at = begin - stripe;
	*from = begin - r->offset;
	*length = end - begin;
}

/* Whether a write covers all bytes of the stripe that the volume has. */
static bool covers_stripe(const struct weir_volume_piece *piece)
{
	const struct weir_volume_request *r = piece->request;
	uint64_t at, from, length;

	bytes_in(piece, &at, &from, &length);
	return !at && (length == (uint64_t)coded_of(piece)->layout.data * FRAGMENT_BYTES ||
		       r->offset + r->length == r->volume->bytes);
}

/* Puts the bytes of a write into the data of the stripe, and computes parity and checksums. */
static void encode(struct weir_volume_piece *piece)
{
	const struct weir_volume_request *r = piece->request;
	const struct weir_volume *v = r->volume;
	uint64_t at, from, length;

	bytes_in(piece, &at, &from, &length);
	if (r->op == WEIR_VOLUME_DISCARD)
		memset(piece->coded.fragments + at, 0, length);
	else
		memcpy(piece->coded.fragments + at, r->buf + from, length);
	weir_volume_erasure_encode(&v->coded->erasure, piece->coded.fragments, FRAGMENT_BYTES);
	for (uint8_t shard = 0; shard < v->coded->layout.width; shard++) {
		piece->coded.sums[shard] = crc32_iscsi(
			(unsigned char *)fragment_of(piece, shard), FRAGMENT_BYTES, ~0u);
		for (uint32_t i = 0; i < FRAGMENT_PAGES; i++)
			piece->sums[shard * FRAGMENT_PAGES + i] = weir_volume_checksum(
				&v->checksum_key, number_of(piece, shard, i),
				fragment_of(piece, shard) + (size_t)i * WEIR_VOLUME_PAGE_BYTES);
	}
}

/* Pushes the fragments or the records to slots. */
static void push_step(struct weir_volume_piece *piece, uint16_t slots)
{
	const struct weir_coded_write *w = &piece->coded.write;
	struct weir_volume *v = piece->request->volume;

	weir_volume_piece_begin_ops(piece, slots);
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		struct weir_iov iov = { (void *)&w->record, sizeof(w->record), NULL };
		uint64_t offset = w->place * sizeof(w->record);
		int rc = 0;

		if (piece->step == WRITE_FRAGMENTS) {
			iov = (struct weir_iov){ fragment_of(piece, shard_at(piece, slot)),
						 FRAGMENT_BYTES, NULL };
			offset = offset_of(piece, w->place);
		}
		if (slots >> slot & 1)
			rc = weir_volume_piece_push(piece, slot, true, offset, &iov, 1);
		if (rc)
			weir_volume_piece_op_failed(piece, slot, rc);
	}
}

/* Begins to write @slots. Return: 0: under way; -ENOMEM: nothing has begun. */
static int push_write(struct weir_volume_piece *piece, uint16_t slots)
{
	struct weir_volume *v = piece->request->volume;

	piece->step = WRITE_FRAGMENTS;
	piece->failed = 0;
	push_step(piece, slots);
	if (weir_volume_piece_is_nowhere(piece, slots))
		return -ENOMEM;
	piece->coded.slots = slots;
	weir_coded_hold(&v->core, piece->extent, slots);
	weir_volume_piece_op_ended(piece);
	return 0;
}

/* The stripe is encoded. Return: 0: under way or waiting; or an errno. */
static int start_write(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	struct weir_volume_coded *coded = v->coded;
	uint16_t slots = weir_coded_live(&v->core, piece->extent);
	int rc;

	if (v->status)
		return v->status;
	if (!weir_volume_piece_is_usable(piece) ||
	    !weir_coded_is_enough(&coded->layout, &v->core, piece->extent, slots)) {
		if (weir_volume_piece_refusal(v))
			return weir_volume_piece_refusal(v);
		if (!v->layout->may_come(v, piece->extent))
			return -EIO;
		weir_volume_piece_wait_for_memory(piece);
		return 0;
	}
	if (weir_coded_begin(&coded->layout, extent_of(piece), piece->extent, stripe_of(piece),
			     coded->epoch, piece->coded.sums, slots, &piece->coded.write)) {
		piece->wait = WEIR_VOLUME_WAIT_PLACE;
		weir_list_add_tail(&coded->waiters, &piece->waiting);
		return 0;
	}
	rc = push_write(piece, slots);
	if (rc)
		weir_coded_cancel(extent_of(piece), &piece->coded.write);
	return rc;
}

static void try_write(struct weir_volume_piece *piece)
{
	int rc = start_write(piece);

	if (rc)
		finish(piece, rc);
}

/* Writes the fragments that shards lack. The stripe is there whole. */
static void start_repair(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	const struct weir_coded_extent *c = extent_of(piece);
	uint16_t slots = weir_coded_lacking(&v->core, c, piece->extent, stripe_of(piece));
	int rc;

	piece->coded.write = (struct weir_coded_write){ c->current[stripe_of(piece)],
							c->record[stripe_of(piece)] };
	rc = v->status ? v->status : slots ? push_write(piece, slots) : 1;
	if (rc)
		finish(piece, rc < 0 ? rc : 0);
}

/* Computes the fragments that were not read. Return: whether they are as expected. */
static bool recover(struct weir_volume_piece *piece, uint16_t wanted)
{
	const struct weir_volume_coded *coded = coded_of(piece);
	const struct weir_coded_set *set = &piece->coded.set;

	wanted &= (uint16_t)~set->shards;
	if (!wanted)
		return true;
	if (weir_volume_erasure_recover(&coded->erasure, piece->coded.fragments, FRAGMENT_BYTES,
					set->shards, wanted))
		return false;
	for (uint8_t shard = 0; shard < coded->layout.width; shard++) {
		if (wanted >> shard & 1 && !is_fragment_right(piece, shard))
			return false;
	}
	return true;
}

static void copy_out(const struct weir_volume_piece *piece)
{
	const char *from = piece->coded.fragments +
			   (size_t)first_of(piece) * WEIR_VOLUME_PAGE_BYTES;

	for (uint32_t i = 0; i < piece->pages; i++)
		memcpy(weir_volume_page_of(piece->request, piece->first + i),
		       from + (size_t)i * WEIR_VOLUME_PAGE_BYTES, WEIR_VOLUME_PAGE_BYTES);
}

static uint16_t wanted_of(const struct weir_volume_piece *piece)
{
	switch ((enum weir_volume_op)piece->request->op) {
	case WEIR_VOLUME_READ:
		return shards_of(piece);
	case WEIR_VOLUME_REPAIR:
		return (uint16_t)((1u << coded_of(piece)->layout.width) - 1);
	default:
		return data_shards(piece);
	}
}

/* The bytes that were asked for are there and right. */
static void read_succeeded(struct weir_volume_piece *piece)
{
	piece->tried = 0;
	if (piece->step == READ_FRAGMENTS && !recover(piece, wanted_of(piece))) {
		int rc = -EIO;

		weir_volume_piece_note_mismatch(piece);
		if (piece->request->op != WEIR_VOLUME_REPAIR)
			rc = weir_volume_piece_prove(piece);
		if (rc)
			finish(piece, rc);
		return;
	}
	if (piece->step == READ_PROOF)
		memset(piece->coded.fragments, 0,
		       (size_t)coded_of(piece)->layout.width * FRAGMENT_BYTES);
	if (piece->request->op == WEIR_VOLUME_REPAIR) {
		start_repair(piece);
	} else if (piece->request->op != WEIR_VOLUME_READ) {
		encode(piece);
		try_write(piece);
	} else {
		if (piece->step != READ_PAGES)
			copy_out(piece);
		finish(piece, 0);
	}
}

static bool any_own_failure(const struct weir_volume_piece *piece)
{
	bool any = false;

	for (uint8_t slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++)
		any |= weir_volume_piece_is_own_failure(piece, slot);
	return any;
}

/* Another client may have written the bytes; then no donor lets this one repair them. */
static void note_wrong(struct weir_volume_piece *piece, uint16_t slots)
{
	struct weir_volume *v = piece->request->volume;

	weir_volume_piece_note_mismatch(piece);
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (slots >> slot & 1)
			v->targets[v->extents[piece->extent].replica[slot].donor].wrong_reads++;
	}
	if (!v->core.repairs)
		return;
	weir_coded_distrust(extent_of(piece), stripe_of(piece), slots);
	weir_volume_kick(v);
}

static void read_ended(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	uint16_t wrong = find_wrong(piece);

	weir_coded_release(&v->core, piece->extent, piece->coded.set.slots);
	if (any_own_failure(piece)) {
		finish(piece, -ENOMEM);
		return;
	}
	if (!piece->failed && !wrong) {
		read_succeeded(piece);
		return;
	}
	v->failovers++;
	if (wrong)
		note_wrong(piece, wrong);
	weir_volume_piece_suspect(piece);
	piece->tried |= (uint16_t)piece->failed | wrong;
	try_read(piece);
}

/* Pieces that wait for a place of an extent. */
static void wake_waiters(struct weir_volume *v, uint32_t extent)
{
	struct weir_list waiters, *at;

	weir_list_init(&waiters);
	while (!weir_list_is_empty(&v->coded->waiters)) {
		at = v->coded->waiters.next;
		weir_list_del(at);
		weir_list_add_tail(&waiters, at);
	}
	while (!weir_list_is_empty(&waiters)) {
		struct weir_volume_piece *piece =
			weir_list_entry(waiters.next, struct weir_volume_piece, waiting);

		weir_list_del(&piece->waiting);
		if (piece->extent == extent)
			weir_volume_coded_piece_resume(piece, weir_volume_piece_refusal(v) != 0);
		else
			weir_list_add_tail(&v->coded->waiters, &piece->waiting);
	}
}

/* The write ends without a result: after the first record, its place stays in doubt. */
static void give_up(struct weir_volume_piece *piece, int status)
{
	struct weir_volume *v = piece->request->volume;

	weir_coded_release(&v->core, piece->extent, piece->coded.slots);
	if (piece->request->op != WEIR_VOLUME_REPAIR && piece->step == WRITE_FRAGMENTS)
		weir_coded_cancel(extent_of(piece), &piece->coded.write);
	wake_waiters(v, piece->extent);
	finish(piece, status);
}

/* A shard that serves had wrong bytes; another is being filled. */
static void count_repaired(const struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;

	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		const struct weir_replica *replica = &v->extents[piece->extent].replica[slot];

		if (piece->coded.slots >> slot & 1)
			*(replica->state == WEIR_REPLICA_VALID ? &v->core.repaired :
								 &v->core.copied) += FRAGMENT_PAGES;
	}
}

static void commit(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	const struct weir_coded_layout *layout = &v->coded->layout;
	struct weir_coded_extent *c = extent_of(piece);

	if (piece->request->op == WEIR_VOLUME_REPAIR) {
		count_repaired(piece);
		weir_coded_repaired(c, stripe_of(piece), piece->coded.slots);
	} else {
		weir_coded_commit(c, &piece->coded.write);
		memcpy(weir_coded_sum(layout, c, stripe_of(piece), 0), piece->sums,
		       layout->width * FRAGMENT_PAGES * sizeof(piece->sums[0]));
	}
	weir_coded_release(&v->core, piece->extent, piece->coded.slots);
	weir_volume_coded_trust(v, piece->extent);
	wake_waiters(v, piece->extent);
	finish(piece, 0);
}

/* Each slot that has failed is out, or is still being filled. */
static void advance(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	uint16_t failed = piece->coded.slots & (uint16_t)piece->failed;
	bool is_repair = piece->request->op == WEIR_VOLUME_REPAIR;

	v->missed_writes += failed && !is_repair;
	weir_coded_release(&v->core, piece->extent, failed);
	piece->coded.slots &= (uint16_t)~failed;
	if (!is_repair)
		weir_coded_drop(extent_of(piece), &piece->coded.write, failed);
	if (is_repair ? !piece->coded.slots :
			!weir_coded_is_enough(&v->coded->layout, &v->core, piece->extent,
					      piece->coded.slots)) {
		give_up(piece, piece->status ? piece->status : -EIO);
	} else if (piece->step == WRITE_RECORDS) {
		commit(piece);
	} else {
		piece->step = WRITE_RECORDS;
		piece->failed = 0;
		push_step(piece, piece->coded.slots);
		weir_volume_piece_op_ended(piece);
	}
}

static void settle(struct weir_volume_piece *piece)
{
	uint16_t retry;

	/* A repair keeps others from its stripe: it comes again later. */
	if (piece->request->op == WEIR_VOLUME_REPAIR) {
		advance(piece);
		return;
	}
	switch (weir_volume_piece_settle(piece, &retry)) {
	case WEIR_VOLUME_SETTLED:
		advance(piece);
		break;
	case WEIR_VOLUME_REFUSED:
		give_up(piece, weir_volume_piece_refusal(piece->request->volume));
		break;
	case WEIR_VOLUME_RETRY:
		push_step(piece, retry);
		weir_volume_piece_op_ended(piece);
		break;
	case WEIR_VOLUME_WAITS:
		break;
	}
}

void weir_volume_coded_piece_begin(struct weir_volume_piece *piece)
{
	const struct weir_volume_request *r = piece->request;
	bool is_write = r->op == WEIR_VOLUME_WRITE || r->op == WEIR_VOLUME_DISCARD;

	piece->is_wrong = false;
	piece->coded.fragments = NULL;
	if (!is_write || !covers_stripe(piece)) {
		try_read(piece);
	} else if (has_fragments(piece)) {
		encode(piece);
		try_write(piece);
	} else {
		finish(piece, -ENOMEM);
	}
}

void weir_volume_coded_piece_continue(struct weir_volume_piece *piece)
{
	if (piece->step < WRITE_FRAGMENTS) {
		read_ended(piece);
		return;
	}
	weir_volume_piece_suspect(piece);
	settle(piece);
}

void weir_volume_coded_piece_resume(struct weir_volume_piece *piece, bool cancel)
{
	struct weir_volume *v = piece->request->volume;
	int rc = 0;

	if (piece->wait == WEIR_VOLUME_WAIT_FATE)
		settle(piece); /* which sees that the volume is closing */
	else if (cancel)
		rc = weir_volume_piece_refusal(v);
	else if (piece->wait == WEIR_VOLUME_WAIT_PROOF)
		rc = weir_volume_piece_prove(piece);
	else if (piece->wait == WEIR_VOLUME_WAIT_START || piece->wait == WEIR_VOLUME_WAIT_PLACE)
		rc = start_write(piece);
	else if (piece->retry_ns > weir_now_ns())
		weir_volume_piece_wait(piece, WEIR_VOLUME_WAIT_READ);
	else
		try_read(piece);
	if (rc)
		finish(piece, rc);
}
