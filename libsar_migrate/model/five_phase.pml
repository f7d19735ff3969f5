/*
 * The five-phase update (sar-2016, Section 3.3; ../PROTOCOL.md), for spin.
 *
 * The network. What was ever said may be heard at any time, any number of times, or never: so messages are sets
 * that only grow, and loss, doubling and reordering need no transitions of their own. Only an answer of the door
 * belongs to one question (it comes on its connection) and is gone when the asker gives up.
 *
 * Time. Deadlines may fire at any moment and leases end at any moment. What time guarantees are the guards named
 * LAPSED: the coordinator takes a lease as over only after the subscriber does (it counts from later), an answer
 * older than its lease is no answer, and a subscriber has left offset 0 when its lease ends (it begins a third of
 * it before). If draining takes longer than that third, LAPSED does not hold; the agent then waits or gives up,
 * unless told to drop who lapsed.
 *
 * A subscriber that starts again is another one (ids are random), and so is a job's second process.
 *
 * The disk holds phase, update and members; it is written before anything is said or done (a crash between is
 * a message that is lost).
 *
 * The files. New tables are written to routes.next (`next`), loaded from there, confirmed by all switches, and only
 * then renamed to routes.sar (`file`), which OpenSM takes by itself when it starts, and never else. The coordinator
 * remembers nothing of that: what it does next follows from what it finds, so a kill -9 between any two of these
 * steps is explored. A load that was asked for may be begun late, after the asker has given up waiting.
 *
 * Macros BREAK_… break one rule each: check.sh has spin find each of them.
 */
#ifndef SUBS
#define SUBS 3
#endif
#ifndef UPDATES
#define UPDATES 2
#endif
#ifdef CRASHES /* so many restarts of the coordinator; without, any number, and of the SM always */
#define CRASH (crashes < CRASHES)
#else
#define CRASH true
#endif

#define IDLE	0
#define UNPATH	1
#define INSTALL	2
#define REPATH	3

#define NONE 0
#define AWAY 1
#define BACK 2

#define UNBORN 0
#define ALIVE  1
#define LEFT   2 /* it has said so */
#define GONE   3

/* ---- what a trace shows: ../../sar_lab/five_phase maps its lines to these ---- */
#define E_START	      1
#define E_ASK	      2 /* "subscribe" of a subscriber */
#define E_ANSWER      3 /* + phase: 3 … 6 */
#define E_NOTICE_AWAY 7
#define E_NOTICE_BACK 8
#define E_MOVE_0      9
#define E_MOVE_1     10
#define E_MOVED_0    11
#define E_MOVED_1    12
#define E_ACK_AWAY   13
#define E_ACK_BACK   14
#define E_FENCE	     15
#define E_LEAVE	     16 /* "unsubscribe" */
#define C_START	     20
#define C_RUN	     21
#define C_SUBSCRIBE  22 /* + phase: 22 … 25 */
#define C_ACK_AWAY   26
#define C_ACK_BACK   27
#define C_DROP	     28
#define C_LEFT	     29 /* "unsubscribe" heard */
#define C_INSTALL    30
#define C_INSTALLED  31
#define C_FAILED     32
#define C_REPATH     33
#define C_IDLE	     34
#define C_FILES	     35 /* what was found when no tables were on their way; as whom: FOUND, and so C_INSTALLED and C_FAILED */

#ifdef TRACE /* a header made of a run: trace[] and LENGTH */
c_decl {
#include "trace.h"
}
int place, expected;
#define SEE(event, who, update) (expected == (event) * 65536 + (who) * 256 + (update))
#define SEEN \
	c_code { \
		now.place++; \
		now.expected = trace[now.place]; \
	}; \
	assert(place < LENGTH)
#else
#define SEE(event, who, update) true
#define SEEN skip
#endif
#ifdef TRACE
#define AGAIN true /* one that is said twice is seen twice */
#else
#define AGAIN false
#endif

/* ---- the disk, the file, the switches ---- */
byte phase = IDLE, update = 0; /* of the run, or of the last one */
bool member[SUBS];
byte file = 0;		       /* routes.sar: the update whose tables it has */
byte next = 0;		       /* routes.next likewise; 0: there is none */
bool asked = false;	       /* a load of it; OpenSM has not begun with it */
byte good = 0;		       /* what was in force before the run */
byte tables = 0, sending = 0;  /* of offset 0 */
bool changing = false;	       /* switches have some of `sending`, and some of before: not all is confirmed */
#define AT_REST (!asked && !changing) /* the plugin's status is "built", and all is confirmed */
#define FOUND	((file == update -> 1 : 0) + (next -> 2 : 0) + (tables == update -> 4 : 0))

/* ---- the coordinator's memory ---- */
bool acked[SUBS];
bool failed = false, tried = false; /* the install, since it began or the coordinator started; and the load */

/* ---- the network ---- */
byte ack_away[SUBS], ack_back[SUBS]; /* the newest update that it acknowledged */
byte answer[SUBS]; /* of the door, on its way: 0: none, or 1 + phase + 4 * update */

/* ---- the subscribers ---- */
byte life[SUBS];
byte seen[SUBS], stage[SUBS];
bool holds[SUBS]; /* a lease */
byte target[SUBS];
bool settled[SUBS];
bool uses0[SUBS]; /* may have packets on offset 0 */

byte i; /* scratch, 0 between steps */

/* Who is alive has asked the door. The dead may be heard late, too. */
#ifdef TRACE
#define CAN_BE_HEARD(s) (life[s] != UNBORN)
#define IN_TURN(s) true
#else
#define CAN_BE_HEARD(s) (life[s] == ALIVE)
#define IN_TURN(s) ((s) == 0 || life[((s) + SUBS - 1) % SUBS] != UNBORN) /* one order of names is enough */
#endif
/* Notices: what was raised is what the coordinator's phase has been. One that it or the SM did not come to raise
 * is one that was lost. */
#define UNPATH_SAID(u) ((u) <= update)
#define REPATH_SAID(u) ((u) < update || ((u) == update && (phase == REPATH || phase == IDLE)))
#define WANTED(s) ((holds[s] && stage[s] == BACK) -> 0 : 1)
#define LAPSED(s) (!holds[s] && !answer[s] && !uses0[s])
#define NEWER(s, u, g) ((u) > seen[s] || ((u) == seen[s] && (g) > stage[s]))
#define STAGE(p) (((p) == UNPATH || (p) == INSTALL) -> AWAY : BACK)

inline hear(s, u, g)
{
	if
	:: NEWER(s, u, g) ->
		seen[s] = u;
		stage[s] = g
	:: else
	fi
}

inline nobody_uses_0()
{
	i = 0;
	do
	:: i < SUBS ->
		assert(!uses0[i]);
		i++
	:: else -> break
	od;
	i = 0
}

inline forget_acks()
{
	i = 0;
	do
	:: i < SUBS ->
		acked[i] = false;
		i++
	:: else -> break
	od;
	i = 0
}

/* Who is dead uses nothing, so whether it is a member still decides only whether a run is given up, which it may
 * be anyhow: where no trace says otherwise, it is forgotten. */
inline die(s, how)
{
	life[s] = how;
	uses0[s] = false;
	holds[s] = false;
	answer[s] = 0;
	seen[s] = 0;
	stage[s] = NONE;
	target[s] = 0;
	settled[s] = false;
#ifndef TRACE
	life[s] = GONE;
	member[s] = false;
	acked[s] = false;
	ack_away[s] = 0
#endif
}

proctype subscriber(byte s)
{
	byte u = 0;

end:	do
	:: atomic { life[s] == UNBORN && IN_TURN(s) && SEE(E_START, s, 0) ->
		SEEN;
		life[s] = ALIVE; /* and asks the door at once: that is heard now, or any time, or never */
		target[s] = 1;
		settled[s] = true
	}
	/* The door. */
#ifdef TRACE
	:: atomic { life[s] == ALIVE && SEE(E_ASK, s, seen[s]) -> SEEN }
#endif
	:: atomic { answer[s] -> answer[s] = 0 } /* patience is over, or the lease that it gives */
	:: atomic { life[s] == ALIVE && answer[s] && SEE(E_ANSWER + (answer[s] - 1) % 4, s, (answer[s] - 1) / 4) ->
		SEEN;
		holds[s] = true;
		hear(s, (answer[s] - 1) / 4, STAGE((answer[s] - 1) % 4));
		answer[s] = 0
	}
	:: atomic { life[s] == ALIVE && holds[s] && SEE(E_FENCE, s, seen[s]) ->
		SEEN;
		holds[s] = false
	}
	/* Notices. */
	:: atomic { life[s] == ALIVE ->
		u = 1;
		do
		:: u < UPDATES -> u++
		:: break
		od;
		if
		:: u && UNPATH_SAID(u) && NEWER(s, u, AWAY) && SEE(E_NOTICE_AWAY, s, u) ->
			SEEN;
			hear(s, u, AWAY)
		:: u && REPATH_SAID(u) && NEWER(s, u, BACK) && SEE(E_NOTICE_BACK, s, u) ->
			SEEN;
			hear(s, u, BACK)
		:: else
		fi;
		u = 0
	}
	/* Queue pairs. */
	:: atomic { life[s] == ALIVE && WANTED(s) != target[s] &&
		    SEE((WANTED(s) == 0 -> E_MOVE_0 : E_MOVE_1), s, seen[s]) ->
		SEEN;
		target[s] = 1 - target[s];
		settled[s] = false;
		if
		:: target[s] == 0 ->
			uses0[s] = true;
			assert(!changing)
		:: else
		fi
	}
	:: atomic { life[s] == ALIVE && !settled[s] && SEE((target[s] == 0 -> E_MOVED_0 : E_MOVED_1), s, seen[s]) ->
		SEEN;
		settled[s] = true;
		if
		:: target[s] == 1 -> uses0[s] = false
		:: else
		fi
	}
	/* Acknowledgements; of an update that is over they mean nothing to anybody. */
#ifdef BREAK_ACK_BEFORE_DRAINED
	:: atomic { life[s] == ALIVE && target[s] == 1 && stage[s] == AWAY &&
#else
	:: atomic { life[s] == ALIVE && target[s] == 1 && stage[s] == AWAY && settled[s] &&
#endif
		    (AGAIN || (ack_away[s] != seen[s] && seen[s] == update)) && SEE(E_ACK_AWAY, s, seen[s]) ->
		SEEN;
		ack_away[s] = seen[s]
	}
#ifdef TRACE /* nothing depends on these: REPATH ends by its deadline, too */
	:: atomic { life[s] == ALIVE && target[s] == 0 && stage[s] == BACK && settled[s] &&
		    SEE(E_ACK_BACK, s, seen[s]) ->
		SEEN;
		ack_back[s] = seen[s]
	}
#endif
	/* It ends, in order or not: no queue pair is left. */
	:: atomic { life[s] == ALIVE && SEE(E_LEAVE, s, seen[s]) ->
		SEEN;
		die(s, LEFT)
	}
	:: atomic { life[s] == ALIVE -> die(s, GONE) } /* in a trace, too: who is killed says nothing */
	od
}

/* What comes through the door. */
proctype door(byte s)
{
end:	do
	:: atomic { CAN_BE_HEARD(s) && SEE(C_SUBSCRIBE + phase, s, update) ->
		SEEN;
#ifndef BREAK_MEMBERS_NOT_SAVED
		member[s] = true;
#endif
		if
		:: life[s] == ALIVE -> answer[s] = 1 + phase + 4 * update
		:: else
		fi
	}
	:: atomic { member[s] && phase == UNPATH && ack_away[s] == update && (AGAIN || !acked[s]) &&
		    SEE(C_ACK_AWAY, s, update) ->
		SEEN;
		acked[s] = true
	}
#ifdef TRACE
	:: atomic { member[s] && phase == REPATH && ack_back[s] == update && SEE(C_ACK_BACK, s, update) -> SEEN }
#endif
#ifdef BREAK_ANY_ACK
	:: atomic { member[s] && phase == UNPATH && ack_away[s] -> acked[s] = true }
#endif
	:: atomic { member[s] && life[s] == LEFT && SEE(C_LEFT, s, update) ->
		SEEN;
		member[s] = false
	}
	/* Its job is over, or its lease. */
#ifdef BREAK_DROP_WITHOUT_FENCING
	:: atomic { member[s] && SEE(C_DROP, s, update) ->
#else
	:: atomic { member[s] && (life[s] >= LEFT || LAPSED(s)) && SEE(C_DROP, s, update) ->
#endif
		SEEN;
		member[s] = false
	}
	od
}

/* If all have acknowledged. */
inline install_if_all()
{
	i = 0;
	do
#ifdef BREAK_INSTALL_WITHOUT_WAITING
	:: i < SUBS && i > 0 -> i++
	:: i == 0 && (!member[0] || acked[0]) -> i++
#else
	:: i < SUBS && (!member[i] || acked[i]) -> i++
#endif
	:: i == SUBS ->
		phase = INSTALL;
		failed = false;
		tried = false;
		SEEN;
		break
	:: else -> break
	od;
	i = 0
}

proctype coordinator()
{
end:	do
	:: atomic { phase == IDLE && update < UPDATES && SEE(C_RUN, 0, update + 1) ->
		SEEN;
		update++;
		phase = UNPATH;
		good = file;
#ifdef BREAK_FILE_BEFORE_ACKS
		file = update;
#endif
		forget_acks()
	}
	:: atomic { phase == UNPATH && SEE(C_INSTALL, 0, update) -> install_if_all() }
#ifdef BREAK_FILE_IN_PLACE /* as it was: one file, taken at any sweep, and what a restart finds in it stays */
	:: atomic { phase == INSTALL && file != update && !failed -> file = update }
	:: atomic { phase == INSTALL && file == update && tables == file && !changing ->
		good = file;
		phase = REPATH;
		forget_acks()
	}
	:: atomic { phase == INSTALL && !failed -> failed = true; file = good }
	:: atomic { phase == INSTALL && failed && tables == good && !changing -> phase = REPATH; forget_acks() }
#else
	:: atomic { phase == INSTALL && !next && file != update && !failed && AT_REST -> next = update }
	:: atomic { phase == INSTALL && next && tables != next && (AGAIN || !tried) && AT_REST ->
		asked = true;
		tried = true
	}
	/* Read back: all switches have confirmed these. */
	:: atomic { phase == INSTALL && next && tables == next && AT_REST -> file = next; next = 0 }
	/* They have others: refused, or the coordinator that asked is gone. */
	:: atomic { phase == INSTALL && next && tables != next && AT_REST -> failed = true; next = 0 }
#ifdef TRACE
	:: atomic { phase == INSTALL && AT_REST && SEE(C_FILES, FOUND, update) -> SEEN }
#endif
	:: atomic { phase == INSTALL && file == update && !next && tables == file && AT_REST &&
		    SEE(C_INSTALLED, FOUND, update) ->
		SEEN;
		good = file;
		phase = REPATH;
		forget_acks()
	}
	:: atomic { phase == INSTALL && file == good && file != update && !next && tables == file && AT_REST &&
		    SEE(C_FAILED, FOUND, update) ->
		SEEN;
		phase = REPATH;
		forget_acks()
	}
#ifdef BREAK_DEADLINE_IS_THE_END /* of a load: it is refused, and OpenSM goes on with it */
	:: atomic { phase == INSTALL && asked && tables == good && !changing ->
		phase = REPATH;
		forget_acks()
	}
#endif
#endif
#ifdef BREAK_REPATH_BEFORE_READ_BACK
	:: atomic { phase == INSTALL && (asked || changing) -> phase = REPATH; forget_acks() }
#endif
	od
}

/* Deadlines. A process of its own, so that fairness gives it its turn. */
proctype deadlines()
{
end:	do
#ifndef BREAK_NO_DEADLINE
	:: atomic { phase == UNPATH && SEE(C_REPATH, 0, update) ->
		SEEN;
		phase = REPATH;
		forget_acks()
	}
#endif
	:: atomic { phase == REPATH && SEE(C_IDLE, 0, update) ->
		SEEN;
		phase = IDLE;
		forget_acks()
	}
	od
}

/* OpenSM with the plugin. */
proctype sm()
{
end:	do
#ifdef BREAK_FILE_IN_PLACE
	:: atomic { !changing && file != tables ->
		changing = true;
		sending = file;
		nobody_uses_0()
	}
#else
	:: atomic { asked && !changing ->
		asked = false;
		if
		:: next ->
			changing = true;
			sending = next;
			nobody_uses_0()
		:: true /* refused: it does not fit the fabric, or something else is in force than was thought */
		fi
	}
#endif
	:: atomic { changing ->
		changing = false;
		tables = sending
	}
	/* It was killed, perhaps in the middle, and starts again: it sends all of the file, once. */
	:: atomic { (changing && sending != file) || (!changing && tables != file) || asked ->
		asked = false;
		if
		:: changing || tables != file ->
			changing = true;
			sending = file;
			nobody_uses_0()
		:: else
		fi
	}
	od
}

/* The coordinator was killed and starts again. What it does next follows from the phase on the disk; an update
 * that was not begun is given up. While it is down nothing happens that does not happen when it is slow. */
proctype restarts()
{
#ifdef CRASHES
	byte crashes = 0;
#endif

end:	do
	:: atomic { CRASH && SEE(C_START, 0, update) ->
		SEEN;
#ifdef CRASHES
		crashes++;
#endif
		failed = false;
		tried = false;
		forget_acks();
#ifdef BREAK_FILE_IN_PLACE /* it read back which tables are in force, and left the file as it was */
		if
		:: phase == INSTALL && tables == good && !changing -> phase = REPATH
		:: else
		fi;
#endif
#ifdef BREAK_RESTART_FORGETS
		phase = IDLE
#else
		if
		:: phase == UNPATH -> phase = REPATH
		:: else
		fi
#endif
	}
	od
}

/* When nothing at all can happen, nothing is left undone. */
proctype at_rest()
{
end:	atomic { timeout -> assert(phase == IDLE && tables == file && !next && AT_REST) }
}

init {
	byte s = 0;

	atomic {
#ifdef TRACE
		c_code { now.expected = trace[0]; };
#endif
		do
		:: s < SUBS ->
			run subscriber(s);
			run door(s);
			s++
		:: else -> break
		od;
		run coordinator();
		run deadlines();
		run sm();
		run restarts();
#ifndef TRACE /* which may end anywhere */
		run at_rest()
#endif
	}
}

#define idle	  (phase == IDLE)
#define succeeded (tables == UPDATES && phase == IDLE && uses0[0] && target[0] == 0 && settled[0])

ltl every_run_ends { [] (!idle -> <> idle) }
ltl never_succeeds { [] !succeeded }
