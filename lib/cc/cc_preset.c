/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc.h"

void
cc_preset(enum cc_preset preset, struct cc_params *out)
{
	static const struct cc_params all[CC_PRESETS] = {
#define CC_PARAM(name, mlx5, paper, hpcc) .name = mlx5,
		[CC_MLX5] = {
#include "tables/cc_params.def"
			.line_rate = CC_LINE_UNKNOWN,
		},
#undef CC_PARAM
#define CC_PARAM(name, mlx5, paper, hpcc) .name = paper,
		[CC_PAPER] = {
#include "tables/cc_params.def"
			.line_rate = CC_LINE_UNKNOWN, .hai_grows = true,
		},
#undef CC_PARAM
#define CC_PARAM(name, mlx5, paper, hpcc) .name = hpcc,
		[CC_HPCC] = {
#include "tables/cc_params.def"
			.line_rate = CC_LINE_UNKNOWN,
		},
#undef CC_PARAM
	};

	*out = all[preset];
}

const char *
cc_stage_name(uint8_t stage)
{
	static const char *const names[] = { [CC_FULL] = "line",
		[CC_FAST_RECOVERY] = "fast_recovery",
		[CC_ADDITIVE] = "additive",
		[CC_HYPER] = "hyper",
		[CC_DECREASE] = "decrease" };

	return stage < ARRAY_LEN(names) ? names[stage] : "?";
}
