/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting work requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define POST_CHUNK 256     /* work requests in one call */
#define POST_MAX   1000000 /* in one command */

/* The words to a work request: members of an sg_list entry go there, `count` is taken out. */
static json_int_t
work_request(json_t *wr)
{
	static const char *const sge_keys[] = { "mr", "lkey", "offset", "addr", "length" };
	json_t *sge = ctl_must(json_object());
	json_t *v = json_object_get(wr, "count");
	json_int_t count = v != NULL ? json_integer_value(v) : 1;

	json_object_del(wr, "count");
	for (size_t i = 0; i < sizeof(sge_keys) / sizeof(sge_keys[0]); i++) {
		v = json_object_get(wr, sge_keys[i]);
		if (v != NULL)
			json_object_set(sge, sge_keys[i], v);
		json_object_del(wr, sge_keys[i]);
	}
	if (json_object_get(sge, "mr") != NULL && json_object_get(sge, "offset") == NULL)
		json_object_set_new(sge, "offset", json_integer(0));
	if (json_object_size(sge) > 0)
		json_object_set_new(wr, "sg_list", json_pack("[O]", sge));
	json_decref(sge);
	if (json_object_get(wr, "wr_id") == NULL)
		json_object_set_new(wr, "wr_id", json_integer(0));
	return count;
}

static int
report(struct ctl *ctl, json_int_t posted, json_t *refused)
{
	char *why;
	char *id;
	int rc;

	if (ctl->json) {
		json_t *v = json_pack("{s:I}", "posted", posted);

		json_object_set_new(
			v, "refused", refused != NULL ? json_incref(refused) : json_null());
		fmt_json(v);
		json_decref(v);
	} else {
		printf("posted %lld\n", (long long)posted);
	}
	if (refused == NULL)
		return CTL_OK;
	why = fmt_value(json_object_get(refused, "reason"));
	id = fmt_value(json_object_get(refused, "wr_id"));
	rc = ctl_refuse(RPC_REFUSED - (int)json_integer_value(json_object_get(refused, "errno")),
		"wr_id %s refused: %s", id, why);
	free(why);
	free(id);
	return rc;
}

/* Post `count` copies with rising wr_id, in bounded calls, up to the first that is refused. */
int
run_post(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	const char *to_key;
	json_t *refused = NULL;
	json_int_t posted = 0;
	json_int_t count;
	json_int_t first;
	json_int_t i = 0;
	json_t *to;
	json_t *wr;
	int rc;

	if (strcmp(cmd->verb, "recv") == 0 && argc > 0 && strcmp(argv[0], "srq") == 0) {
		cmd = command_find("post", "srq");
		argc--;
		argv++;
	}
	to_key = strcmp(cmd->verb, "srq") == 0 ? "srq" : "qp_num";
	rc = params_build(cmd, argc, argv, &wr);
	if (rc != CTL_OK)
		return rc;
	to = json_incref(json_object_get(wr, to_key));
	json_object_del(wr, to_key);
	count = work_request(wr);
	/* Whoever posts by hand wants to see the end of it. */
	if (strcmp(cmd->verb, "send") == 0 && json_object_get(wr, "send_flags") == NULL)
		json_object_set_new(wr, "send_flags", json_pack("[s]", "SIGNALED"));
	first = json_integer_value(json_object_get(wr, "wr_id"));
	if (count < 1 || count > POST_MAX)
		rc = ctl_usage("count must be between 1 and %d", POST_MAX);
	while (rc == CTL_OK && refused == NULL && i < count) {
		json_t *wrs = ctl_must(json_array());
		json_t *result;

		for (int k = 0; k < POST_CHUNK && i < count; k++, i++) {
			json_object_set_new(wr, "wr_id", json_integer(first + i));
			json_array_append_new(wrs, json_copy(wr));
		}
		rc = ctl_call(
			ctl, cmd->method, json_pack("{s:O, s:o}", to_key, to, "wrs", wrs), &result);
		if (rc != CTL_OK)
			break;
		posted += json_integer_value(json_object_get(result, "posted"));
		refused = json_object_get(result, "refused");
		refused = json_is_null(refused) ? NULL : json_incref(refused);
		json_decref(result);
	}
	if (rc == CTL_OK)
		rc = report(ctl, posted, refused);
	json_decref(refused);
	json_decref(to);
	json_decref(wr);
	return rc;
}
