/* The repair of one column, on top of repair_paths.h. */
#pragma once
#include "repair_state.h"

/* Sets `new` for the column, and the members; repair_end_column() forgets them. */
void repair_column(struct repair_state *x);
void repair_end_column(struct repair_state *x);
