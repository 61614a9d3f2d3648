/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two muxes agree on one remote between them (lib/mux/remote/dedup.c), in every interleaving.
 * Each dials the other twice, by two addresses, all four at once. Mux 1 may have a remote that
 * mux 0 has lost. Mux 0 has the lower id. A session is a first QP on which both ends have
 * proven themselves.
 *
 * What must hold: every connection uses a session that both ends have and neither drops. At the
 * end both have exactly one session in common.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DBOTH_KEEP            when both have dialled at once, each keeps its own session
 *   -DBOTH_YIELD           or each takes the other's
 *   -DYIELDS_TO_THE_DEAD   a yielding end also yields to a remote heard of before the proof; the
 *                          peer has lost that remote
 *   -DNEVER_WAITS          an end is told that the peer knows it by a session still waiting for
 *                          its welcome, and takes that session for a lost one
 *   -DNEVER_SAYS_SO        an end that has lost a session does not say so
 *   -DKNOWS_NOBODY         the accepting end does not check whether it already has a remote
 */
#define DIALS 4
#define LOST 13 /* the session dialled and lost by mux 0 */
#define SESSIONS 14 /* one for each try of each dial: 1 to 12 */
#define OF(end, s) ((end) * SESSIONS + (s))
#define DIALLER(s) (((s) - 1) % DIALS / 2)
#define TWIN(k) ((k) / 2 * 2 + 1 - (k) % 2)

bool there[2 * SESSIONS]; /* whether that end has the session */
bool heard[2 * SESSIONS]; /* whether that end has received anything by the session */
bool before[DIALS * SESSIONS]; /* the value of heard when the dial proved itself */
bool used[SESSIONS];	  /* by a connection */
bool awaits[DIALS];	  /* proven, and waits for the welcome */
byte served;

chan proofs[DIALS] = [1] of { byte, byte };   /* session, and the session that has ended */
chan welcomes[DIALS] = [1] of { bool, byte }; /* whether the session is known; session */
chan opens[2] = [DIALS] of { byte };	      /* to that end, by that session */
/* that end learns that the other has dropped the session */
chan lost[2] = [SESSIONS] of { byte };

inline drop(end, s)
{
	assert(!used[s]);
	there[OF(end, s)] = false;
	lost[1 - end]!s
}

/*
 * The session that @end has with the other, 0: none. Among several, one dialled by the lower
 * id.
 */
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
 * Messages of a session, and the news of its end. Nothing comes before the welcome: a QP keeps
 * its order, and a further QP is refused while a welcome is in flight.
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
