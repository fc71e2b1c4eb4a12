/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_TEST_H
#define CONF_TEST_H
/**
 * @file conf_test.h  What the tests of lib/conf share: a good configuration, one key a line, to be
 * spoiled line by line.
 *
 * Owner:   the test.
 * Memory:  texts are allocated; the test frees them.
 * Depends: conf, cmocka.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf_json.h"

/** Lines of the base configuration that tests replace, from 1. */
enum base_line {
	L_VERSION = 2,
	L_EAL,
	L_LCORES,
	L_CONTROL,
	L_PORT = 7,
	L_PORT_IP,
	L_NEIGHBORS,
	L_PROFILE,
	L_KNOBS,
	L_ERROR_BUFFER,
	L_PDS,
	L_MR0 = 15,
	L_MR1,
	L_CQS,
	L_SRQS,
	L_QP = 20,
	L_STATE,
	L_PATH_MTU,
	L_DEST_QPN,
	L_RQ_PSN,
	L_SQ_PSN,
	L_AH,
	L_TIMEOUT,
	L_RETRY_CNT,
	L_RNR_RETRY,
	L_MIN_RNR,
	L_MAX_RD,
	L_MAX_DEST_RD,
	L_PKEY,
	L_ACCESS,
	L_CAP,
	L_WORKER,
	L_COUNT,
	L_RECV_FEED,
	L_SEND_FEED,
	L_QP2,
	L_END,
};

struct swap {
	int line; /* 0: none */
	const char *text;
};

/** The base with some lines replaced. */
char *base_text(const struct swap *swaps, size_t n);
/** Load it; the caller frees *out and err. @return conf_load_text's result. */
int base_load(const struct swap *swaps, size_t n, struct conf **out, struct conf_errors *err);
/** Load it with one line replaced, where nothing may be wrong. */
struct conf *base_good(int line, const char *text);
/** Print all entries as test messages. */
void errors_show(const struct conf_errors *err);

#endif
