/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two muxes come to have one node between them (lib/mux/remote/dedup.c), in every interleaving: either dials
 * the other twice, by two addresses, all four at once; and mux 1 may have a node that mux 0 has lost. Mux 0
 * has the lower id. A session is a first lane on which both ends have proven themselves.
 *
 * What must hold: whoever connects does so by a session that both ends have, and that neither drops; and in
 * the end both have the same one, and no other that they both have.
 *
 * pml.py runs it, also with each of these planted, which it must find:
 *   -DBOTH_KEEP		when both have dialled at once, either keeps its own
 *   -DBOTH_YIELD		or either takes the other's
 *   -DYIELDS_TO_THE_DEAD	who yields does so to a node, too, by which it had heard of the other before it proved
 *				itself: of which the other would know, if it had not lost it
 *   -DNEVER_WAITS		who is told that he is known by a session on which he is to be welcomed only now
 *				takes that for one that he has lost
 *   -DNEVER_SAYS_SO		who has lost a session does not say so
 *   -DKNOWS_NOBODY		who is connected to does not look whether he has a node already
 */
#define DIALS 4
#define LOST 13 /* the session that mux 0, who dialled it, has lost */
#define SESSIONS 14 /* of each dial, one for each time that it tries: 1 to 12 */
#define OF(end, s) ((end) * SESSIONS + (s))
#define DIALLER(s) (((s) - 1) % DIALS / 2)
#define TWIN(k) ((k) / 2 * 2 + 1 - (k) % 2)

bool there[2 * SESSIONS]; /* whether that end has it */
bool heard[2 * SESSIONS]; /* whether something has come by it */
bool before[DIALS * SESSIONS]; /* whether that was so when that dial proved itself */
bool used[SESSIONS];	  /* by a connection */
bool awaits[DIALS];	  /* proven, and waits for the welcome */
byte served;

chan proofs[DIALS] = [1] of { byte, byte };   /* session, and which has ended */
chan welcomes[DIALS] = [1] of { bool, byte }; /* whether it is known; session */
chan opens[2] = [DIALS] of { byte };	      /* to that end, by that session */
chan lost[2] = [SESSIONS] of { byte };	      /* that end hears that the other has dropped it */

inline drop(end, s)
{
	assert(!used[s]);
	there[OF(end, s)] = false;
	lost[1 - end]!s
}

/* Which session @end has with the other, 0: none; of several one that the lower id dialled. */
inline find(end)
{
	found = 0;
	i = 1;
	do
	:: i < SESSIONS && there[OF(end, i)] && (found == 0 || DIALLER(i) == 0) -> found = i; i++
	:: i < SESSIONS && !(there[OF(end, i)] && (found == 0 || DIALLER(i) == 0)) -> i++
	:: i == SESSIONS -> break
	od;
	i = 0
}

proctype donor(byte k)
{
	byte me = 1 - k / 2, s, ended, found, i;

end:	do
	:: atomic { proofs[k]?s, ended;
#ifndef KNOWS_NOBODY
		    find(me);
		    do
		    :: found > 0 && found == ended -> drop(me, found); find(me)
		    :: else -> break
		    od;
#endif
		    if
		    :: found > 0 -> welcomes[k]!true, found
		    :: else -> there[OF(me, s)] = true; welcomes[k]!false, s
		    fi;
		    found = 0; s = 0; ended = 0 }
	od
}

/* The other end has dialled at the same time, and its session stays. */
inline yields()
{
	find(me);
	if
	:: (found > 0 && DIALLER(found) == 1 - me
#ifndef BOTH_YIELD
	   && me == 1
#endif
#ifndef YIELDS_TO_THE_DEAD
	   && !before[OF(k, found)]
#endif
#ifdef BOTH_KEEP
	   && false
#endif
	   ) -> lost[1 - me]!s; want = found
	:: else -> there[OF(me, s)] = true
	fi;
	found = 0
}

proctype dialer(byte k)
{
	byte me = k / 2, s = k + 1, ended, found, i, want;
	bool known;

	do
	:: assert(s < LOST);
	   atomic { d_step { for (i : 1 .. SESSIONS - 1) { before[OF(k, i)] = heard[OF(me, i)] }; i = 0 };
		    awaits[k] = true; proofs[k]!s, ended };
	   atomic { welcomes[k]?known, want;
		    awaits[k] = false;
		    if
		    :: !known -> yields()
		    :: else -> known = false
		    fi };
	   atomic { (there[OF(me, want)] || !awaits[TWIN(k)]
#ifdef NEVER_WAITS
		    || true
#endif
		    ) -> if
		       :: there[OF(me, want)] -> used[want] = true; opens[1 - me]!want; break
		       :: else -> skip
		       fi;
#ifndef NEVER_SAYS_SO
		    ended = want;
#endif
		    s = s + DIALS }
	od
}

/*
 * What comes by a session, and the news that it is no more. Nothing comes before the welcome: a lane keeps
 * its order, and a further one is refused for now while a welcome is out.
 */
#define IS_WELCOMED(end, s) (DIALLER(s) != (end) || !awaits[((s) - 1) % DIALS])

proctype listener(byte me)
{
	byte s;

end:	do
	:: atomic { opens[me]?s -> IS_WELCOMED(me, s) -> assert(there[OF(me, s)]); heard[OF(me, s)] = true; served++; s = 0 }
	:: atomic { lost[me]?s -> assert(!used[s]); there[OF(me, s)] = false; s = 0 }
	od
}

init {
	byte s, both;

	atomic {
		if
		:: there[OF(1, LOST)] = true; heard[OF(1, LOST)] = true
		:: skip
		fi;
		for (s : 0 .. DIALS - 1) {
			run donor(s);
			run dialer(s)
		}
		run listener(0);
		run listener(1)
	};
	atomic {
		served == DIALS && empty(lost[0]) && empty(lost[1]);
		for (s : 1 .. SESSIONS - 1) {
			both = both + (there[OF(0, s)] && there[OF(1, s)]);
			assert(s == LOST || there[OF(0, s)] == there[OF(1, s)])
		}
		assert(both == 1)
	}
}
