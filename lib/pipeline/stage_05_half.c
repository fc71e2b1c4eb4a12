/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 5 with 32-byte registers. */
#include "stage_05_half.h"
#include "stage_05_look.h"

#if WIRE_WIDE
#define LOOK_ALL    pipeline_look_half
#define LOOK_ACKS   pipeline_look_acks_half
#define LOOK_FIRST  pipeline_plain_n_half
#define LOOK_PLAIN  look_plain_half
#define LOOK_TARGET TARGET_WIRE_HALF
#define LOOK_SCOPE
#define LOOK_CONST    plain_half
#define LOOK_CONST_OF plain_half_of
#define LOOK_WRONG    plain_half_wrong
#include "stage_05_look.def"
#endif
