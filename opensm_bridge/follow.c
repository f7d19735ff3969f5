/*
 * Whether another routing must follow; see follow.h. Entries that had to wait are set by one. Where a settled routing could have
 * set them and has not, another one would not either; and own.c lets no routing end there while packets of hosts are dropped.
 */
#include "follow.h"

bool follow_settled(const struct known *known, uint32_t put_off)
{
	return (!known || known_all_settled(known)) && !put_off;
}

bool follow_needed(bool settled, const struct tables *in_force)
{
	const struct amendment *amended = in_force->routes->amended;

	return in_force->put_off_count || (amended && (amended->later || in_force->drops) && (in_force->step || !settled));
}
