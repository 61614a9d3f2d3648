/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol of lib/mux/tx/combine.c, in every interleaving. A worker, two threads that leave
 * news and serve, a thread that only leaves news because it holds a lock, and a slow device.
 * Each line is one atomic step.
 *
 * What must hold: all news is served in the end. So the worker never sleeps for ever beside
 * news or beside an unseen completion.
 *
 * pml.py checks the model, and must find each of these planted bugs:
 *   -DLOOKS_BEFORE_STOP     the worker checks the inbox, and then lets others serve
 *   -DSLEEPS_UNSAID         the worker announces its sleep after its last check
 *   -DARMS_LATE             the worker polls for completions, and then arms
 *   -DNEVER_LOOKS_AGAIN     a stand-in stops, and goes without another check
 *   -DKEEPS_THE_REST        a stand-in tells no thread of work in flight
 *   -DNEWS_WAKES_NOBODY     a thread that leaves news counts on a server, even without one
 *   -DSLEEPS_TOO_LONG       the worker derives its sleep from the time of its own last work
 */
#define NEWS 3 /* one of each thread */

byte inbox, finished;
byte posted;	 /* as the remote counts; guarded by serving */
byte flying;	 /* of these, on the device */
byte cqes;	 /* of these, completed and not seen */
bool armed;	 /* the CQ */
bool is_armed;	 /* as the remote knows: armed, and the event not taken */
bool event, bell, asleep, serving;
byte early;	 /* news that must wait for the time; guarded by serving */
bool time;	 /* the time has come */
bool alarm;	 /* a sleeping worker wakes then; guarded by serving */

inline wake()
{
	d_step { if :: asleep -> asleep = false; bell = true :: else -> skip fi }
}

inline take_completions()
{
	d_step { any = any || cqes > 0; finished = finished + cqes; posted = posted - cqes; cqes = 0 }
}

/* Handle completions once more, and post the inbox. */
inline work()
{
	any = false;
	take_completions();
	d_step { fresh = inbox; inbox = 0 };
	if
	:: fresh > 0 && !time -> early = early + fresh; fresh = 0; any = true
	:: time -> d_step { fresh = fresh + early; early = 0 }
	:: skip
	fi;
	d_step { posted = posted + fresh; flying = flying + fresh; any = any || fresh > 0; fresh = 0 }
}

inline stand_in()
{
	do
	:: work();
	   if
	   :: any -> skip
	   :: else -> break
	   fi
	od;
	rest = (posted > 0 && !is_armed) || (early > 0 && !alarm)
#ifdef KEEPS_THE_REST
	; rest = false
#endif
}

inline serve()
{
	do
	:: atomic { serving -> break }
	:: atomic { !serving -> serving = true };
	   stand_in();
	   serving = false;
	   if
	   :: rest -> wake(); break
	   :: else -> skip
	   fi;
#ifdef NEVER_LOOKS_AGAIN
	   break
#else
	   if
	   :: inbox == 0 -> break
	   :: inbox > 0 -> skip
	   fi
#endif
	od
}

proctype server()
{
	byte fresh;
	bool any, rest;

	inbox++;
	serve()
}

proctype teller()
{
	inbox++;
#ifndef NEWS_WAKES_NOBODY
	if
	:: serving -> skip
	:: !serving -> wake()
	fi
#endif
}

proctype clock()
{
	time = true
}

proctype device()
{
end:	do
	:: atomic { flying > 0 -> flying--; cqes++;
		    if :: armed -> armed = false; event = true :: else -> skip fi }
	od
}

inline lie_down()
{
	may = true;
#ifdef ARMS_LATE
	any = false;
	take_completions();
	may = !any;
#endif
	if
	:: posted > 0 && !is_armed -> armed = true; is_armed = true
	:: else -> skip
	fi;
#ifndef SLEEPS_UNSAID
	asleep = true;
#endif
#ifndef ARMS_LATE
	work();
	may = !any;
#endif
#ifndef SLEEPS_TOO_LONG
	alarm = early > 0;
#endif
#ifdef LOOKS_BEFORE_STOP
	may = may && inbox == 0;
	serving = false
#else
	serving = false;
	may = may && inbox == 0
#endif
#ifdef SLEEPS_UNSAID
	; asleep = true
#endif
}

proctype worker()
{
	byte fresh;
	bool any, may, rises;

end:	do
	:: if
	   :: atomic { !serving -> serving = true }; work(); alarm = early > 0; serving = false
	   :: serving -> skip
	   fi
	:: if
	   :: atomic { !serving -> serving = true };
	      lie_down();
	      rises = alarm;
	      if
	      :: may ->
end_asleep:	 bell || event || (rises && time)
	      :: else -> skip
	      fi;
	      asleep = false;
	      bell = false;
	      if
	      :: event -> event = false; is_armed = false
	      :: else -> skip
	      fi
	   :: serving -> skip
	   fi
	od
}

init {
	atomic { run server(); run server(); run teller(); run device(); run clock(); run worker() };
	finished == NEWS
}
