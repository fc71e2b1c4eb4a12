/* SPDX-License-Identifier: BSD-3-Clause */
/* "cm explain": why a connection is as it is, for people; then who said what, what was taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static void
put_cell(const json_t *o, const char *key, int width)
{
	const json_t *v = key == NULL ? NULL : json_object_get(o, key);
	char *text = fmt_value(v);

	printf("  %*s", width, text);
	free(text);
}

/* The two sides' words, and what the queue pair has of them. */
static void
print_terms(const json_t *c)
{
	static const struct {
		const char *said, *taken;
	} rows[] = {
		{ "qp_num", "dest_qp_num" },
		{ "starting_psn", "sq_psn" },
		{ "path_mtu", "path_mtu" },
		{ "ack_timeout", "timeout" },
		{ "retry_count", "retry_cnt" },
		{ "rnr_retry_count", "rnr_retry" },
		{ "responder_resources", "max_dest_rd_atomic" },
		{ "initiator_depth", "max_rd_atomic" },
		{ "qkey", NULL },
	};
	const json_t *proposed = json_object_get(c, "proposed");
	const json_t *taken = json_object_get(c, "taken");

	printf("\n%-20s  %10s  %10s  %10s\n", "", "this side", "the peer", "taken");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		printf("%-20s", rows[i].said);
		put_cell(json_object_get(proposed, "local"), rows[i].said, 10);
		put_cell(json_object_get(proposed, "remote"), rows[i].said, 10);
		put_cell(taken, rows[i].taken, 10);
		if (rows[i].taken != NULL && strcmp(rows[i].taken, rows[i].said) != 0)
			printf("  %s", rows[i].taken);
		putchar('\n');
	}
}

int
run_cm_explain(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	static const char *const top[] = { "state", "event", "port", "peer_ip", "service_id",
		"listener", "qp_num", NULL };
	static const char *const labels[] = { "", "", "port ", "peer ", "service ", "listener ",
		"QP ", NULL };
	static const char *const ends[] = { "local_comm_id", "remote_comm_id", "req_time",
		"rep_time", "rtu_time", NULL };
	char head[40];
	const json_t *line;
	json_t *c;
	size_t i;
	int rc = ctl_ask(ctl, cmd, argc, argv, &c);

	if (rc != CTL_OK)
		return rc;
	if (ctl->json) {
		fmt_json(c);
		json_decref(c);
		return CTL_OK;
	}
	snprintf(head, sizeof(head), "connection %lld",
		(long long)json_integer_value(json_object_get(c, "id")));
	explain_parts(head, c, top, labels);
	json_array_foreach (json_object_get(c, "why"), i, line)
		explain_line("why", line);
	print_terms(c);
	putchar('\n');
	for (i = 0; ends[i] != NULL; i++)
		explain_line(ends[i], json_object_get(c, ends[i]));
	json_decref(c);
	return CTL_OK;
}
