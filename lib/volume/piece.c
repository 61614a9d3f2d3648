/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A piece at its copies. One lock covers the core's decision and the push of the operations. So at
 * each donor a write and the resync take effect in the order that the core assumed.
 *
 * A callback of a session touches only the piece's atomics, and pushes the piece to the inbox when
 * the last operation has ended.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/volume/checksum.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"

#define IOV_MAX_PIECE 3u /* an edge, the user's pages, an edge */
#define RETRY_NS WEIR_VOLUME_RETRY_NS
#define BLANK 1 /* zeroes by definition: no donor is asked */

void weir_volume_piece_op_ended(struct weir_volume_piece *piece)
{
	if (!__atomic_sub_fetch(&piece->subios, 1, __ATOMIC_SEQ_CST))
		weir_volume_push(piece->request->volume, &piece->event);
}

void weir_volume_piece_op_failed(struct weir_volume_piece *piece, uint8_t slot, int status)
{
	__atomic_store_n(&piece->subio[slot].status, status, __ATOMIC_RELAXED);
	__atomic_store_n(&piece->status, status, __ATOMIC_RELAXED);
	__atomic_or_fetch(&piece->failed, 1u << slot, __ATOMIC_SEQ_CST);
}

static void subio_done(void *arg, int status)
{
	struct weir_volume_subio *subio = arg;
	struct weir_volume_piece *piece = subio->piece;

	weir_span_end(subio->span, status);
	if (status)
		weir_volume_piece_op_failed(piece, subio->slot, status);
	weir_volume_piece_op_ended(piece);
}

/* Which donor is slow shows in the spans of a request's operations. */
static struct weir_span *begin_span(const struct weir_volume_piece *piece, uint8_t slot,
				    bool is_write, uint64_t offset, uint64_t bytes)
{
	const struct weir_volume *v = piece->request->volume;
	const struct weir_extent *extent = &v->core.extent[piece->extent];
	struct weir_span *span = weir_span_part(piece->request->span,
						is_write ? "copy write" : "copy read",
						WEIR_SPAN_CLIENT);
	uint8_t donor;

	if (!span)
		return NULL;
	donor = extent->replica[slot].donor;
	if (donor < v->nr_targets && v->targets[donor].address)
		weir_span_text(span, "server.address", v->targets[donor].address);
	weir_span_number(span, "weir.extent", piece->extent);
	weir_span_number(span, "weir.slot", slot);
	weir_span_number(span, "weir.offset", offset);
	weir_span_number(span, "weir.bytes", bytes);
	return span;
}

static uint64_t bytes_of(const struct weir_iov *iov, unsigned int n)
{
	uint64_t bytes = 0;

	while (n--)
		bytes += iov[n].length;
	return bytes;
}

unsigned int weir_volume_piece_fill_iov(const struct weir_volume_piece *piece, uint32_t at,
					uint32_t count, struct weir_iov *iov)
{
	unsigned int n = 0;

	for (uint32_t i = at; i < at + count; i++) {
		char *page = weir_volume_page_of(piece->request, piece->first + i);

		if (n && (char *)iov[n - 1].addr + iov[n - 1].length == page)
			iov[n - 1].length += WEIR_VOLUME_PAGE_BYTES;
		else
			iov[n++] = (struct weir_iov){ page, WEIR_VOLUME_PAGE_BYTES, NULL };
	}
	return n;
}

void weir_volume_piece_begin_ops(struct weir_volume_piece *piece, uint16_t slots)
{
	__atomic_store_n(&piece->subios, 1, __ATOMIC_SEQ_CST);
	__atomic_and_fetch(&piece->failed, (uint32_t)~slots, __ATOMIC_SEQ_CST);
}

int weir_volume_piece_push(struct weir_volume_piece *piece, uint8_t slot, bool is_write,
			   uint64_t offset, const struct weir_iov *iov, unsigned int n)
{
	struct weir_volume *v = piece->request->volume;
	struct weir_region *region = *weir_volume_region(v, piece->extent, slot);
	struct weir_completion completion = { .done = subio_done, .arg = &piece->subio[slot] };
	struct weir_span *span;
	int rc;

	if (!region)
		return -ENOTCONN; /* its session is being replaced */
	__atomic_add_fetch(&piece->subios, 1, __ATOMIC_SEQ_CST);
	span = begin_span(piece, slot, is_write, offset, bytes_of(iov, n));
	piece->subio[slot].span = span;
	rc = is_write ? weir_write_async(region, offset, iov, n, &completion, NULL) :
			weir_read_async(region, offset, iov, n, &completion, NULL);
	if (rc) {
		weir_span_end(span, rc);
		__atomic_sub_fetch(&piece->subios, 1, __ATOMIC_SEQ_CST);
	}
	return rc;
}

static int push_subio(struct weir_volume_piece *piece, uint8_t slot, bool is_write, uint32_t at,
		      uint32_t count)
{
	uint64_t offset = (uint64_t)(piece->page + at) * WEIR_VOLUME_PAGE_BYTES;
	struct weir_iov iov[IOV_MAX_PIECE];
	unsigned int n = weir_volume_piece_fill_iov(piece, at, count, iov);

	return weir_volume_piece_push(piece, slot, is_write, offset, iov, n);
}

/* Such a failure is this process's, and says nothing about the donor. */
static bool is_own_failure(int rc)
{
	return rc == -ENOMEM || rc == -EAGAIN;
}

/*
 * Of a mapped volume a donor is asked even for zeroes by definition: it refuses a client that has
 * lost the volume to another.
 */
static bool is_blank(const struct weir_volume_piece *piece, uint32_t page)
{
	const struct weir_volume *v = piece->request->volume;

	return !v->layout->is_mapped &&
	       weir_extents_is_blank(&v->core, piece->extent, page, piece->count);
}

bool weir_volume_piece_is_usable(const struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	bool is_equal = v->layout->is_equal(v, piece->extent);

	if (!is_equal)
		weir_extents_want(&v->core, piece->extent);
	return is_equal;
}

/* Reads from a copy not yet tried. Return: 0: under way; BLANK; or an errno. */
static int push_read(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	uint32_t page = piece->page + piece->at;
	int rc;

	if (is_blank(piece, page))
		return BLANK;
	if (!weir_volume_piece_is_usable(piece))
		return -EIO;
	while (!weir_extents_read(&v->core, piece->extent, piece->tried, &piece->slot)) {
		weir_extents_expect(&v->core, piece->extent, page, piece->count,
				    piece->sums + piece->at);
		piece->failed = 0;
		rc = push_subio(piece, piece->slot, false, piece->at, piece->count);
		if (!rc)
			return 0;
		weir_extents_read_end(&v->core, piece->extent, piece->slot);
		if (is_own_failure(rc))
			return -ENOMEM;
		v->layout->suspect(v, piece->extent, piece->slot);
		piece->tried |= (uint8_t)(1u << piece->slot);
		piece->status = rc;
	}
	return piece->status ? piece->status : -EIO;
}

/* Pushes the write to copies. One more operation counts, until the caller has ended it. */
static void push_to(struct weir_volume_piece *piece, uint16_t slots)
{
	weir_volume_piece_begin_ops(piece, slots);
	for (uint8_t slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++) {
		int rc = slots >> slot & 1 ? push_subio(piece, slot, true, 0, piece->pages) : 0;

		if (rc)
			weir_volume_piece_op_failed(piece, slot, rc);
	}
}

bool weir_volume_piece_is_own_failure(const struct weir_volume_piece *piece, uint8_t slot)
{
	return __atomic_load_n(&piece->failed, __ATOMIC_SEQ_CST) >> slot & 1 &&
	       is_own_failure(__atomic_load_n(&piece->subio[slot].status, __ATOMIC_RELAXED));
}

bool weir_volume_piece_is_nowhere(const struct weir_volume_piece *piece, uint16_t slots)
{
	bool is_own = true;

	for (uint8_t slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++)
		is_own &= !(slots >> slot & 1) || weir_volume_piece_is_own_failure(piece, slot);
	return is_own;
}

/*
 * Writes to all copies that are or will be valid. If each operation finds no memory of our own,
 * nothing has happened, and the core does not learn of the write. If only some do, they are tried
 * again: see settle_write().
 */
static int push_write(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	uint8_t slots = weir_extents_writable(&v->core, piece->extent);

	if (!slots)
		return -EIO;
	for (uint32_t i = 0; i < piece->pages; i++)
		piece->sums[i] = weir_volume_checksum(
			&v->checksum_key,
			weir_volume_page_number(v, piece->extent, piece->page + i),
			weir_volume_page_of(piece->request, piece->first + i));
	piece->failed = 0;
	push_to(piece, slots);
	if (weir_volume_piece_is_nowhere(piece, slots))
		return -ENOMEM;
	weir_extents_write(&v->core, &piece->write, piece->extent, piece->page, piece->pages,
			   piece->sums);
	piece->is_writing = true;
	weir_volume_piece_op_ended(piece);
	return 0;
}

/* Memory for the extent; the core may take that of an idle extent. */
static int provide_memory(const struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	uint32_t extent = piece->extent, from;
	int rc;

	if (v->layout->is_mapped) {
		if (weir_volume_piece_is_usable(piece) &&
		    weir_extents_count_valid(&v->core, extent))
			return 0;
		return v->layout->may_come(v, extent) ? -EAGAIN : -EIO;
	}
	rc = weir_extents_provide(&v->core, extent, &from);
	for (uint8_t slot = 0; !rc && from != extent && slot < v->core.slots; slot++) {
		struct weir_region **a = weir_volume_region(v, extent, slot);
		struct weir_region **b = weir_volume_region(v, from, slot), *region = *a;

		*a = *b;
		*b = region;
	}
	if (!rc && from != extent)
		weir_volume_kick(v); /* fills up the reserve */
	return rc;
}

void weir_volume_piece_wait(struct weir_volume_piece *piece, enum weir_volume_wait what)
{
	struct weir_volume *v = piece->request->volume;

	piece->wait = (uint8_t)what;
	weir_list_add_tail(&v->memory_waiters, &piece->waiting);
}

/* A mapped volume waits for as long as its pool does. */
void weir_volume_piece_wait_for_memory(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;

	if (!piece->give_up_ns)
		piece->give_up_ns = v->layout->is_mapped ?
					    UINT64_MAX :
					    weir_after_ns(weir_now_ns(), v->options.timeout_ns);
	weir_volume_piece_wait(piece, WEIR_VOLUME_WAIT_START);
	if (weir_volume_piece_is_usable(piece))
		weir_volume_kick(v);
}

int weir_volume_piece_refusal(const struct weir_volume *v)
{
	return weir_volume_is_closing(v) ? -ECANCELED : v->status;
}

/* Return: 0: under way or waiting; or an errno. */
static int start_write(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	int rc = v->status ? v->status : provide_memory(piece);

	if (rc != -EAGAIN)
		return rc ? rc : push_write(piece);
	if (weir_volume_piece_refusal(v))
		return weir_volume_piece_refusal(v);
	if (piece->give_up_ns && weir_now_ns() >= piece->give_up_ns)
		return -ENOSPC;
	weir_volume_piece_wait_for_memory(piece);
	return 0;
}

/* The request's bytes within an edge. */
static void edge_bytes(const struct weir_volume_request *r, uint64_t page, uint64_t *first,
		       uint64_t *end)
{
	*first = page * WEIR_VOLUME_PAGE_BYTES;
	*end = *first + WEIR_VOLUME_PAGE_BYTES;
	if (*first < r->offset)
		*first = r->offset;
	if (*end > r->offset + r->length)
		*end = r->offset + r->length;
}

/* The old page is read: puts the request's bytes into it. */
static void merge_edge(const struct weir_volume_request *r, uint64_t page)
{
	char *edge = weir_volume_page_of(r, page);
	uint64_t first, end;

	edge_bytes(r, page, &first, &end);
	edge += first % WEIR_VOLUME_PAGE_BYTES;
	if (r->op == WEIR_VOLUME_DISCARD)
		memset(edge, 0, end - first);
	else
		memcpy(edge, r->buf + (first - r->offset), end - first);
}

static void copy_edges_out(const struct weir_volume_piece *piece)
{
	const struct weir_volume_request *r = piece->request;

	for (uint32_t i = 0; i < piece->pages; i++) {
		uint64_t page = piece->first + i, first, end;

		if (!weir_volume_is_edge(r, page))
			continue;
		edge_bytes(r, page, &first, &end);
		memcpy(r->buf + (first - r->offset),
		       weir_volume_page_of(r, page) + first % WEIR_VOLUME_PAGE_BYTES, end - first);
	}
}

static void clear_pages(const struct weir_volume_piece *piece)
{
	for (uint32_t i = piece->at; i < piece->at + piece->count; i++)
		memset(weir_volume_page_of(piece->request, piece->first + i), 0,
		       WEIR_VOLUME_PAGE_BYTES);
}

static void take_step(struct weir_volume_piece *piece);

void weir_volume_piece_end(struct weir_volume_piece *piece, int status)
{
	if (!status && piece->request->op == WEIR_VOLUME_READ)
		copy_edges_out(piece);
	weir_volume_request_piece_ended(piece, status);
}

/* The pages of the current read are there. */
static void read_succeeded(struct weir_volume_piece *piece)
{
	struct weir_volume_request *r = piece->request;

	piece->tried = 0;
	if (r->op == WEIR_VOLUME_READ) {
		weir_volume_piece_end(piece, 0);
		return;
	}
	merge_edge(r, piece->first + piece->at);
	piece->step++;
	take_step(piece);
}

/* Whether a read that no copy could serve is tried again later. */
static bool may_read_later(const struct weir_volume_piece *piece, int rc)
{
	struct weir_volume *v = piece->request->volume;

	return v->layout->is_mapped && rc != -ENOMEM && !piece->is_wrong &&
	       !weir_volume_piece_refusal(v) && v->layout->may_come(v, piece->extent);
}

int weir_volume_piece_prove(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;

	if (weir_volume_piece_refusal(v) || v->layout->is_certain(v, piece->doubt_ns))
		return weir_volume_piece_refusal(v) ? weir_volume_piece_refusal(v) : -EIO;
	weir_volume_piece_wait(piece, WEIR_VOLUME_WAIT_PROOF);
	weir_volume_kick(v);
	return 0;
}

bool weir_volume_piece_read_later(struct weir_volume_piece *piece, int rc)
{
	bool is_soon;

	if (!may_read_later(piece, rc))
		return false;
	is_soon = !weir_volume_piece_is_usable(piece); /* the resync resumes it */
	piece->tried = 0;
	piece->retry_ns = is_soon ? 0 : weir_now_ns() + RETRY_NS;
	weir_volume_piece_wait(piece, WEIR_VOLUME_WAIT_READ);
	if (!is_soon)
		weir_volume_kick(piece->request->volume);
	return true;
}

static void try_read(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	int rc = v->status ? v->status : push_read(piece);

	if (rc < 0 && weir_volume_piece_read_later(piece, rc))
		return;
	if (rc < 0 && piece->is_wrong && !v->status)
		rc = weir_volume_piece_prove(piece);
	if (rc == BLANK && piece->request->op == WEIR_VOLUME_DISCARD) {
		weir_volume_piece_end(piece, 0); /* an edge of zeroes stays */
	} else if (rc == BLANK) {
		clear_pages(piece);
		read_succeeded(piece);
	} else if (rc) {
		weir_volume_piece_end(piece, rc);
	}
}

static void read_edge(struct weir_volume_piece *piece, uint32_t at)
{
	piece->at = at;
	piece->count = 1;
	piece->is_wrong = false;
	try_read(piece);
}

static void move_pages(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	int rc;

	piece->at = 0;
	piece->count = piece->pages;
	if (piece->request->op == WEIR_VOLUME_READ) {
		piece->is_wrong = false;
		try_read(piece);
		return;
	}
	if (piece->request->op == WEIR_VOLUME_DISCARD && !v->layout->is_mapped &&
	    !weir_volume_is_edge(piece->request, piece->first)) {
		weir_extents_discard(&v->core, piece->extent, piece->page, piece->pages, false);
		weir_volume_piece_end(piece, 0);
		return;
	}
	rc = start_write(piece);
	if (rc)
		weir_volume_piece_end(piece, rc);
}

static void take_step(struct weir_volume_piece *piece)
{
	const struct weir_volume_request *r = piece->request;
	uint32_t last = piece->pages - 1;

	if (piece->step == WEIR_VOLUME_FETCH_FIRST && !weir_volume_is_edge(r, piece->first))
		piece->step = WEIR_VOLUME_FETCH_LAST;
	if (piece->step == WEIR_VOLUME_FETCH_LAST &&
	    (!last || !weir_volume_is_edge(r, piece->first + last)))
		piece->step = WEIR_VOLUME_MOVE;
	if (piece->step == WEIR_VOLUME_FETCH_FIRST)
		read_edge(piece, 0);
	else if (piece->step == WEIR_VOLUME_FETCH_LAST)
		read_edge(piece, last);
	else
		move_pages(piece);
}

void weir_volume_piece_begin(struct weir_volume_piece *piece)
{
	piece->tried = 0;
	piece->status = 0;
	piece->subios = 0;
	piece->is_writing = false;
	piece->retry_ns = 0;
	if (piece->request->volume->coded) {
		weir_volume_coded_piece_begin(piece);
		return;
	}
	piece->step = piece->request->op == WEIR_VOLUME_READ ? WEIR_VOLUME_MOVE :
							       WEIR_VOLUME_FETCH_FIRST;
	take_step(piece);
}

static bool is_as_expected(const struct weir_volume_piece *piece)
{
	const struct weir_volume *v = piece->request->volume;
	bool is_right = true;

	for (uint32_t i = piece->at; i < piece->at + piece->count; i++)
		is_right &= weir_volume_checksum_accept(
			&v->checksum_key,
			weir_volume_page_number(v, piece->extent, piece->page + i),
			weir_volume_page_of(piece->request, piece->first + i), piece->sums[i]);
	return is_right;
}

void weir_volume_piece_note_mismatch(struct weir_volume_piece *piece)
{
	piece->request->volume->mismatches++;
	piece->is_wrong = true;
	piece->doubt_ns = weir_now_ns();
	piece->status = -EIO;
}

static void read_ended(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;
	bool is_wrong = !piece->failed && !is_as_expected(piece);

	weir_extents_read_end(&v->core, piece->extent, piece->slot);
	if (!piece->failed && !is_wrong) {
		read_succeeded(piece);
		return;
	}
	v->failovers++;
	if (is_wrong) {
		weir_volume_piece_note_mismatch(piece);
		weir_extents_distrust(&v->core, piece->extent, piece->slot, piece->page + piece->at,
				      piece->count);
	} else {
		v->layout->suspect(v, piece->extent, piece->slot);
	}
	piece->tried |= (uint8_t)(1u << piece->slot);
	weir_volume_kick(v);
	try_read(piece);
}

/* @status: why the fate of some copies stays unknown, or 0 */
static void end_write(struct weir_volume_piece *piece, int status)
{
	struct weir_volume *v = piece->request->volume;
	int rc = weir_extents_write_end(&v->core, &piece->write, (uint8_t)piece->failed);

	piece->is_writing = false;
	if (piece->failed) {
		v->missed_writes++;
		weir_volume_kick(v);
	}
	weir_volume_resync_write_ended(v);
	if (!status && rc)
		status = piece->status ? piece->status : rc;
	weir_volume_piece_end(piece, status);
}

/* The copies among the failed at which the write has this fate. */
static uint16_t slots_of_fate(const struct weir_volume_piece *piece, enum weir_volume_fate fate)
{
	struct weir_volume *v = piece->request->volume;
	uint16_t slots = 0;

	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		enum weir_volume_fate now =
			weir_volume_piece_is_own_failure(piece, slot) ?
				WEIR_VOLUME_MAY_RETRY :
				v->layout->fate_of_copy(v, piece->extent, slot);

		if (piece->failed >> slot & 1)
			slots |= (uint16_t)((now == fate) << slot);
	}
	return slots;
}

enum weir_volume_settled weir_volume_piece_settle(struct weir_volume_piece *piece,
						  uint16_t *retry)
{
	*retry = slots_of_fate(piece, WEIR_VOLUME_MAY_RETRY);
	if (!(*retry | slots_of_fate(piece, WEIR_VOLUME_MUST_WAIT)))
		return WEIR_VOLUME_SETTLED;
	if (weir_volume_piece_refusal(piece->request->volume))
		return WEIR_VOLUME_REFUSED;
	if (*retry && weir_now_ns() >= piece->retry_ns) {
		piece->retry_ns = weir_now_ns() + RETRY_NS;
		return WEIR_VOLUME_RETRY;
	}
	weir_volume_piece_wait(piece, WEIR_VOLUME_WAIT_FATE);
	return WEIR_VOLUME_WAITS;
}

static void settle_write(struct weir_volume_piece *piece)
{
	uint16_t retry;

	switch (weir_volume_piece_settle(piece, &retry)) {
	case WEIR_VOLUME_SETTLED:
		end_write(piece, 0);
		break;
	case WEIR_VOLUME_REFUSED:
		end_write(piece, weir_volume_piece_refusal(piece->request->volume));
		break;
	case WEIR_VOLUME_RETRY:
		push_to(piece, retry);
		weir_volume_piece_op_ended(piece);
		break;
	case WEIR_VOLUME_WAITS:
		break;
	}
}

void weir_volume_piece_suspect(struct weir_volume_piece *piece)
{
	struct weir_volume *v = piece->request->volume;

	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (piece->failed >> slot & 1 && !weir_volume_piece_is_own_failure(piece, slot))
			v->layout->suspect(v, piece->extent, slot);
	}
	if (piece->failed)
		weir_volume_kick(v);
}

static void write_ended(struct weir_volume_piece *piece)
{
	weir_volume_piece_suspect(piece);
	settle_write(piece);
}

void weir_volume_piece_continue(struct weir_volume_piece *piece)
{
	if (piece->request->volume->coded)
		weir_volume_coded_piece_continue(piece);
	else if (piece->is_writing)
		write_ended(piece);
	else
		read_ended(piece);
}

static void resume(struct weir_volume_piece *piece, bool cancel)
{
	int rc = 0;

	if (piece->request->volume->coded) {
		weir_volume_coded_piece_resume(piece, cancel);
		return;
	}
	if (piece->wait == WEIR_VOLUME_WAIT_FATE)
		settle_write(piece); /* which sees that the volume is closing */
	else if (cancel)
		rc = weir_volume_piece_refusal(piece->request->volume);
	else if (piece->wait == WEIR_VOLUME_WAIT_PROOF)
		rc = weir_volume_piece_prove(piece);
	else if (piece->wait == WEIR_VOLUME_WAIT_START)
		rc = start_write(piece);
	else if (piece->retry_ns > weir_now_ns())
		weir_volume_piece_wait(piece, WEIR_VOLUME_WAIT_READ);
	else
		try_read(piece);
	if (rc)
		weir_volume_piece_end(piece, rc);
}

void weir_volume_pieces_resume(struct weir_volume *v, bool cancel)
{
	struct weir_list waiters, *at;

	weir_list_init(&waiters);
	while (!weir_list_is_empty(&v->memory_waiters)) {
		at = v->memory_waiters.next;
		weir_list_del(at);
		weir_list_add_tail(&waiters, at);
	}
	while (!weir_list_is_empty(&waiters)) {
		at = waiters.next;
		weir_list_del(at);
		resume(weir_list_entry(at, struct weir_volume_piece, waiting), cancel);
	}
}
