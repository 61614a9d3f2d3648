/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A chain posted without the NIC's lock: core/link/link.h and lib/client/channel/session_link.c, in
 * every interleaving. A poster posts a chain of two WRs, the second one signalled, and pushes its
 * link to the inbox. Another thread takes the lock meanwhile, may fail the link, polls, and leaves.
 * The session's thread sleeps until the CQ is armed and has a completion, or until it is kicked. The
 * device executes, breaks, or refuses WRs at any time.
 *
 * What must hold at the end of every run, and no run may hang:
 *  - each WR ended once, and well only if the device executed it;
 *  - the link did not settle while a WR or the post was under way.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DCOUNTS_THE_REFUSED     a WR counts as posted before it is, and is refused
 *   -DPOLLS_WHILE_POSTING    another thread takes completions of the chain
 *   -DDRAINS_WHILE_POSTING   another thread posts the drain WR during the post
 *   -DSETTLES_WHILE_POSTING  a failed link settles during the post
 *   -DNEVER_DRAINS           the end of the post forgets the drain WR
 *   -DLEAVES_UNARMED         no thread arms the CQ after the end of the post
 *   -DONLY_PUSHES            the poster pushes its link, and does not try the lock
 *   -DHOLDER_DOES_NOT_LOOK   the holder of the lock unlocks, and does not look into the inbox
 */
#define WRS 2
#define DRAIN WRS
#define QUEUE 3 /* the chain and the drain WR */
#define NONE 255

#ifdef DRAINS_WHILE_POSTING
#define MAY_DRAIN (listed > 0 || posting)
#else
#define MAY_DRAIN (listed > 0 && !posting)
#endif
#ifdef POLLS_WHILE_POSTING
#define MAY_POLL true
#else
#define MAY_POLL !posting
#endif
#ifdef SETTLES_WHILE_POSTING
#define MAY_SETTLE true
#else
#define MAY_SETTLE !posting
#endif
#ifdef LEAVES_UNARMED
#define MAY_ARM !mine
#else
#define MAY_ARM true
#endif

mtype = { UP, FAILING, BROKEN };

bool locked;
mtype link = UP;	 /* guarded by the lock, as all down to @armed */
bool posting;
byte listed, first;	 /* WRs in flight: @listed of them, from @first on */
bool armed;

bool pushed;		 /* the link is in the inbox */
bool kicked;		 /* the session's thread must look */

byte sq[QUEUE];		 /* the device's send queue */
byte posted, executed, polled; /* how many of it */
bool flushed[QUEUE];	 /* its completion is an error */
bool broken;		 /* the QP is in the error state */
bool inside;		 /* the poster is in the post */
byte accepted;		 /* WRs of the chain that the device has taken */

bool done[WRS];		 /* executed */
byte ended[WRS];

inline end_one(wr, well)
{
	assert(!well || done[wr]);
	ended[wr]++;
	assert(ended[wr] == 1)
}

/* A completion of @sq[polled] ends all WRs listed before as successes: core/link/in_flight.h. */
inline take_one()
{
	d_step {
		wc = polled;
		polled++;
		if
		:: sq[wc] == 0 && !flushed[wc] -> skip /* has no completion */
		:: else ->
			do
			:: listed == 0 -> break
			:: listed > 0 ->
				at = first;
				first++;
				listed--;
				if
				:: at == sq[wc] -> end_one(at, !flushed[wc]); break
				:: else -> end_one(at, true)
				fi
			od;
			if
			:: flushed[wc] && link == UP -> failed = true
			:: else -> skip
			fi;
		fi;
		at = 0; wc = 0
	}
}

inline fail()
{
	d_step {
		if
		:: link == UP ->
			link = FAILING;
			broken = true;
			if
			:: MAY_DRAIN -> sq[posted] = DRAIN; posted++
			:: else -> skip
			fi
		:: else -> skip
		fi
	}
}

inline poll()
{
	do
	:: executed == polled || !(MAY_POLL) -> break
	:: executed > polled && (MAY_POLL) ->
		failed = false;
		take_one();
		if
		:: failed -> fail(); failed = false
		:: else -> skip
		fi
	od
}

inline settle()
{
	d_step {
		if
		:: link == FAILING && listed == 0 && (MAY_SETTLE) ->
			link = BROKEN;
			assert(!inside);
			assert(accepted == 0 || ended[0] == 1)
		:: else -> skip
		fi
	}
}

/* The holder of the lock finds the link in the inbox. */
inline take_inbox()
{
	d_step {
		if
		:: pushed ->
			pushed = false;
			posting = false;
			first = 0;
#ifdef COUNTS_THE_REFUSED
			listed = WRS;
			at = WRS;
#else
			listed = accepted;
			at = accepted;
#endif
			do
			:: at < WRS -> end_one(at, false); at++
			:: else -> break
			od;
			at = 0;
			if
			:: link == FAILING ->
				kicked = true;
#ifndef NEVER_DRAINS
				if
				:: listed > 0 -> sq[posted] = DRAIN; posted++
				:: else -> skip
				fi
#endif
			:: else -> skip
			fi;
			mine = true
		:: else -> skip
		fi
	};
	if
	:: mine && accepted < WRS -> fail() /* the engine has learnt that WRs were refused */
	:: else -> skip
	fi
}

/* weir_pump_leave(): polls again after arming, until there is nothing left to arm. */
inline leave()
{
	do
	:: listed > 0 && !armed && !posting && (MAY_ARM) -> armed = true; poll(); settle()
	:: else -> break
	od
}

/* As the holder of the lock. */
inline serve()
{
	take_inbox();
	poll();
	settle();
	leave();
	mine = false
}

/* After the unlock: core/base/combine.h. */
inline unlock_and_serve()
{
	do
	:: locked = false;
#ifdef HOLDER_DOES_NOT_LOOK
	   break
#else
	   if
	   :: !pushed -> break
	   :: atomic { pushed && !locked -> locked = true }; serve()
	   :: atomic { pushed && locked -> break }
	   fi
#endif
	od
}

proctype poster()
{
	byte at = 0, wc = 0;
	bool failed = false, mine = false;

	atomic { !locked -> locked = true };
	if
	:: link != UP -> end_one(0, false); end_one(1, false); unlock_and_serve(); goto over
	:: else -> skip
	fi;
	posting = true;
	inside = true;
	locked = false;
	do
	:: accepted < WRS -> d_step { sq[posted] = accepted; posted++; accepted++ }
	:: accepted == WRS -> break
	:: accepted < WRS -> break /* refused */
	od;
	inside = false;
	pushed = true;
#ifndef ONLY_PUSHES
	if
	:: atomic { !locked -> locked = true }; serve(); unlock_and_serve()
	:: locked -> skip
	fi;
#endif
over:	skip
}

proctype other()
{
	byte at = 0, wc = 0;
	bool failed = false, mine = false;

	atomic { !locked -> locked = true };
	if
	:: fail()
	:: skip
	fi;
	serve();
	if
	:: link == FAILING -> kicked = true
	:: else -> skip
	fi;
	unlock_and_serve()
}

proctype sleeper()
{
	byte at = 0, wc = 0;
	bool failed = false, mine = false;

	do
	:: ended[0] == 1 && ended[1] == 1 && link != FAILING -> break
	:: atomic { armed && executed > polled -> armed = false };
	   atomic { !locked -> locked = true };
	   serve();
	   unlock_and_serve()
	:: atomic { kicked -> kicked = false };
	   atomic { !locked -> locked = true };
	   serve();
	   unlock_and_serve()
	od
}

/* Executes in order; after an error, flushes. */
active proctype nic()
{
end:	do
	:: atomic { executed < posted && !broken ->
		if
		:: sq[executed] < WRS -> done[sq[executed]] = true
		:: else -> skip
		fi;
		executed++
	   }
	:: atomic { executed < posted -> broken = true; flushed[executed] = true; executed++ }
	od
}

init
{
	atomic { run poster(); run other(); run sleeper() }
}
