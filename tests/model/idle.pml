/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol of lib/mux/remote/idle.c, in every interleaving of two muxes. Both connect
 * twice, and both want to end their remote whenever it has no connection. Messages on
 * connections and messages on the end use different QPs, so either may overtake the other. So
 * may the news that the queue pairs are gone.
 *
 * What must hold:
 *  - no OPEN reaches an end that has agreed to leave;
 *  - no queue pairs go while an end waits for an answer on them;
 *  - the end that receives LEFT keeps the queue pairs while it has a connection;
 *  - all connects are served in the end, by this remote or another, and this remote ends.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DCONNECTS_WHILE_ASKED  an end that has asked connects before the answer
 *   -DLEAVES_OTHERS_ALONE   an end that is asked says LEFT whatever its state
 *   -DCONNECTS_AFTER_LEFT   an end that has said LEFT still connects by this remote
 *   -DCROSSING_IS_NO_ANSWER an end that has asked does not take LEAVE for an answer
 *   -DPARTS_AT_ONCE         an end that receives LEFT does not wait for the last FIN
 */
#define CONNECTS 2 /* of either end */

mtype = { OPEN, FIN, FIN_TOO, LEAVE, LEFT, STAY };
mtype = { HERE, ASKED, GONE };

chan streams[2] = [8] of { mtype }; /* to end i */
chan words[2] = [4] of { mtype };
mtype state[2] = HERE;
byte conns[2];	/* known to end i */
byte asking[2]; /* of these, its own, unanswered */
byte wants[2] = CONNECTS;
bool said[2];	/* said LEFT, and leaves the end of the queue pairs to the other end */
bool over[2];	/* its queue pairs are gone */

inline connects()
{
	conns[me]++;
	asking[me]++;
	wants[me]--;
	streams[you]!OPEN
}

inline hears()
{
	if
	:: word == LEAVE && state[me] == HERE ->
#ifndef LEAVES_OTHERS_ALONE
	   if
	   :: conns[me] > 0 -> words[you]!STAY
	   :: else ->
#endif
	      words[you]!LEFT; state[me] = GONE; said[me] = true
#ifndef LEAVES_OTHERS_ALONE
	   fi
#endif
	:: word == LEAVE && state[me] == ASKED ->
#ifdef CROSSING_IS_NO_ANSWER
	   skip
#else
	   state[me] = GONE
#endif
	:: word == LEFT -> assert(state[me] == ASKED); state[me] = GONE
	:: word == STAY -> assert(state[me] == ASKED); state[me] = HERE
	:: else -> assert(false)
	fi
}

proctype mux(byte me)
{
	byte you = 1 - me;
	mtype word;

	do
	/* Connect. */
	:: atomic { wants[me] > 0 && !over[me] && (state[me] == HERE
#ifdef CONNECTS_WHILE_ASKED
		    || state[me] == ASKED
#endif
#ifdef CONNECTS_AFTER_LEFT
		    || said[me]
#endif
		    ) -> connects() }
	/* dial again */
	:: atomic { wants[me] > 0 && (over[me] || state[me] == GONE) -> wants[me]-- }

	/* The life of a connection: the accepting end closes first. */
	:: atomic { !over[me] && streams[me]?[OPEN] -> streams[me]?OPEN;
		    assert(state[me] != GONE); conns[me]++; streams[you]!FIN }
	:: atomic { !over[me] && streams[me]?[FIN] -> streams[me]?FIN;
		    asking[me]--; streams[you]!FIN_TOO; conns[me]-- }
	:: atomic { !over[me] && streams[me]?[FIN_TOO] -> streams[me]?FIN_TOO; conns[me]-- }

	/* No connection for long enough. */
	:: atomic { !over[me] && state[me] == HERE && conns[me] == 0 ->
		    state[me] = ASKED; words[you]!LEAVE }
	:: atomic { !over[me] && words[me]?[_] -> words[me]?word; hears() }

	/*
	 * Break the queue pairs: after receiving LEFT; after saying LEFT only when tired of
	 * waiting.
	 */
	:: atomic { !over[me] && state[me] == GONE && (said[me] || conns[me] == 0
#ifdef PARTS_AT_ONCE
		    || true
#endif
		    ) -> assert(asking[me] == 0 && conns[me] == 0); over[me] = true }
	/* The other end has broken the queue pairs. */
	:: atomic { !over[me] && over[you] -> assert(asking[me] == 0); over[me] = true }
	:: atomic { over[me] && wants[me] == 0 -> break }
	od
}

init {
	atomic { run mux(0); run mux(1) }
}
