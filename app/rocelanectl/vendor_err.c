/* SPDX-License-Identifier: BSD-3-Clause */
/* "explain": what the vendor_err of a completion means, and which queue pairs failed of it. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "compiler.h"
#include "ctl.h"

static const struct {
	unsigned int code;
	const char *name;
	const char *text;
	const char *rule;
} codes[] = {
	{ 0, "NONE", "no code of its own: flushed since the queue pair failed before, for example",
		"CQ-03" },
#define FATAL_CODE(code, name, text, clause) { code, #name, text, clause },
#include "tables/fatal_codes.def"
#undef FATAL_CODE
};

/* Of those that the dataplane remembers; nobody has to be there. @return a new reference. */
static json_t *
failures_of(struct ctl *ctl, unsigned int code)
{
	json_t *found = ctl_must(json_array()), *all, *v;
	size_t i;

	if (access(ctl->socket, F_OK) != 0 || ctl_call(ctl, "qp_post_mortem", NULL, &all) != CTL_OK)
		return found;
	json_array_foreach (all, i, v) {
		if (json_integer_value(json_object_get(v, "fatal_code")) == (json_int_t)code)
			json_array_append(found, v);
	}
	json_decref(all);
	return found;
}

int
run_vendor_err(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	uint64_t code;
	json_t *o;
	size_t i;

	(void)cmd;
	if (argc != 1 || params_number(argv[0], &code) != 0)
		return ctl_usage("explain takes one number, the vendor_err of a completion");
	for (i = 0; i < ARRAY_LEN(codes) && codes[i].code != code; i++)
		;
	if (i == ARRAY_LEN(codes))
		return ctl_refuse(RPC_USAGE,
			"vendor_err %" PRIu64 " does not exist: 0 to 31, not all of them", code);
	o = ctl_must(json_pack("{s:i, s:s, s:s, s:s, s:o}", "vendor_err", (int)code, "name",
		codes[i].name, "text", codes[i].text, "rule", codes[i].rule, "failures",
		failures_of(ctl, (unsigned int)code)));
	if (ctl->json) {
		fmt_json(o);
	} else {
		printf("%u (0x%02x) %s: %s (%s)\n", codes[i].code, codes[i].code, codes[i].name,
			codes[i].text, codes[i].rule);
		if (json_array_size(json_object_get(o, "failures")) != 0)
			fmt_table(json_object_get(o, "failures"), "time qp_num owner.text summary",
				true);
	}
	json_decref(o);
	return CTL_OK;
}
