/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol of core/base/combine.h, in every interleaving of three submitting threads and a
 * poller. Each line is one atomic step, in the one order that the operations of
 * core/base/inbox.c have on their word.
 *
 * What must hold at the end of every run, and no run may hang or loop for ever:
 *  - each request was taken once, those of one thread in order;
 *  - each request was posted: none was left when all threads had returned.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DLOOKS_BEFORE_UNLOCK   the inbox is checked before the unlock
 *   -DTAKES_IN_TWO_STEPS    reads the list, then empties it
 *   -DPUSHES_IN_TWO_STEPS   reads the head, then replaces whatever is there
 *   -DFORGETS_THE_REST      leaves after one chain
 *   -DPOLLER_DOES_NOT_LOOK  the poller only unlocks
 *   -DSERVES_NEWEST_FIRST    serves the newest first
 */
#define RETURNS 4 /* three submitting threads and the poller */
#define REQUESTS 4 /* the first two by one thread, one after the other */
#define NONE 255

byte newest = NONE;	 /* the inbox */
byte older[REQUESTS];	 /* links of the list: the request pushed before */
bool locked;

bool taken[REQUESTS];
byte ready, posted;	 /* in the engines; guarded by the lock */
byte returned;		 /* threads that have finished */

inline push(request)
{
	old = newest;
	do
	:: older[request] = old;
#ifdef PUSHES_IN_TWO_STEPS
	   newest = request;
	   break
#else
	   if
	   :: atomic { newest == old -> newest = request; old = 0 }; break
	   :: atomic { newest != old -> old = newest }
	   fi
#endif
	od
}

inline submit_one(request)
{
	assert(!taken[request]);
	assert(request != 1 || taken[0]);
	taken[request] = true;
	ready++
}

/* Only the holder of the lock sees the list after taking it, so reversing the list is one step. */
inline take()
{
#ifdef TAKES_IN_TWO_STEPS
	old = newest;
	newest = NONE;
#else
	d_step { old = newest; newest = NONE };
#endif
	d_step {
		next = NONE;
#ifdef SERVES_NEWEST_FIRST
		next = old; old = NONE;
#endif
		do
		:: old != NONE -> swap = older[old]; older[old] = next; next = old; old = swap
		:: else -> break
		od;
		do
		:: next != NONE -> submit_one(next); swap = older[next]; older[next] = 0; next = swap
		:: else -> break
		od;
		old = 0; next = 0; swap = 0
	}
}

/* A chain here is one request. */
inline post_a_chain()
{
	d_step {
		if
		:: ready > 0 -> ready--; posted++
		:: else -> skip
		fi;
		more = ready > 0
	};
#ifdef FORGETS_THE_REST
	more = false
#endif
}

inline unlock_and_look()
{
#ifdef LOOKS_BEFORE_UNLOCK
	work = more || newest != NONE;
	locked = false
#else
	locked = false;
	work = more || newest != NONE
#endif
}

inline serve()
{
	do
	:: !work -> break
	:: work ->
	   if
	   :: atomic { !locked -> locked = true };
	      take();
	      post_a_chain();
	      unlock_and_look()
	   :: atomic { locked -> work = false } /* the trylock failed */
	   fi
	od
}

proctype submitter(byte first, last)
{
	byte i, old, next, swap;
	bool more, work;

	for (i : first .. last) {
		push(i);
		work = true;
		serve()
	}
	returned++
}

/* A thread that takes the lock for its own reason, and waits if necessary. */
proctype poller()
{
	byte old, next, swap;
	bool more, work;

	atomic { !locked -> locked = true };
	more = ready > 0;
	unlock_and_look();
#ifdef POLLER_DOES_NOT_LOOK
	work = false;
#endif
	serve();
	returned++
}

init {
	atomic {
		run submitter(0, 1);
		run submitter(2, 2);
		run submitter(3, 3);
		run poller()
	};
	returned == RETURNS;
	assert(newest == NONE);
	assert(posted == REQUESTS)
}
