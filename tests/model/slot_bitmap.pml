/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol of core/slots/slot_bitmap.h, and the waiting of lib/exchange/wait.c, in every
 * interleaving of two ends and both directions of their connection. A direction carries out the
 * posts of its end in order; a read takes one bit at a time. There are enough messages to use
 * each slot more than once.
 *
 * What must hold at the end of every run, and no run may hang:
 *  - each message was taken once, from a slot that had all of it;
 *  - no slot was written before its message had been taken.
 *
 * A sleeping end has requested a notification, and has read the bits since. It resumes only
 * when woken, or after as many notified messages as its request allows.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DFLIPS_WHEN_POSTED     a bit is flipped before the data is known to be there
 *   -DCOVERS_WHAT_FOLLOWS   a completed read covers writes posted behind it
 *   -DLOOKS_PASS_WRITES     the connection carries out a read before the write ahead of it
 *   -DRELEASES_FIRST        a slot is given back, and then read
 *   -DRINGS_ONLY            an end going to sleep requests, and does not read again
 *   -DLOOKS_THEN_RINGS      the read does not follow the request
 *   -DANSWERS_FIRST         the request is read, and then the bits are flipped
 *   -DSLEEPER_STAYS_RUNG    a woken end assumes that its peer still knows the request
 *   -DTELLS_BY_BITS_TOO     a notified slot also flips the bit that the peer reads
 *   -DTELLS_COUNT_AS_SEEN   a notified end assumes that it has seen the bit flipped
 *   -DTELLS_ARE_NOT_COUNTED an end sleeps on after all notifications that its request allows
 *   -DTELLS_LAND_LATE       the immediate arrives before the data
 *   -DTELLS_ARE_SHOWN_TOO   a read in flight shows slots notified meanwhile
 */
#define SLOTS 2
#define MESSAGES 4
#define DEPTH 3 /* posted and not carried out */
#define TELLS 2 /* allowed by one request */

mtype = { WRITE, LOOK, BELL, WAKE, TELL };

/* Posts of an end: slot and message of a WRITE. */
chan sends = [DEPTH] of { mtype, byte, byte, bool };
chan asks = [DEPTH] of { mtype, byte };
chan tells = [TELLS] of { byte, bool }; /* immediates not handled yet: of a slot, of both */

/* Memory of the sending end: its bits, its copy of the peer's bits, the bits seen by its read. */
bit out_bits[SLOTS], out_seen[SLOTS], out_fresh[SLOTS];
bit out_told[SLOTS];
bool going[SLOTS], covered[SLOTS], out_bell, out_back, out_looking;
byte out_bell_tells;
byte out_wakes;

/* Memory of the receiving end: the mirror holds a message's number, or 0. */
bit in_bits[SLOTS], in_seen[SLOTS], in_fresh[SLOTS], in_told[SLOTS];
byte mirror[SLOTS];
bool in_bell, in_back, in_looking;
byte in_wakes;

bool taken[MESSAGES + 1];

active proctype direction_out()
{
	byte slot, message;
	bool both;

end:	do
#ifdef LOOKS_PASS_WRITES
	:: sends??LOOK, slot, message, both ->
#else
	:: sends?LOOK, slot, message, both ->
#endif
		out_fresh[0] = in_bits[0];
		out_fresh[1] = in_bits[1];
		out_back = true
	:: sends?WRITE, slot, message, both ->
		atomic { assert(!mirror[slot]); mirror[slot] = message }
	:: sends?TELL, slot, message, both ->
#ifdef TELLS_LAND_LATE
		tells!slot, both;
#endif
		atomic { assert(!mirror[slot]); mirror[slot] = message };
#ifndef TELLS_LAND_LATE
		tells!slot, both
#endif
	:: sends?BELL, slot, message, both -> in_bell = true
	:: sends?WAKE, slot, message, both -> in_wakes++
	od
}

active proctype direction_in()
{
	byte limit;

end:	do
	:: asks?LOOK, limit ->
		in_fresh[0] = out_bits[0];
		in_fresh[1] = out_bits[1];
		in_back = true
	:: asks?BELL, limit -> atomic { out_bell = true; out_bell_tells = limit }
	:: asks?WAKE, limit -> out_wakes++
	od
}

#define is_full(s) (out_bits[s] != (out_seen[s] ^ out_told[s]))
#define is_free(s) (!going[s] && !is_full(s))
#define is_any_free (is_free(0) || is_free(1))
#define is_any_going (going[0] || going[1])

inline put(s)
{
	sends!WRITE, s, next, false;
	d_step { going[s] = true; next++ }
#ifdef FLIPS_WHEN_POSTED
	out_bits[s] = 1 - out_bits[s];
#endif
}

/*
 * A waiting end is notified, also of earlier slots; the last notification allowed is all that
 * it gets.
 */
inline tell(s)
{
	sends!TELL, s, next, going[1 - s];
	d_step {
		out_told[s] = 1 - out_told[s];
		if
		:: going[1 - s] ->
			out_told[1 - s] = 1 - out_told[1 - s];
			going[1 - s] = false;
#ifndef TELLS_ARE_SHOWN_TOO
			covered[1 - s] = false;
#endif
			skip
		:: else
		fi;
		next++;
		told++
	}
#ifdef TELLS_BY_BITS_TOO
	d_step { out_told[s] = 1 - out_told[s]; out_bits[s] = 1 - out_bits[s] }
#endif
	atomic {
		if
		:: out_bell_tells == told -> out_bell = false
		:: else
		fi
	}
}

#define may_tell (next <= MESSAGES && out_bell && told < out_bell_tells)

inline out_look()
{
	d_step {
		covered[0] = going[0]; covered[1] = going[1];
		out_looking = true
	}
	sends!LOOK, 0, 0, false
}

inline wake_the_receiver()
{
	if
	:: out_bell -> out_bell = false; sends!WAKE, 0, 0, false
	:: else
	fi
}

/* A peer may flip only the bits of slots that it has. */
inline free_one(s)
{
	assert(out_fresh[s] == out_seen[s] || is_full(s));
	out_seen[s] = out_fresh[s]
}

inline arrive_one(s)
{
#ifdef COVERS_WHAT_FOLLOWS
	covered[s] = going[s];
#endif
	if
	:: covered[s] ->
		covered[s] = false;
#ifndef FLIPS_WHEN_POSTED
		out_bits[s] = 1 - out_bits[s];
#endif
		going[s] = false;
		news = true
	:: else
	fi
}

inline out_looked()
{
	d_step {
		out_back = false; out_looking = false; news = false;
		free_one(0); free_one(1)
	}
#ifdef ANSWERS_FIRST
	if
	:: covered[0] || covered[1] -> wake_the_receiver()
	:: else
	fi;
#endif
	arrive_one(0);
	arrive_one(1);
#ifndef ANSWERS_FIRST
	if
	:: news -> wake_the_receiver()
	:: else
	fi
#endif
}

active proctype sender()
{
	byte next = 1, told = 0;
	bool news, rung;

	do
	:: next <= MESSAGES && is_free(0) -> put(0)
	:: next <= MESSAGES && is_free(1) -> put(1)
	:: may_tell && is_free(0) -> tell(0)
	:: may_tell && is_free(1) -> tell(1)
	:: is_any_going && !out_looking -> out_look()
	:: out_back -> out_looked()
	:: out_wakes -> atomic { out_wakes--; rung = false }
	/* Out of room: request, and read; if nothing is free, sleep. */
	:: next <= MESSAGES && !is_any_free && !is_any_going && !out_looking && !rung ->
		rung = true;
		sends!BELL, 0, 0, false;
		out_look()
	:: next > MESSAGES && !is_any_going && !out_looking -> break
	od
}

inline in_look()
{
	in_looking = true;
	asks!LOOK, 0
}

inline take(s)
{
	atomic {
		assert(mirror[s] && !taken[mirror[s]]);
		taken[mirror[s]] = true;
		mirror[s] = 0
	}
}

/* Read in place, then give back. */
inline use(s)
{
#ifdef RELEASES_FIRST
	in_bits[s] = 1 - in_bits[s];
	take(s);
#else
	take(s);
	in_bits[s] = 1 - in_bits[s];
#endif
	count++;
	if
	:: in_bell -> in_bell = false; asks!WAKE, 0
	:: else
	fi
}

inline find(s)
{
	if
	:: in_fresh[s] != in_seen[s] ->
		assert(in_bits[s] == (in_seen[s] ^ in_told[s]));
		in_seen[s] = in_fresh[s];
		use(s)
	:: else
	fi
}

inline hear(s)
{
	assert(in_bits[s] == (in_seen[s] ^ in_told[s]));
	d_step {
#ifdef TELLS_COUNT_AS_SEEN
		in_seen[s] = 1 - in_seen[s];
#else
		in_told[s] = 1 - in_told[s];
#endif
	}
	use(s)
}

inline count_tell()
{
	heard++;
#ifndef TELLS_ARE_NOT_COUNTED
	if
	:: heard == allowed -> rung = false
	:: else
	fi
#endif
}

active proctype receiver()
{
	byte count, slot, heard, allowed;
	bool rung, both;

	do
	:: in_back ->
		in_back = false;
		find(0);
		find(1);
		in_looking = false
	:: tells?slot, both ->
		count_tell();
		hear(slot);
		if
		:: both -> hear(1 - slot)
		:: else
		fi
	:: in_wakes && !len(tells) ->
		atomic {
			in_wakes--;
#ifdef SLEEPER_STAYS_RUNG
			skip
#else
			rung = false
#endif
		}
	:: count < MESSAGES && !in_looking && !rung -> in_look()
	:: count < MESSAGES && !in_looking && !rung ->
		rung = true;
		allowed = heard + TELLS;
#ifdef LOOKS_THEN_RINGS
		in_look();
		asks!BELL, allowed
#else
		asks!BELL, allowed;
#ifndef RINGS_ONLY
		in_look()
#endif
#endif
	:: count == MESSAGES && !in_looking -> break
	od
}
