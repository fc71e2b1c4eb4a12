/* SPDX-License-Identifier: BSD-3-Clause */
/* What vectors are masked and shifted with. */
#include "icrc_internal.h"

#if ICRC_CLMUL
#include "icrc_fold.h"

#define ZEROS_16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define ZEROS_64 ZEROS_16, ZEROS_16, ZEROS_16, ZEROS_16
#define F        0xff

/* clang-format off */
const uint8_t icrc_masks[2][3 * ICRC_MASK_LEN] CACHE_ALIGNED = {
	{ ZEROS_64,
		F, F, F, F, 0, F, 0, 0, 0, 0, 0, 0, F, 0, F, F,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, F, F,
		0, 0, 0, 0, F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		ZEROS_16, ZEROS_64 },
	{ ZEROS_64,
		F, F, F, F, 0x0f, F, F, F, 0, 0, 0, F, 0, 0, 0, 0,
		ZEROS_16, ZEROS_16,
		0, 0, F, F, 0, 0, 0, 0, F, 0, 0, 0, 0, 0, 0, 0,
		ZEROS_64 },
};

const uint8_t icrc_shift_up[48] CACHE_ALIGNED = {
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
};
/* clang-format on */
#endif
