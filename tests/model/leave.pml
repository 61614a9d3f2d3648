/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol of lib/mux/remote/idle.c, in every interleaving of two muxes that both connect, twice, and both want
 * their node to end whenever they have no connection. What is said of connections goes by another lane than
 * what is said of the end, so either overtakes the other; and so does the news that the queue pairs are gone.
 *
 * What must hold: no OPEN comes to an end that has agreed to leave; no queue pairs go while somebody waits for
 * an answer by them, nor, by who hears LEFT, while a connection is left to him; and all connects are served
 * in the end, by that node or by another, and that node ends.
 *
 * pml.py runs it, also with each of these planted, which it must find:
 *   -DCONNECTS_WHILE_ASKED  who has asked does not wait for the answer before he connects
 *   -DLEAVES_OTHERS_ALONE   who is asked says LEFT, whatever there is
 *   -DCONNECTS_AFTER_LEFT   who has said LEFT still connects by that node
 *   -DCROSSING_IS_NO_ANSWER who has asked does not take LEAVE for an answer
 *   -DPARTS_AT_ONCE         who hears LEFT does not wait for the last FIN
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
bool said[2];	/* it has said LEFT, and leaves the end of the queue pairs to the other */
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
	/* Connects. */
	:: atomic { wants[me] > 0 && !over[me] && (state[me] == HERE
#ifdef CONNECTS_WHILE_ASKED
		    || state[me] == ASKED
#endif
#ifdef CONNECTS_AFTER_LEFT
		    || said[me]
#endif
		    ) -> connects() }
	:: atomic { wants[me] > 0 && (over[me] || state[me] == GONE) -> wants[me]-- } /* dials anew */

	/* The life of a connection: who was connected to closes first. */
	:: atomic { !over[me] && streams[me]?[OPEN] -> streams[me]?OPEN;
		    assert(state[me] != GONE); conns[me]++; streams[you]!FIN }
	:: atomic { !over[me] && streams[me]?[FIN] -> streams[me]?FIN;
		    asking[me]--; streams[you]!FIN_TOO; conns[me]-- }
	:: atomic { !over[me] && streams[me]?[FIN_TOO] -> streams[me]?FIN_TOO; conns[me]-- }

	/* Nobody is there for long enough. */
	:: atomic { !over[me] && state[me] == HERE && conns[me] == 0 ->
		    state[me] = ASKED; words[you]!LEAVE }
	:: atomic { !over[me] && words[me]?[_] -> words[me]?word; hears() }

	/* It breaks the queue pairs: who has heard LEFT; who has said it only when he is tired of waiting. */
	:: atomic { !over[me] && state[me] == GONE && (said[me] || conns[me] == 0
#ifdef PARTS_AT_ONCE
		    || true
#endif
		    ) -> assert(asking[me] == 0 && conns[me] == 0); over[me] = true }
	/* They are broken over there. */
	:: atomic { !over[me] && over[you] -> assert(asking[me] == 0); over[me] = true }
	:: atomic { over[me] && wants[me] == 0 -> break }
	od
}

init {
	atomic { run mux(0); run mux(1) }
}
