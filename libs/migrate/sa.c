#include "sa.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mads.h"

#define GSI_QKEY 0x80010000
#define INFORM_TIMEOUT 1000 /* ms, three times */

struct sa {
	char ca[UMAD_CA_NAME_LEN];
	int number, port, agent, issm, directed;
	uint64_t guid; /* of the port, in network order */
	bool simulated;
	uint32_t transaction;	  /* of the last InformInfo for trap 68; that for trap 69 has the next number */
	unsigned answered;	  /* one bit for each of the two */
	void *buffer;
};

/*
 * ibsim delivers Reports only to a client that poses as a subnet manager, and then delivers the real one's queries to it,
 * too; umad2sim crashes on classes that nobody has registered. So this happens after the registration, and the port stays
 * open until the process ends. sa_notice() answers the queries: without an answer OpenSM, which has no timeout here, would
 * never route again.
 */
static bool pose_as_sm(struct sa *sa, struct reason *why)
{
	char path[256];

	sa->directed = umad_register(sa->port, 0x81, 1, 0, NULL);
	if (umad_register(sa->port, 0x01, 1, 0, NULL) >= 0 && sa->directed >= 0 &&
	    !umad_get_issm_path(sa->ca, sa->number, path, sizeof(path)))
		sa->issm = open(path, O_RDWR | O_CLOEXEC);
	if (sa->issm >= 0)
		return true;
	REASON(why, "this is not a port of ibsim");
	return false;
}

static bool register_agent(struct sa *sa, struct reason *why)
{
	/* A mask of 128 methods, whatever the size of a long: only unsolicited Reports are delivered here. */
	long methods[16 / sizeof(long)] = {1L << METHOD_REPORT};

	sa->agent = umad_register(sa->port, CLASS_SA, 2, 0, methods);
	if (sa->agent < 0)
		return REASON(why, "cannot register for the SA's reports on %s port %d: %s", sa->ca, sa->number,
			      strerror(errno)), false;
	return !sa->simulated || pose_as_sm(sa, why);
}

struct sa *sa_open(const char *ca, int port, bool simulated, struct reason *why)
{
	struct sa *sa = calloc(1, sizeof(*sa));
	umad_port_t attributes;

	/* umad_size() grows when a port of a newer kernel is opened; this is the largest value. */
	if (!sa || !(sa->buffer = calloc(1, sizeof(ib_user_mad_t) + MAD_SIZE))) {
		REASON(why, "no memory");
		free(sa);
		return NULL;
	}
	sa->port = sa->agent = sa->issm = -1;
	sa->simulated = simulated;
	if (umad_init() < 0 || umad_get_port(ca, port, &attributes) < 0) {
		REASON(why, "no active InfiniBand port %s", ca ? ca : "");
		sa_close(sa);
		return NULL;
	}
	snprintf(sa->ca, sizeof(sa->ca), "%s", attributes.ca_name);
	sa->number = attributes.portnum;
	sa->guid = attributes.port_guid;
	umad_release_port(&attributes);
	sa->port = umad_open_port(sa->ca, sa->number);
	if (sa->port < 0)
		REASON(why, "cannot open the management device of %s port %d: %s", sa->ca, sa->number,
		       strerror(sa->port < -1 ? -sa->port : errno));
	else if (register_agent(sa, why))
		return sa;
	sa_close(sa);
	return NULL;
}

int sa_fd(const struct sa *sa)
{
	return sa->simulated ? -1 : umad_get_fd(sa->port);
}

/* The SM may have moved to another node, so its LID is looked up each time. */
static bool sm_lid(const struct sa *sa, int *lid, int *sl)
{
	umad_port_t attributes;

	if (umad_get_port(sa->ca, sa->number, &attributes) < 0)
		return false;
	*lid = (int)attributes.sm_lid;
	*sl = (int)attributes.sm_sl;
	umad_release_port(&attributes);
	return *lid != 0;
}

bool sa_inform(struct sa *sa, bool subscribe, struct reason *why)
{
	int lid, sl;

	if (!sm_lid(sa, &lid, &sl))
		return REASON(why, "the port has no subnet manager"), false;
	sa->transaction += 2;
	sa->answered = 0;
	for (uint32_t trap = 0; trap < 2; trap++) {
		memset(sa->buffer, 0, sizeof(ib_user_mad_t));
		mad_inform(umad_get_mad(sa->buffer), (uint16_t)(TRAP_UNPATH + trap), subscribe,
			   sa->transaction + trap);
		umad_set_addr(sa->buffer, lid, 1, sl, (int)GSI_QKEY);
		umad_set_pkey(sa->buffer, 0);
		if (umad_send(sa->port, sa->agent, sa->buffer, MAD_SIZE, INFORM_TIMEOUT, 3) < 0)
			return REASON(why, "cannot send to the SA: %s", strerror(errno)), false;
	}
	return true;
}

bool sa_informed(const struct sa *sa)
{
	return sa->answered == 3;
}

/* Answers the Report to its sender. If the answer is lost, the SA sends the Report again. */
static void answer_report(struct sa *sa, uint8_t *mad)
{
	const ib_mad_addr_t *from = umad_get_mad_addr(sa->buffer);

	mad_report_answer(mad);
	umad_set_addr_net(sa->buffer, from->lid, from->qpn, from->sl, htobe32(GSI_QKEY));
	(void)umad_send(sa->port, sa->agent, sa->buffer, MAD_SIZE, 0, 0);
}

static void answer_sm(struct sa *sa, uint8_t *mad)
{
	const ib_mad_addr_t from = *umad_get_mad_addr(sa->buffer);

	mad_sm_answer(mad, sa->guid);
	umad_set_addr_net(sa->buffer, from.lid, from.qpn, from.sl, 0);
	(void)umad_send(sa->port, sa->directed, sa->buffer, MAD_SIZE, 0, 0);
}

bool sa_notice(struct sa *sa, struct notice *notice)
{
	uint8_t *mad = umad_get_mad(sa->buffer);
	uint32_t transaction;
	uint16_t status;
	bool ours;

	while (!umad_poll(sa->port, 0)) {
		int length = MAD_SIZE;

		if (umad_recv(sa->port, sa->buffer, &length, 1) < 0)
			return false;
		if (umad_status(sa->buffer))
			continue; /* a request of ours that was not answered; it will be sent again */
		if (mad_is_inform_answer(mad, &transaction, &status)) {
			if (!status && transaction - sa->transaction < 2)
				sa->answered |= 1u << (transaction - sa->transaction);
		} else if (mad_is_report(mad)) {
			ours = mad_report_notice(mad, notice);
			answer_report(sa, mad);
			if (ours)
				return true;
		} else if (sa->simulated && mad_is_sm_query(mad)) {
			answer_sm(sa, mad);
		}
	}
	return false;
}

void sa_close(struct sa *sa)
{
	if (!sa)
		return;
	if (sa->issm >= 0)
		close(sa->issm);
	if (sa->port >= 0 && !sa->simulated)
		umad_close_port(sa->port);
	free(sa->buffer);
	free(sa);
}
