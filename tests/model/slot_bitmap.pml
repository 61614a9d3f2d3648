/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol of core/slots/slot_bitmap.h, and how lib/exchange/wait.c waits by it, in every interleaving of two
 * ends and the two directions of their connection. A direction carries out what its end has posted,
 * in order; a look reads one bit at a time. Messages are as many as make each slot go round.
 *
 * What must hold at the end of every run, and no run may hang:
 *  - each message was taken once, out of a slot that had all of it;
 *  - nothing was written to a slot whose message had not been taken.
 * An end that sleeps has rung, and has looked since: it goes on when it is woken, or has been told of as
 * many messages as its ring allows, and only then.
 *
 * pml.py runs it, also with each of these planted, which it must find:
 *   -DFLIPS_WHEN_POSTED     a bit is flipped before it is known that the data is there
 *   -DCOVERS_WHAT_FOLLOWS   a look that is back tells of writes that were posted behind it
 *   -DLOOKS_PASS_WRITES     the connection carries out a look before the write that it follows
 *   -DRELEASES_FIRST        a slot is given back, and then read
 *   -DRINGS_ONLY            who goes to sleep rings, and does not look again
 *   -DLOOKS_THEN_RINGS      the look does not follow the ring
 *   -DANSWERS_FIRST         the bell is read, and then the bits are flipped
 *   -DSLEEPER_STAYS_RUNG    who is woken takes it that its peer knows of it still
 *   -DTELLS_BY_BITS_TOO     what is told of flips the bit that the peer reads
 *   -DTELLS_COUNT_AS_SEEN   who is told takes it that it has seen the bit flipped
 *   -DTELLS_ARE_NOT_COUNTED who was told of all that its ring allows sleeps on
 *   -DTELLS_LAND_LATE       the immediate is heard before the data is there
 *   -DTELLS_ARE_SHOWN_TOO   a look under way shows what was told of meanwhile
 */
#define SLOTS 2
#define MESSAGES 4
#define DEPTH 3 /* posted and not carried out */
#define TELLS 2 /* that a ring allows */

mtype = { WRITE, LOOK, BELL, WAKE, TELL };

/* What an end has posted: a slot and a message of a WRITE. */
chan sends = [DEPTH] of { mtype, byte, byte, bool };
chan asks = [DEPTH] of { mtype, byte };
chan tells = [TELLS] of { byte, bool }; /* immediates that were not heard yet: of a slot, of both */

/* Memory of the end that sends: its bits, its copy of the peer's, what its look has seen. */
bit out_bits[SLOTS], out_seen[SLOTS], out_fresh[SLOTS];
bit out_told[SLOTS];
bool going[SLOTS], covered[SLOTS], out_bell, out_back, out_looking;
byte out_bell_tells;
byte out_wakes;

/* Memory of the end that receives: the mirror holds a message's number, or 0. */
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

/* Who waits is told, of what was put before, too; and the last time that is all it hears. */
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

/* A peer may flip only what it has. */
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
	/* Out of room: rings, and looks; when that is in vain, it sleeps. */
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

/* Read where it lies, given back. */
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
