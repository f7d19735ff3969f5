/*
 * Sends the notices of five-phase updates: Reports to all subscribers of traps 68 and 69. This takes OpenSM's lock, which
 * only a thread of the plugin may do, and not while it holds the plugin's mutex. It takes the lock exclusively, because
 * OpenSM removes a subscriber without the partition key from its list on the way.
 */
#include <string.h>

#include "bridge.h"
#include "notice.h"

#include <opensm/osm_inform.h>

/* Only for the answer: OpenSM itself applies the standard's rules for which subscriptions match. */
static unsigned count_subscribed(osm_subn_t *subn, ib_net16_t trap)
{
	unsigned count = 0;

	for (cl_list_item_t *item = cl_qlist_head(&subn->sa_infr_list);
	     item != cl_qlist_end(&subn->sa_infr_list); item = cl_qlist_next(item)) {
		const ib_inform_info_t *info = &((const osm_infr_t *)item)->inform_record.inform_info;

		count += info->is_generic && (info->g_or_v.generic.trap_num == trap ||
					      info->g_or_v.generic.trap_num == 0xffff);
	}
	return count;
}

static void fill(ib_mad_notice_attr_t *to, const struct notice *notice, const osm_subn_t *subn)
{
	memset(to, 0, sizeof(*to));
	to->generic_type = 0x80 | IB_NOTICE_TYPE_SUBN_MGMT;
	ib_notice_set_prod_type_ho(to, 4); /* a class manager */
	to->g_or_v.generic.trap_num = cl_hton16(notice_trap(notice));
	to->issuer_lid = subn->sm_base_lid; /* in network order, like the rest of the subnet's */
	to->issuer_gid.unicast.prefix = subn->opt.subnet_prefix;
	to->issuer_gid.unicast.interface_id = subn->sm_port_guid;
	notice_pack(notice, to->data_details.raw_data.details);
}

bool notice_raise(struct bridge *b, const struct notice *notice, unsigned *subscribed, struct reason *why)
{
	osm_subn_t *subn = &b->osm->subn;
	ib_mad_notice_attr_t attribute;
	bool raised = false;

	cl_plock_excl_acquire(&b->osm->lock);
	if (osm_exit_flag) /* the port of the SA may be closed already */
		REASON(why, "OpenSM is shutting down");
	else if (subn->sm_state != IB_SMINFO_STATE_MASTER)
		REASON(why, "this OpenSM is not the master, so it has no subscribers");
	else {
		fill(&attribute, notice, subn);
		*subscribed = count_subscribed(subn, attribute.g_or_v.generic.trap_num);
		raised = osm_report_notice(&b->osm->log, subn, &attribute) == IB_SUCCESS;
		if (!raised)
			REASON(why, "OpenSM does not accept subscriptions yet");
	}
	cl_plock_release(&b->osm->lock);
	if (raised)
		BRIDGE_LOG(b, OSM_LOG_INFO, "notice %s, update %ju, generation %ju, to %u subscription(s)\n",
			   notice->kind == NOTICE_UNPATH ? "unpath" : "repath", (uintmax_t)notice->update,
			   (uintmax_t)notice->generation, *subscribed);
	return raised;
}
