#include "mads.h"

#include <string.h>

#define METHOD_GET 0x01
#define METHOD_SET 0x02
#define METHOD_GET_RESP 0x81
#define METHOD_REPORT_RESP 0x86
#define ATTRIBUTE_NOTICE 0x0002
#define ATTRIBUTE_INFORM_INFO 0x0003
#define SA_DATA 56 /* after the common, RMPP and SA headers */
#define DETAILS 10 /* offset in a Notice */
#define CLASS_DIRECTED 0x81
#define ATTR_SM_INFO 0x20
#define SMP_RETURNS 0x8000 /* bit D of the status: on the way back */
#define SMP_DATA 64
#define SMP_DATA_SIZE 64

static void put16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

/* The kernel uses the upper half of the transaction id. */
void mad_inform(uint8_t mad[MAD_SIZE], uint16_t trap, bool subscribe, uint32_t transaction)
{
	uint8_t *info = mad + SA_DATA;

	memset(mad, 0, MAD_SIZE);
	mad[0] = 1;
	mad[1] = CLASS_SA;
	mad[2] = 2;
	mad[3] = METHOD_SET;
	put16(mad + 12, (uint16_t)(transaction >> 16));
	put16(mad + 14, (uint16_t)transaction);
	put16(mad + 16, ATTRIBUTE_INFORM_INFO);
	put16(info + 16, 0xffff); /* LIDRangeBegin: all LIDs */
	info[22] = 1;		  /* IsGeneric */
	info[23] = subscribe;
	put16(info + 24, 0xffff); /* Type: any */
	put16(info + 26, trap);
	info[30] = 1;	 /* QPN that receives the Reports */
	info[31] = 0x12; /* RespTimeValue: about a second */
	info[33] = info[34] = info[35] = 0xff; /* ProducerType: any */
}

bool mad_is_inform_answer(const uint8_t mad[MAD_SIZE], uint32_t *transaction, uint16_t *status)
{
	*transaction = (uint32_t)get16(mad + 12) << 16 | get16(mad + 14);
	*status = get16(mad + 4);
	return mad[1] == CLASS_SA && mad[3] == METHOD_GET_RESP && get16(mad + 16) == ATTRIBUTE_INFORM_INFO;
}

bool mad_is_report(const uint8_t mad[MAD_SIZE])
{
	return mad[1] == CLASS_SA && mad[3] == METHOD_REPORT && get16(mad + 16) == ATTRIBUTE_NOTICE;
}

bool mad_report_notice(const uint8_t mad[MAD_SIZE], struct notice *notice)
{
	const uint8_t *info = mad + SA_DATA;

	return (info[0] & 0x80) && notice_unpack(notice, get16(info + 4), info + DETAILS);
}

bool mad_is_sm_query(const uint8_t mad[MAD_SIZE])
{
	return mad[1] == CLASS_DIRECTED && mad[3] == METHOD_GET && mad[16] == 0 && mad[17] == ATTR_SM_INFO;
}

void mad_sm_answer(uint8_t mad[MAD_SIZE], uint64_t guid)
{
	mad[3] = METHOD_GET_RESP;
	put16(mad + 4, SMP_RETURNS);
	memset(mad + SMP_DATA, 0, SMP_DATA_SIZE);
	memcpy(mad + SMP_DATA, &guid, sizeof(guid));
}

void mad_report_answer(uint8_t mad[MAD_SIZE])
{
	mad[3] = METHOD_REPORT_RESP;
	put16(mad + 4, 0);
}
