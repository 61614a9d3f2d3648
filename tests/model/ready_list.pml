/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ready list of a completion queue: softnic/cq/ready_list.h, with the arm of
 * softnic/cq/doorbell.h, in every interleaving. Two completers, one of which may be killed at
 * any step. A program polls, has room for one completion, and sleeps without another poll once
 * armed. Each line is one atomic step, in the one order that the operations there have on their
 * words.
 *
 * What must hold whenever nothing more happens:
 *  - all completions have been taken.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DRINGS_BEFORE_MARKING   the arrivals are incremented before the bit is set
 *   -DMARKS_BEFORE_STORING   the bit is set before the completion is there
 *   -DTAKES_BITS_FIRST       a poll takes the bits, then reads the arrivals
 *   -DTAKES_IN_TWO_STEPS     reads a bit, then clears it
 *   -DCLEARS_AFTER_LOOKING   polls, then clears the bit
 *   -DFORGETS_THE_REST       completions without room are not polled again
 *   -DHEARS_TOO_MUCH         counts later arrivals as handled
 *   -DARMS_TOO_LATE          checks for news, then arms
 *   -DDEATH_MARKS_NOTHING    on a death the arrivals are incremented, and no bit is set
 */
#define SOURCES 2

/*
 * Each completer has a doorbell of its own. Their arms are one here, because the first event
 * ends all.
 */
byte stored[SOURCES], taken[SOURCES];
bool marked[SOURCES];
byte arrivals[SOURCES], seen[SOURCES];
bool armed, event;

bool ready[SOURCES];	/* the queue's list, touched only by the poller */

inline ring(bell)
{
	arrivals[bell]++;
	if
	:: atomic { armed -> armed = false }; event = true
	:: else -> skip
	fi
}

/* If the completer is killed, the engine marks and rings once more. */
proctype completer(byte me, each; bool may_die)
{
	byte n;
	bool dies;

	do
	:: n == each || dies -> break
	:: else ->
	   n++;
#ifdef MARKS_BEFORE_STORING
	   marked[me] = true;
	   stored[me]++;
#else
	   stored[me]++;
	   if
	   :: may_die -> dies = true; break
	   :: true -> skip
	   fi;
#ifndef RINGS_BEFORE_MARKING
	   marked[me] = true;
#endif
#endif
	   if
	   :: may_die -> dies = true; break
	   :: true -> skip
	   fi;
	   ring(me);
#ifdef RINGS_BEFORE_MARKING
	   marked[me] = true
#endif
	od;
	if
	:: dies ->
#ifndef DEATH_MARKS_NOTHING
	   marked[me] = true;
#endif
	   ring(me)
	:: else -> skip
	fi
}

inline take_bit(at)
{
#ifdef TAKES_IN_TWO_STEPS
	if
	:: marked[at] -> ready[at] = true
	:: else -> skip
	fi;
	marked[at] = false
#elif defined(CLEARS_AFTER_LOOKING)
	if
	:: marked[at] -> ready[at] = true
	:: else -> skip
	fi
#else
	d_step {
		if
		:: marked[at] -> marked[at] = false; ready[at] = true
		:: else -> skip
		fi
	}
#endif
}

inline take_bits()
{
	take_bit(0);
	take_bit(1)
}

inline hear()
{
	heard[0] = arrivals[0];
	heard[1] = arrivals[1]
}

/* Poll a source, if there is room; it stays in the list if it may have more. */
inline look(at)
{
	if
	:: ready[at] && !n && taken[at] < stored[at] ->
	   taken[at]++;
	   n = 1;
#ifdef FORGETS_THE_REST
	   ready[at] = false
#endif
	:: ready[at] && !n && taken[at] == stored[at] -> ready[at] = false
	:: else -> skip
	fi
}

inline see()
{
#ifdef HEARS_TOO_MUCH
	seen[0] = arrivals[0];
	seen[1] = arrivals[1]
#else
	seen[0] = heard[0];
	seen[1] = heard[1]
#endif
}

inline poll()
{
	n = 0;
#ifdef TAKES_BITS_FIRST
	take_bits();
	hear();
#else
	hear();
	take_bits();
#endif
	look(0);
	look(1);
#ifdef CLEARS_AFTER_LOOKING
	marked[0] = false;
	marked[1] = false;
#endif
	if
	:: !n -> see()
	:: else -> skip
	fi
}

inline arm()
{
#ifndef ARMS_TOO_LATE
	armed = true;
#endif
	if
	:: arrivals[0] != seen[0] -> event = true
	:: arrivals[1] != seen[1] -> event = true
	:: else -> skip
	fi
#ifdef ARMS_TOO_LATE
	; armed = true
#endif
}

proctype poller()
{
	byte heard[SOURCES], n;

end:
	do
	:: arrivals[0] != seen[0] || arrivals[1] != seen[1] -> poll()
	:: else ->
	   arm();
end_asleep:
	   event -> event = false
	od
}

init {
	atomic {
		run completer(0, 2, false);
		run completer(1, 1, true);
		run poller()
	};
	timeout ->
	assert(taken[0] == stored[0]);
	assert(taken[1] == stored[1])
}
