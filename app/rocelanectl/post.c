/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting work requests. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define POST_CHUNK 256     /* work requests in one call */
#define POST_MAX   1000000 /* in one command */

/* What is counted here, and not by the daemon. @return false: it is no number. */
static bool
number_of(const json_t *wr, const char *key, uint64_t *n)
{
	const json_t *v = json_object_get(wr, key);

	if (v == NULL || json_is_null(v))
		return true;
	if (json_is_string(v))
		return params_number(json_string_value(v), n) == 0;
	*n = (uint64_t)json_integer_value(v);
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* JSON's numbers end at 2^63 here: beyond that it is text, which the daemon takes, too. */
static json_t *
number_json(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_sprintf("0x%" PRIx64, n);
}

/* How many there are, and the first one's wr_id. @return CTL_OK or CTL_USAGE */
static int
numbers(json_t *wr, uint64_t *count, uint64_t *first)
{
	char *text = fmt_value(json_object_get(wr, "wr_id"));
	int rc = CTL_OK;

	*count = 1;
	*first = 0;
	if (!number_of(wr, "count", count) || *count < 1 || *count > POST_MAX)
		rc = ctl_usage("count must be between 1 and %d", POST_MAX);
	else if (!number_of(wr, "wr_id", first))
		rc = ctl_usage("wr_id must be a number, not '%s'", text);
	else if (*first > UINT64_MAX - (*count - 1))
		rc = ctl_usage("wr_id counts up, and beyond 64 bits with count %" PRIu64, *count);
	json_object_del(wr, "count");
	free(text);
	return rc;
}

/* The words to a work request: members of an sg_list entry go there. */
static void
work_request(json_t *wr)
{
	static const char *const sge_keys[] = { "mr", "lkey", "offset", "addr", "length" };
	json_t *sge = ctl_must(json_object());
	json_t *v;

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
	uint64_t count, first, i = 0;
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
	rc = numbers(wr, &count, &first);
	work_request(wr);
	/* Whoever posts by hand wants to see the end of it. */
	if (strcmp(cmd->verb, "send") == 0 && json_object_get(wr, "send_flags") == NULL)
		json_object_set_new(wr, "send_flags", json_pack("[s]", "SIGNALED"));
	while (rc == CTL_OK && refused == NULL && i < count) {
		json_t *wrs = ctl_must(json_array());
		json_t *result;

		for (int k = 0; k < POST_CHUNK && i < count; k++, i++) {
			json_object_set_new(wr, "wr_id", number_json(first + i));
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
