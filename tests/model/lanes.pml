/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lanes: core/lane/lane.h, core/lane/claims.h and lib/client/channel/lanes.c, in every
 * interleaving. Two threads submit writes of the same page, by a lane if one is lent, else by the
 * engine. The device completes a write on a lane at once, or late. A late write stays on the lane
 * until a thread finds it done, or gives the lane up. The holder of the NIC's lock takes the lanes back
 * first, and lends them when the engine has no request. A thread that leaves a late write on a lane
 * calls the session's thread, unless it watches. That one looks until no lane has a late write, and
 * when a late write in the engine is done.
 *
 * What must hold, and no run may hang:
 *  - a write takes effect after the writes of all calls that returned before its call began;
 *  - two writes never take effect at the same time;
 *  - each write ends once, after it took effect;
 *  - no link is pushed twice.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DIGNORES_THE_INBOX      a thread on a lane does not look into the inbox
 *   -DDRAINS_FIRST           the holder empties the inbox before it takes the lanes back
 *   -DRECALLS_UNLOCKED       the holder does not wait for the lane's lock
 *   -DLENDS_WHILE_BUSY       the engine lends lanes while it has requests
 *   -DPUSHES_AFTER_UNLOCK    a lane that is given up is pushed when it is unlocked
 *   -DONLY_PUSHES            it is pushed, and the thread does not try the NIC's lock
 *   -DGIVES_UP_TWICE         a lane that is given up may be given up again
 *   -DNOBODY_WATCHES         no thread calls the session's thread to look at lanes
 *   -DCALL_STAYS             a call that came when no lane was lent counts as a watch for ever
 *   -DGIVES_CLAIMS_EARLY     a late post gives its claims back
 *   -DGIVES_CLAIMS_MIDWAY    the holder gives them back while another lane is lent
 *   -DNEVER_CLAIMS           threads on two lanes do not claim the page
 *   -DWAITS_FOR_EVER         a thread on a lane waits for a claim until it gets it
 *   -DHOLDER_DOES_NOT_LOOK   the holder unlocks, and does not look into the inbox
 */
#define LANES 2
#define WRITES 3
#define NONE 255

bool locked;		 /* the NIC's lock; guards all down to @nr_engine */
bool lent[LANES] = true; /* also by the lane's lock */
byte engine[WRITES];	 /* the engine's writes, in order */
byte nr_engine;

bool lane_locked[LANES];
byte late[LANES] = NONE; /* by the lane's lock */
bool given_up[LANES];	 /* by the lane's lock: until it is taken back */

byte inbox[WRITES];	 /* pushed and not taken */
byte nr_inbox;
bool late_pushed[LANES]; /* the lane's link is in the inbox */
bool are_lent = true;	 /* the hint */
bool claimed;
bool kicked;		 /* the session's thread is called */
bool watched;		 /* and looks after the lanes, or will */

byte inside;		 /* writes that take effect now */
bool done[WRITES];	 /* took effect */
byte posted_late;	 /* late writes on the device, as bits */
byte ended[WRITES];
bool returned[WRITES];
byte before[WRITES];	 /* writes whose calls had returned, as bits */

#define INBOX_IS_EMPTY (nr_inbox == 0 && !late_pushed[0] && !late_pushed[1])

inline begin_effect(w)
{
	d_step {
		assert(inside == 0);
		inside++;
		assert(!done[w]);
		assert((before[w] & 1) == 0 || done[0]);
		assert((before[w] & 2) == 0 || done[1]);
		assert((before[w] & 4) == 0 || done[2])
	}
}

inline end_effect(w)
{
	d_step { inside--; done[w] = true }
}

inline end_write(w)
{
	d_step { assert(done[w]); ended[w]++; assert(ended[w] == 1) }
}

inline push_link(l)
{
	d_step { assert(!late_pushed[l]); late_pushed[l] = true }
}

inline recall()
{
	are_lent = false;
	i = 0;
	do
	:: i == LANES -> break
	:: i < LANES ->
#ifndef RECALLS_UNLOCKED
		atomic { !lane_locked[i] -> lane_locked[i] = true };
#endif
		d_step {
			lent[i] = false;
			given_up[i] = false;
			if
			:: late[i] != NONE ->
				engine[nr_engine] = late[i];
				nr_engine++;
				late[i] = NONE;
#ifdef GIVES_CLAIMS_MIDWAY
				claimed = false;
#endif
				has_late = true
			:: else -> skip
			fi;
#ifndef RECALLS_UNLOCKED
			lane_locked[i] = false;
#endif
			i++
		}
	od;
	if
	:: has_late -> d_step { claimed = false; has_late = false }
	:: else -> skip
	fi;
#ifndef CALL_STAYS
	watched = false
#endif
}

inline drain()
{
	d_step {
		late_pushed[0] = false;
		late_pushed[1] = false;
		i = 0;
		do
		:: i < nr_inbox -> engine[nr_engine] = inbox[i]; nr_engine++; inbox[i] = 0; i++
		:: else -> break
		od;
		nr_inbox = 0;
		i = 0
	}
}

/* The engine has one write under way at a time: all overlap. */
inline run_engine()
{
	do
	:: nr_engine == 0 -> break
	:: nr_engine > 0 && (posted_late & (1 << engine[0])) && !done[engine[0]] -> break
	:: nr_engine > 0 && (done[engine[0]] || !(posted_late & (1 << engine[0]))) ->
		if
		:: !done[engine[0]] -> begin_effect(engine[0]); end_effect(engine[0])
		:: else -> skip
		fi;
		d_step {
			assert(done[engine[0]]);
			ended[engine[0]]++;
			assert(ended[engine[0]] == 1);
			nr_engine--;
			engine[0] = engine[1];
			engine[1] = engine[2];
			engine[2] = 0
		}
	od
}

#ifdef LENDS_WHILE_BUSY
#define MAY_LEND INBOX_IS_EMPTY
#else
#define MAY_LEND (nr_engine == 0 && INBOX_IS_EMPTY)
#endif

inline offer()
{
	if
	:: MAY_LEND ->
		i = 0;
		do
		:: i == LANES -> break
		:: i < LANES ->
			atomic { !lane_locked[i] -> lent[i] = true };
			i++
		od;
		are_lent = true
	:: true -> skip
	fi;
	i = 0
}

inline serve_locked()
{
#ifdef DRAINS_FIRST
	drain();
	recall();
#else
	recall();
	drain();
#endif
	run_engine();
	offer()
}

/* core/base/combine.h */
inline serve()
{
	do
	:: atomic { locked -> break }
	:: atomic { !locked -> locked = true };
	   serve_locked();
	   locked = false;
#ifdef HOLDER_DOES_NOT_LOOK
	   break
#else
	   if
	   :: INBOX_IS_EMPTY -> break
	   :: else -> skip
	   fi
#endif
	od
}

#ifdef NEVER_CLAIMS
#define CAN_CLAIM true
#else
#define CAN_CLAIM !claimed
#endif
#ifdef WAITS_FOR_EVER
#define MAY_GIVE_UP false
#else
#define MAY_GIVE_UP (!are_lent || !INBOX_IS_EMPTY)
#endif
#ifdef IGNORES_THE_INBOX
#define MAY_POST (lent[lane] && !given_up[lane])
#else
#define MAY_POST (lent[lane] && !given_up[lane] && INBOX_IS_EMPTY)
#endif

/* With the lane's lock: ends a late write that is done. */
inline reap(l)
{
	d_step {
		if
		:: lent[l] && !given_up[l] && late[l] != NONE && done[late[l]] ->
			ended[late[l]]++;
			assert(ended[late[l]] == 1);
			late[l] = NONE;
			claimed = false
		:: else -> skip
		fi
	}
}

#define HAS_LATE(l) (lent[l] && !given_up[l] && late[l] != NONE)
#ifdef GIVES_UP_TWICE
#define MAY_BE_GIVEN_UP(l) (lent[l] && late[l] != NONE)
#else
#define MAY_BE_GIVEN_UP(l) HAS_LATE(l)
#endif

/* With the lane's lock. */
inline give_up(l)
{
	given_up[l] = true;
	is_over = true;
#ifndef PUSHES_AFTER_UNLOCK
	push_link(l)
#endif
}

/* Leaves @by_lane set if the lane has taken the write, and @is_over if the thread gives it up. */
inline use_lane(w)
{
	if
	:: atomic { !lane_locked[0] -> lane_locked[0] = true; lane = 0 }
	:: atomic { !lane_locked[1] -> lane_locked[1] = true; lane = 1 }
	fi;
	reap(lane);
	if
	:: MAY_POST && late[lane] == NONE ->
		if
		:: atomic { CAN_CLAIM -> claimed = true; by_lane = true }
		:: atomic { claimed && MAY_GIVE_UP -> skip }
		fi
	:: else -> skip
	fi;
	if
	:: by_lane ->
		if
		:: begin_effect(w); end_effect(w); claimed = false; end_write(w)
		:: d_step {
			posted_late = posted_late | (1 << w);
			late[lane] = w
#ifdef GIVES_CLAIMS_EARLY
			; claimed = false
#endif
		   }
		fi
	:: else -> skip
	fi;
	if
	:: MAY_BE_GIVEN_UP(lane) -> give_up(lane)
	:: skip
	fi;
#ifndef NOBODY_WATCHES
	d_step {
		if
		:: HAS_LATE(lane) && !watched -> watched = true; kicked = true
		:: else -> skip
		fi
	};
#endif
	lane_locked[lane] = false;
#ifdef PUSHES_AFTER_UNLOCK
	if
	:: is_over -> push_link(lane)
	:: else -> skip
	fi
#endif
}

inline submit(w)
{
	d_step {
		before[w] = returned[0] + 2 * returned[1] + 4 * returned[2];
		by_lane = false;
		is_over = false
	};
	if
	:: are_lent -> use_lane(w)
	:: skip /* not lent, or not a write for a lane */
	fi;
	if
	:: !by_lane -> d_step { inbox[nr_inbox] = w; nr_inbox++ }; serve()
#ifndef ONLY_PUSHES
	:: by_lane && is_over -> serve()
#else
	:: by_lane && is_over -> skip
#endif
	:: by_lane && !is_over -> skip
	fi;
	returned[w] = true
}

proctype thread(byte first)
{
	byte i = 0, lane = 0;
	bool by_lane = false, is_over = false, has_late = false;

	submit(first);
	if
	:: first == 1 -> submit(2)
	:: first == 0 -> skip
	fi
}

/* A lane whose lock is taken has a thread, and is looked at later. */
active proctype session_thread()
{
	byte i = 0;
	bool has_late = false;

end:	do
	:: atomic { kicked -> kicked = false };
	   if
	   :: are_lent ->
		do
		:: atomic { !lane_locked[0] && HAS_LATE(0) && done[late[0]] -> lane_locked[0] = true };
		   reap(0);
		   lane_locked[0] = false
		:: atomic { !lane_locked[1] && HAS_LATE(1) && done[late[1]] -> lane_locked[1] = true };
		   reap(1);
		   lane_locked[1] = false
		:: !are_lent || (!HAS_LATE(0) && !HAS_LATE(1)) -> break
		od;
		watched = false
	   :: else -> skip
	   fi;
	   atomic { !locked -> locked = true };
	   serve_locked();
	   locked = false;
	   if
	   :: INBOX_IS_EMPTY -> skip
	   :: else -> serve()
	   fi
	:: atomic { !locked && nr_engine > 0 && done[engine[0]] && ended[engine[0]] == 0 ->
			locked = true };
	   serve_locked();
	   locked = false;
	   if
	   :: INBOX_IS_EMPTY -> skip
	   :: else -> serve()
	   fi
	od
}

/* Late writes take effect at any time. */
active proctype device()
{
	byte w = 0;

end:	do
	:: atomic { (posted_late & 1) && !done[0] -> w = 0 }; begin_effect(w); end_effect(w)
	:: atomic { (posted_late & 2) && !done[1] -> w = 1 }; begin_effect(w); end_effect(w)
	:: atomic { (posted_late & 4) && !done[2] -> w = 2 }; begin_effect(w); end_effect(w)
	od
}

init
{
	atomic { run thread(0); run thread(1) };
	(_nr_pr == 3);
	/* The threads have returned; each write ends. */
	(ended[0] && ended[1] && ended[2])
}
