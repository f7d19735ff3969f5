/* The repair of one column: one destination in one LID offset. */
#ifndef SAR_REPAIR_COLUMN_H
#define SAR_REPAIR_COLUMN_H
#include "certificate.h"

#define NO_ENTRY ROUTES_NO_ROUTE
#define MOST_BARRED 32

enum reach { UNKNOWN, FOLLOWED, ENDLESS, FOUND, LEADS };

enum restores { RESTORE_NONE, RESTORE_UNUSED, RESTORE_ALL }; /* unused: no packet of a host passes them */

/* A packet that leaves a switch by the entry in force (0) or by the new one (1). */
struct step {
	uint32_t s;
	uint8_t entry, lane;
};
struct channel {
	uint32_t rank, s;
	uint8_t port;
};

/* What is the same for all columns, and room for one column. Switches are the rows of the file. */
struct repair_state {
	const struct routes *plan;
	struct certificate who;
	uint32_t switches, wide;
	const uint8_t *up; /* [switches] the switch is live */
	uint32_t *suspect, suspects; /* live switches with a dead channel, or with other entries than the plan's */
	uint32_t *far;	 /* [switches][wide] far end of a live cable that is where the plan has it; else ROUTES_NO_SWITCH */
	uint32_t *rank;	 /* [switches][wide] the channel's largest number in any lane; 0: a repair may not use it */
	uint64_t *added; /* [switches][wide] load that this repair has added, in the unit of `loads` */
	uint32_t *uses;	 /* [switches][wide] entries of the plan by port in this offset, for `counted` switches */
	uint8_t *counted;

	unsigned offset;
	uint32_t column, end;
	bool strict; /* no new entry leads to a switch whose entry in force no packet of a host has taken */
	bool covered;	       /* hosts send to the column */
	enum restores wanted, restores; /* which switches return to the plan if their path there is whole */
	bool sound;		/* result: false if no sound entries were found */
	uint32_t later;		/* result: entries that may be set once the new ones are confirmed */
	const uint8_t *now, *planned; /* [switches] the column in force, and that of the plan */
	uint8_t *new;		      /* [switches] the result */

	/* The switches whose path may change. All others, and all on their paths, keep their entries. */
	uint32_t *member, members;
	uint8_t *inside; /* [switches] 1: it is a member */
	uint8_t *reach, *reach_now; /* enum reach: whether the new entries, and those in force, lead to the end */
	uint16_t *rising; /* lanes in which numbers rise to the end if a packet leaves by the new entry, if `known` */
	uint8_t *known;
	uint16_t *held[2];	    /* lanes in which packets leave by the entry in force, and by the new one */
	uint16_t *needs;	    /* lanes that a switch's new entry must serve */
	uint32_t *arrival, *next_arrival; /* lists: switches whose entries in force lead to a switch */
	uint32_t *child, *next_child;	  /* lists: switches whose chosen entries lead to a switch */
	uint32_t *broken, *order;	  /* switches without a path; the same in the order in which they got one */
	uint32_t broken_count, order_count;
	uint8_t *found;		     /* [switches] an entry that rises, where the switch may keep its own instead; or NO_ENTRY */
	uint32_t *path, *chain;
	struct channel *sorted; /* [switches * wide] */
	struct step *stack;	/* [2 * switches * lanes] */
	struct step *came_from; /* [2][switches][lanes] */
	struct {
		uint32_t s;
		uint8_t port;
	} barred[MOST_BARRED]; /* entries that are refused in this column */
	unsigned barred_count;
};

static inline uint32_t repair_far(const struct repair_state *x, uint32_t s, uint8_t port)
{
	return port < x->wide ? x->far[(size_t)s * x->wide + port] : ROUTES_NO_SWITCH;
}

static inline uint32_t repair_number(const struct repair_state *x, unsigned lane, uint32_t s, uint8_t port)
{
	return x->plan->numbers[((size_t)lane * x->switches + s) * x->wide + port];
}

/* Whether no packet of a host passes the switch by the entries in force. */
static inline bool repair_is_unused(const struct repair_state *x, uint32_t s)
{
	return !x->covered || (x->arrival[s] == ROUTES_NO_SWITCH && !x->who.sends[s]);
}

static inline bool repair_is_barred(const struct repair_state *x, uint32_t s, uint8_t port)
{
	for (unsigned i = 0; i < x->barred_count; i++)
		if (x->barred[i].s == s && x->barred[i].port == port)
			return true;
	return false;
}

/* Sets `new` for the column, and the members; repair_end_column() forgets them. */
void repair_column(struct repair_state *x);
void repair_end_column(struct repair_state *x);

/* repair_fill.c: the broken switches that need no rising path. */
void repair_fill(struct repair_state *x);

/* repair_loads.c: what decides between ports: the entry in force is best, then that of the plan, then the least load; a
 * rotation decides between equal loads. */
uint64_t repair_cost(const struct repair_state *x, uint32_t s, uint8_t port);
/* Adds the predicted load of the new entries. */
void repair_add_loads(struct repair_state *x);

/* repair_paths.c: */

/* Finds the members: the switches with a dead entry, or another one than the plan's, and those whose path leads there. */
void repair_find_members(struct repair_state *x);

/* The lanes in which numbers rise to the end if a packet leaves `s` by `port`, as far as `rising` of the next is known. */
unsigned repair_rising_by(const struct repair_state *x, uint32_t s, uint8_t port);

/* Before the first column: all switches that are up lead to the end, as far as is known. */
void repair_begin(struct repair_state *x);

/* The lanes in which numbers rise to the end from a switch that leads there. */
unsigned repair_rising(struct repair_state *x, uint32_t s);

/* Sets `reach` of all members to LEADS or ENDLESS. */
void repair_follow(struct repair_state *x, const uint8_t *entry, uint8_t *reach);

/*
 * Whether numbers rise along every path of hosts' packets while some switches have the entries in force and others the new
 * ones. If not, `culprit` is a switch whose new entry is the cause.
 */
bool mixture_rises(struct repair_state *x, uint32_t *culprit);

/* Sets held[0] to the lanes in which hosts' packets leave each switch by its entry in force. */
void mixture_in_force(struct repair_state *x);

#endif
