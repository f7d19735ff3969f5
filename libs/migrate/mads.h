/* The bytes of the MADs that the library's notices need: InformInfo, Report, SMInfo. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notice.h"

#define MAD_SIZE 256
#define CLASS_SA 3
#define METHOD_REPORT 0x06

/* Builds SubnAdmSet(InformInfo) for `trap` of any issuer. */
void mad_inform(uint8_t mad[MAD_SIZE], uint16_t trap, bool subscribe, uint32_t transaction);
/* Whether it is the answer to an InformInfo; then sets its transaction id and status. */
bool mad_is_inform_answer(const uint8_t mad[MAD_SIZE], uint32_t *transaction, uint16_t *status);
bool mad_is_report(const uint8_t mad[MAD_SIZE]);
/* Reads the notice of a Report; false if it is not one of ours. */
bool mad_report_notice(const uint8_t mad[MAD_SIZE], struct notice *notice);
/* Whether it is SubnGet(SMInfo) by directed route: a subnet manager asks what kind of manager this port runs. */
bool mad_is_sm_query(const uint8_t mad[MAD_SIZE]);
/* Turns that query into its answer: no active manager. `guid` is the port's, in network byte order. */
void mad_sm_answer(uint8_t mad[MAD_SIZE], uint64_t guid);
/* Turns a Report into its ReportResp. */
void mad_report_answer(uint8_t mad[MAD_SIZE]);
