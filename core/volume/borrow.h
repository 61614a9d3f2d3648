/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides which donor a volume asks for memory, and when the volume gives memory back.
 *
 * The host runs rounds, regularly and after events: it takes a step, sends it to the donor, and
 * reports the answer. A round has phases:
 *
 *	FORGET	memory at lost donors goes; nobody need be told
 *	TAKE	missing memory is borrowed, until none is missing or no donor has room
 *	QUERY	if memory is still missing, or should leave a donor: how much would each donor lend?
 *	RETURN	unused memory goes back to the donors that answer
 *	REPLACE	another process may have come in the place of a lost donor
 *	RETRY	one silent donor is asked whether it answers again
 *
 * Silent donors. A stopped donor still serves reads and writes without its process, but each
 * request for memory would wait for the timeout. So a donor that did not answer counts as slow,
 * and nothing is asked of it for as long as one request waits. Then one silent donor of a round is
 * asked, the one whose time came first: many silent donors must not delay the others.
 *
 * Context of all: any; never sleeps; serialised together with the extents.
 */
#ifndef WEIR_CORE_VOLUME_BORROW_H
#define WEIR_CORE_VOLUME_BORROW_H

#include "core/base/platform.h"
#include "core/volume/extents.h"

enum weir_borrow_phase {
	WEIR_BORROW_FORGET,
	WEIR_BORROW_TAKE,
	WEIR_BORROW_QUERY,
	WEIR_BORROW_RETURN,
	WEIR_BORROW_REPLACE,
	WEIR_BORROW_RETRY,
	WEIR_BORROW_OVER,
};

enum weir_borrow_op {
	WEIR_BORROW_END, /* the round is over */
	WEIR_BORROW_ASK_MEMORY, /* for one extent; then weir_borrow_taken() */
	WEIR_BORROW_ASK_ROOM, /* then weir_borrow_room() */
	WEIR_BORROW_GIVE_BACK, /* the memory at the place; then weir_borrow_returned() */
	WEIR_BORROW_DROP, /* the same without its donor, which is lost */
	WEIR_BORROW_RECONNECT, /* end the donor's session; connect to the process there now */
};

/**
 * struct weir_borrow_step - what the host does next
 * @op: an enum weir_borrow_op
 * @place: @place.donor is the donor; the rest counts for ASK_MEMORY, GIVE_BACK and DROP
 */
struct weir_borrow_step {
	uint8_t op;
	struct weir_extents_placement place;
};

/**
 * struct weir_borrow_donor - what is known of a donor's answers
 * @is_silent: it did not answer the last request
 * @ask_again_ns: when it may be asked again, if @is_silent
 * @room_bytes: what it would lend, when last asked
 */
struct weir_borrow_donor {
	bool is_silent;
	uint64_t ask_again_ns;
	uint64_t room_bytes;
};

/**
 * struct weir_borrow - the loans of a volume
 * @extents: the volume
 * @extent_bytes: of the memory that one extent takes
 * @timeout_ns: how long a request waits for a donor's answer
 * @donor: the first @extents->nr_donors are used
 * @phase, @last: of the round under way
 * @next: the next donor in QUERY and REPLACE; 1 in RETRY: a donor has been asked
 * @is_short: memory is missing, and no donor has room
 * @is_wanted: another round is due at once
 */
struct weir_borrow {
	struct weir_extents *extents;
	uint64_t extent_bytes;
	uint64_t timeout_ns;
	struct weir_borrow_donor donor[WEIR_EXTENTS_DONORS_MAX];
	enum weir_borrow_phase phase, last;
	uint8_t next;
	bool is_short, is_wanted;
};

/**
 * weir_borrow_init() - initialise, with no donor silent
 * @b: to be initialised
 * @extents: *kept*; initialised
 * @extent_bytes: at least 1
 * @timeout_ns: of a request for memory
 */
void weir_borrow_init(struct weir_borrow *b, struct weir_extents *extents, uint64_t extent_bytes,
		      uint64_t timeout_ns);

/**
 * weir_borrow_session() - tell how the session of a donor is
 * @b: the loans
 * @donor: its number
 * @state: UP: usable; SLOW: may become usable, with the donor's data; DOWN: lost, or none
 *
 * Tells the volume. A donor that is up but silent is slow. The host calls this for each donor
 * before a round.
 */
void weir_borrow_session(struct weir_borrow *b, uint8_t donor, enum weir_extents_donor_state state);

/*
 * Begins a round from the phase @first to @last. A round may be left at any time, except between a
 * step and its report.
 */
void weir_borrow_begin(struct weir_borrow *b, enum weir_borrow_phase first,
		       enum weir_borrow_phase last);

/* Gets the next step. The host owes the report that the step names, before the next step. */
void weir_borrow_next(struct weir_borrow *b, struct weir_borrow_step *step, uint64_t now_ns);

/**
 * weir_borrow_taken() - a donor was asked for memory
 * @b: the loans
 * @place: of the step; receives the place of the memory, which another extent may want by now
 * @rc: 0: @place->donor has given zeroed memory; or an errno
 * @now_ns: the time
 *
 * Return: true: the memory is at @place. False, after an @rc of 0: nothing wants it any more. The
 *	host gives it back, and reports the answer to weir_borrow_answered().
 */
bool weir_borrow_taken(struct weir_borrow *b, struct weir_extents_placement *place, int rc,
		       uint64_t now_ns);

/* A donor was asked for its room. @bytes: what it would lend, if @rc is 0. */
void weir_borrow_room(struct weir_borrow *b, uint8_t donor, int rc, uint64_t bytes,
		      uint64_t now_ns);

/*
 * Memory was given back or dropped. Without an answer it stays assigned, and is given back later.
 * Return: true if it is gone.
 */
bool weir_borrow_returned(struct weir_borrow *b, const struct weir_borrow_step *step, int rc,
			  uint64_t now_ns);

/* Return: the first of the donors with the fewest extents of room, to name when memory is short. */
uint8_t weir_borrow_scarcest(const struct weir_borrow *b);

/* A donor answered another request about memory, or did not: see weir_call_is_unanswered(). */
void weir_borrow_answered(struct weir_borrow *b, uint8_t donor, int rc, uint64_t now_ns);

#endif
