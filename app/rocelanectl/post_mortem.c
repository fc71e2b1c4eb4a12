/* SPDX-License-Identifier: BSD-3-Clause */
/* "qp post-mortem": queue pairs that failed, also those that are gone, for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define LIST_COLUMNS "time qp_num owner.text completion event end summary"

static void
put(const char *before, const json_t *o, const char *key)
{
	char *text = fmt_value(json_object_get(o, key));

	printf("%s%s", before, text);
	free(text);
}

/* "QP 17 of client 3 (pid 4711, uid 0, kv) failed at 2026-...: what happened" */
static void
print_story(const json_t *v)
{
	static const char *const port[] = { "name", "link", NULL };
	static const char *const port_labels[] = { "", "link ", NULL };
	static const char *const neighbor[] = { "state", "asked", NULL };
	static const char *const neighbor_labels[] = { "", "times asked: ", NULL };
	static const char *const set[] = { "timeout", "timeout_us", "retry_cnt", "rnr_retry",
		"path_mtu", NULL };
	static const char *const set_labels[] = { "timeout ", "us ", "retry_cnt ", "rnr_retry ",
		"path_mtu ", NULL };

	put("QP ", v, "qp_num");
	put(" of ", json_object_get(v, "owner"), "text");
	put(" failed at ", v, "time");
	put(": ", v, "summary");
	putchar('\n');
	explain_error(json_object_get(v, "error"));
	explain_parts("port", json_object_get(v, "port"), port, port_labels);
	explain_parts("neighbor", json_object_get(v, "neighbor"), neighbor, neighbor_labels);
	explain_line("network", json_object_get(v, "network"));
	explain_parts("attributes", json_object_get(v, "attributes"), set, set_labels);
	explain_line("flushed", json_object_get(v, "flushed"));
	put("since then    ", v, "end");
	if (json_is_string(json_object_get(v, "ended")))
		put(" at ", v, "ended");
	putchar('\n');
	explain_trace(v);
}

int
run_post_mortem(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *v;
	int rc = ctl_ask(ctl, cmd, argc, argv, &v);

	if (rc != CTL_OK)
		return rc;
	if (ctl->json) {
		fmt_json(v);
	} else if (argc == 0) {
		if (json_array_size(v) == 0)
			puts("no QP has failed");
		else
			fmt_table(v, LIST_COLUMNS, true);
	} else {
		for (size_t i = 0; i < json_array_size(v); i++) {
			if (i > 0)
				putchar('\n');
			print_story(json_array_get(v, i));
		}
	}
	json_decref(v);
	return CTL_OK;
}
