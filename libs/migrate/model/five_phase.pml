/*
 * The five-phase update (sar-2016, Section 3.3; ../PROTOCOL.md), for spin.
 *
 * The network. A message that was ever sent may arrive at any time, any number of times, or never. So messages are sets
 * that only grow, and loss, duplication and reordering need no transitions of their own. The exception is the agent's
 * answer: it belongs to one request, since it comes on the same connection, and is lost when the subscriber gives up.
 *
 * Time. Deadlines may fire and leases may end at any moment. What time does guarantee is expressed by the guards named
 * LAPSED: the coordinator considers a lease as over only after the subscriber does (it counts from later), an answer that
 * is older than its lease is not accepted, and a subscriber has left offset 0 when its lease ends (it starts to leave a
 * third of the lease before). If draining takes longer than that third, LAPSED does not hold; the agent then waits or
 * gives up, unless it is configured to drop subscribers whose lease has lapsed.
 *
 * A subscriber that restarts is another subscriber (ids are random), and so is the second process of a job.
 *
 * The disk holds phase, update and members. It is written before anything that depends on it is sent or done, so a crash
 * in between is like a message that was lost.
 *
 * The files. New tables are written to routes.next (`next`), loaded from there, confirmed by all switches, and only then
 * renamed to routes.sar (`file`), which OpenSM reads by itself only when it starts. The coordinator keeps no memory of
 * these steps: it decides by what it finds, so a kill -9 between any two of them is explored. OpenSM may begin a requested
 * load late, after the coordinator has given up waiting.
 *
 * Each of the macros BREAK_… breaks one rule; check.sh has spin find each of them.
 */
#ifndef SUBS
#define SUBS 3
#endif
#ifndef UPDATES
#define UPDATES 2
#endif
#ifdef CRASHES /* the number of restarts of the coordinator; unlimited if undefined. The SM's are never limited. */
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
#define LEFT   2 /* it has unsubscribed */
#define GONE   3

/* ---- the events in a trace; ../../sar_lab/five_phase maps its lines to these numbers ---- */
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
#define C_LEFT	     29 /* "unsubscribe" received */
#define C_INSTALL    30
#define C_INSTALLED  31
#define C_FAILED     32
#define C_REPATH     33
#define C_IDLE	     34
#define C_FILES	     35 /* the files and tables found at rest; like C_INSTALLED and C_FAILED it has FOUND in place of a subscriber */

#ifdef TRACE /* trace.h is generated from a run: trace[] and LENGTH */
c_decl {
#include "trace.h"
}
int place, expected;
#define TRACE_HAS(event, who, update) (expected == (event) * 65536 + (who) * 256 + (update))
#define TRACE_NEXT \
	c_code { \
		now.place++; \
		now.expected = trace[now.place]; \
	}; \
	assert(place < LENGTH)
#else
#define TRACE_HAS(event, who, update) true
#define TRACE_NEXT skip
#endif
#ifdef TRACE
#define REPEATS true /* a message that is sent twice is in the trace twice */
#else
#define REPEATS false
#endif

/* ---- the disk, the file, the switches ---- */
byte phase = IDLE, update = 0; /* of the current update, or of the last one */
bool member[SUBS];
byte file = 0;		       /* the update whose tables routes.sar has */
byte next = 0;		       /* the update whose tables routes.next has; 0: there is no such file */
bool asked = false;	       /* a load of routes.next was requested, and OpenSM has not begun it */
byte good = 0;		       /* the update whose tables were in force before this one */
byte tables = 0, sending = 0;  /* of offset 0: the tables in force, and those being sent */
bool changing = false;	       /* some switches have `sending`, others still `tables` */
#define AT_REST (!asked && !changing) /* the plugin's status is "built", and all switches have confirmed */
#define FOUND	((file == update -> 1 : 0) + (next -> 2 : 0) + (tables == update -> 4 : 0))

/* ---- the coordinator's memory ---- */
bool acked[SUBS];
bool failed = false, tried = false; /* the install failed; the load was requested (since the coordinator started) */

/* ---- the network ---- */
byte ack_away[SUBS], ack_back[SUBS]; /* the newest update that the subscriber acknowledged */
byte answer[SUBS]; /* the agent's answer on its way: 0 for none, or 1 + phase + 4 * update */

/* ---- the subscribers ---- */
byte life[SUBS];
byte seen[SUBS], stage[SUBS];
bool holds[SUBS]; /* has a lease */
byte target[SUBS];
bool settled[SUBS];
bool uses0[SUBS]; /* may have packets in flight on offset 0 */

byte i; /* scratch, 0 between steps */

/* A live subscriber has sent a request to the agent. A dead one's request may still arrive late. */
#ifdef TRACE
#define CAN_ARRIVE(s) (life[s] != UNBORN)
#define IN_TURN(s) true
#else
#define CAN_ARRIVE(s) (life[s] == ALIVE)
#define IN_TURN(s) ((s) == 0 || life[((s) + SUBS - 1) % SUBS] != UNBORN) /* subscribers are interchangeable: one order of their starts is enough */
#endif
/* Notices: for each phase that the coordinator has been in, its notice counts as sent. If the coordinator or the SM failed
 * before sending it, that is like a notice that was lost. */
#define UNPATH_SENT(u) ((u) <= update)
#define REPATH_SENT(u) ((u) < update || ((u) == update && (phase == REPATH || phase == IDLE)))
#define REQUIRED_OFFSET(s) ((holds[s] && stage[s] == BACK) -> 0 : 1)
#define LAPSED(s) (!holds[s] && !answer[s] && !uses0[s])
#define NEWER(s, u, g) ((u) > seen[s] || ((u) == seen[s] && (g) > stage[s]))
#define STAGE(p) (((p) == UNPATH || (p) == INSTALL) -> AWAY : BACK)

inline receive(s, u, g)
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

/* A dead subscriber uses no tables. Its membership only affects whether an update is given up, which may happen anyway; so
 * unless a trace is replayed, the membership is dropped, which keeps the state space small. */
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
	:: atomic { life[s] == UNBORN && IN_TURN(s) && TRACE_HAS(E_START, s, 0) ->
		TRACE_NEXT;
		life[s] = ALIVE; /* and sends a request to the agent, which arrives now, later, or never */
		target[s] = 1;
		settled[s] = true
	}
	/* The agent's answer. */
#ifdef TRACE
	:: atomic { life[s] == ALIVE && TRACE_HAS(E_ASK, s, seen[s]) -> TRACE_NEXT }
#endif
	:: atomic { answer[s] -> answer[s] = 0 } /* the subscriber has given up, or the lease in it is over */
	:: atomic { life[s] == ALIVE && answer[s] && TRACE_HAS(E_ANSWER + (answer[s] - 1) % 4, s, (answer[s] - 1) / 4) ->
		TRACE_NEXT;
		holds[s] = true;
		receive(s, (answer[s] - 1) / 4, STAGE((answer[s] - 1) % 4));
		answer[s] = 0
	}
	:: atomic { life[s] == ALIVE && holds[s] && TRACE_HAS(E_FENCE, s, seen[s]) ->
		TRACE_NEXT;
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
		:: u && UNPATH_SENT(u) && NEWER(s, u, AWAY) && TRACE_HAS(E_NOTICE_AWAY, s, u) ->
			TRACE_NEXT;
			receive(s, u, AWAY)
		:: u && REPATH_SENT(u) && NEWER(s, u, BACK) && TRACE_HAS(E_NOTICE_BACK, s, u) ->
			TRACE_NEXT;
			receive(s, u, BACK)
		:: else
		fi;
		u = 0
	}
	/* Queue pairs. */
	:: atomic { life[s] == ALIVE && REQUIRED_OFFSET(s) != target[s] &&
		    TRACE_HAS((REQUIRED_OFFSET(s) == 0 -> E_MOVE_0 : E_MOVE_1), s, seen[s]) ->
		TRACE_NEXT;
		target[s] = 1 - target[s];
		settled[s] = false;
		if
		:: target[s] == 0 ->
			uses0[s] = true;
			assert(!changing)
		:: else
		fi
	}
	:: atomic { life[s] == ALIVE && !settled[s] && TRACE_HAS((target[s] == 0 -> E_MOVED_0 : E_MOVED_1), s, seen[s]) ->
		TRACE_NEXT;
		settled[s] = true;
		if
		:: target[s] == 1 -> uses0[s] = false
		:: else
		fi
	}
	/* Acknowledgements; those of an earlier update have no effect. */
#ifdef BREAK_ACK_BEFORE_DRAINED
	:: atomic { life[s] == ALIVE && target[s] == 1 && stage[s] == AWAY &&
#else
	:: atomic { life[s] == ALIVE && target[s] == 1 && stage[s] == AWAY && settled[s] &&
#endif
		    (REPEATS || (ack_away[s] != seen[s] && seen[s] == update)) && TRACE_HAS(E_ACK_AWAY, s, seen[s]) ->
		TRACE_NEXT;
		ack_away[s] = seen[s]
	}
#ifdef TRACE /* otherwise left out, since nothing depends on it: REPATH ends by its deadline, too */
	:: atomic { life[s] == ALIVE && target[s] == 0 && stage[s] == BACK && settled[s] &&
		    TRACE_HAS(E_ACK_BACK, s, seen[s]) ->
		TRACE_NEXT;
		ack_back[s] = seen[s]
	}
#endif
	/* The process ends, after unsubscribing or not; it then has no queue pairs. */
	:: atomic { life[s] == ALIVE && TRACE_HAS(E_LEAVE, s, seen[s]) ->
		TRACE_NEXT;
		die(s, LEFT)
	}
	:: atomic { life[s] == ALIVE -> die(s, GONE) } /* a process that is killed leaves no line in its trace */
	od
}

/* Requests that arrive at the agent's socket. */
proctype agent_socket(byte s)
{
end:	do
	:: atomic { CAN_ARRIVE(s) && TRACE_HAS(C_SUBSCRIBE + phase, s, update) ->
		TRACE_NEXT;
#ifndef BREAK_MEMBERS_NOT_SAVED
		member[s] = true;
#endif
		if
		:: life[s] == ALIVE -> answer[s] = 1 + phase + 4 * update
		:: else
		fi
	}
	:: atomic { member[s] && phase == UNPATH && ack_away[s] == update && (REPEATS || !acked[s]) &&
		    TRACE_HAS(C_ACK_AWAY, s, update) ->
		TRACE_NEXT;
		acked[s] = true
	}
#ifdef TRACE
	:: atomic { member[s] && phase == REPATH && ack_back[s] == update && TRACE_HAS(C_ACK_BACK, s, update) -> TRACE_NEXT }
#endif
#ifdef BREAK_ANY_ACK
	:: atomic { member[s] && phase == UNPATH && ack_away[s] -> acked[s] = true }
#endif
	:: atomic { member[s] && life[s] == LEFT && TRACE_HAS(C_LEFT, s, update) ->
		TRACE_NEXT;
		member[s] = false
	}
	/* The job is over, or the lease has lapsed. */
#ifdef BREAK_DROP_WITHOUT_FENCING
	:: atomic { member[s] && TRACE_HAS(C_DROP, s, update) ->
#else
	:: atomic { member[s] && (life[s] >= LEFT || LAPSED(s)) && TRACE_HAS(C_DROP, s, update) ->
#endif
		TRACE_NEXT;
		member[s] = false
	}
	od
}

/* Starts INSTALL if all members have acknowledged. */
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
		TRACE_NEXT;
		break
	:: else -> break
	od;
	i = 0
}

proctype coordinator()
{
end:	do
	:: atomic { phase == IDLE && update < UPDATES && TRACE_HAS(C_RUN, 0, update + 1) ->
		TRACE_NEXT;
		update++;
		phase = UNPATH;
		good = file;
#ifdef BREAK_FILE_BEFORE_ACKS
		file = update;
#endif
		forget_acks()
	}
	:: atomic { phase == UNPATH && TRACE_HAS(C_INSTALL, 0, update) -> install_if_all() }
#ifdef BREAK_FILE_IN_PLACE /* as before 0.1.0: one file, read at any sweep, and a restart leaves it as it is */
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
	:: atomic { phase == INSTALL && next && tables != next && (REPEATS || !tried) && AT_REST ->
		asked = true;
		tried = true
	}
	/* The tables were read back, and all switches have confirmed them. */
	:: atomic { phase == INSTALL && next && tables == next && AT_REST -> file = next; next = 0 }
	/* Other tables are in force: the load was refused, or the coordinator that requested it was killed. */
	:: atomic { phase == INSTALL && next && tables != next && AT_REST -> failed = true; next = 0 }
#ifdef TRACE
	:: atomic { phase == INSTALL && AT_REST && TRACE_HAS(C_FILES, FOUND, update) -> TRACE_NEXT }
#endif
	:: atomic { phase == INSTALL && file == update && !next && tables == file && AT_REST &&
		    TRACE_HAS(C_INSTALLED, FOUND, update) ->
		TRACE_NEXT;
		good = file;
		phase = REPATH;
		forget_acks()
	}
	:: atomic { phase == INSTALL && file == good && file != update && !next && tables == file && AT_REST &&
		    TRACE_HAS(C_FAILED, FOUND, update) ->
		TRACE_NEXT;
		phase = REPATH;
		forget_acks()
	}
#ifdef BREAK_DEADLINE_IS_THE_END /* a load that misses its deadline counts as refused, although OpenSM continues it */
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

/* Deadlines; in a process of their own, so that weak fairness schedules them. */
proctype deadlines()
{
end:	do
#ifndef BREAK_NO_DEADLINE
	:: atomic { phase == UNPATH && TRACE_HAS(C_REPATH, 0, update) ->
		TRACE_NEXT;
		phase = REPATH;
		forget_acks()
	}
#endif
	:: atomic { phase == REPATH && TRACE_HAS(C_IDLE, 0, update) ->
		TRACE_NEXT;
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
		:: true /* refused: the routes do not fit the fabric, or other tables are in force than assumed */
		fi
	}
#endif
	:: atomic { changing ->
		changing = false;
		tables = sending
	}
	/* OpenSM was killed, perhaps while sending, and restarts: it sends all tables of the file once. */
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

/* The coordinator was killed and restarts. It continues from the phase on the disk; an update that has not reached INSTALL
 * is given up. A coordinator that is down behaves like one that is slow, so its downtime needs no state. */
proctype restarts()
{
#ifdef CRASHES
	byte crashes = 0;
#endif

end:	do
	:: atomic { CRASH && TRACE_HAS(C_START, 0, update) ->
		TRACE_NEXT;
#ifdef CRASHES
		crashes++;
#endif
		failed = false;
		tried = false;
		forget_acks();
#ifdef BREAK_FILE_IN_PLACE /* the restart read back which tables are in force, and left the file as it was */
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

/* When no transition is possible, nothing is left unfinished. */
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
			run agent_socket(s);
			s++
		:: else -> break
		od;
		run coordinator();
		run deadlines();
		run sm();
		run restarts();
#ifndef TRACE /* a trace may end in any state */
		run at_rest()
#endif
	}
}

#define idle	  (phase == IDLE)
#define succeeded (tables == UPDATES && phase == IDLE && uses0[0] && target[0] == 0 && settled[0])

ltl every_run_ends { [] (!idle -> <> idle) }
ltl never_succeeds { [] !succeeded }
