/*
 * Whether another routing must follow; see follow.h. Entries that had to wait are set by one. Where the last routing could have
 * set them and has not, another one would not either; and own.c lets no routing end there while packets of hosts are dropped.
 */
#include "follow.h"

void follow_begin(struct follow *f, const struct known *known, uint32_t put_off)
{
	f->settled = (!known || known_all_settled(known)) && !put_off;
}

bool follow_needed(struct follow *f, const struct tables *in_force)
{
	const struct amendment *amended = in_force->routes->amended;
	const unsigned repairs = amended ? amended->repairs : 0;
	const bool first = repairs != f->repairs || !f->settled;

	f->repairs = repairs;
	return in_force->put_off_count || (amended && (amended->later || in_force->drops) && first);
}
