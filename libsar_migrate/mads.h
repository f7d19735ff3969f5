/* The bytes of InformInfo and Report MADs, as far as notices of ours need them. */
#ifndef SAR_MADS_H
#define SAR_MADS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notice.h"

#define MAD_SIZE 256
#define CLASS_SA 3
#define METHOD_REPORT 0x06

/* SubnAdmSet(InformInfo) for all issuers of `trap`. */
void mad_inform(uint8_t mad[MAD_SIZE], uint16_t trap, bool subscribe, uint32_t transaction);
/* The trap that a positive answer to one is about, by its transaction; 0 if it is no such answer. */
bool mad_is_inform_answer(const uint8_t mad[MAD_SIZE], uint32_t *transaction, uint16_t *status);
bool mad_is_report(const uint8_t mad[MAD_SIZE]);
/* False if the Report's notice is not of ours. */
bool mad_report_notice(const uint8_t mad[MAD_SIZE], struct notice *notice);
/* The subnet manager asks (directed route, SubnGet) what kind of manager we are. */
bool mad_is_sm_question(const uint8_t mad[MAD_SIZE]);
/* Turns that question into its answer: none that is active; `guid` is the port's, in network order. */
void mad_sm_answer(uint8_t mad[MAD_SIZE], uint64_t guid);
/* Turns a Report into the ReportResp to it. */
void mad_report_answer(uint8_t mad[MAD_SIZE]);

#endif
