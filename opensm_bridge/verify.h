/*
 * Whether the plugin's own routes may be put in force without a proof by the agent: by other code than that which makes a
 * repair, and over what each switch may have, whoever sent it.
 */
#pragma once
#include "own.h"

/*
 * False and `why` if a packet may loop or close a credit loop while switches have their entries from any of the tables known
 * (`task->known`, not NULL) and from `tables`. Where only packets of older tables are the cause, the LID keeps in `tables` what
 * was sent last, and where it has moved to another switch, it is left without routes, until the old ones are gone.
 */
bool verify_tables(const struct own_task *task, struct tables *tables, struct reason *why);
