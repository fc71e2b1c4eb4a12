/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_test.h"

/* clang-format off */
static const char *const base_lines[] = {
	"{",
	"\"version\": 1,",
	"\"eal\": [\"--no-huge\", \"--vdev=net_af_packet0,iface=x,framesz=4240,blocksz=65536\"],",
	"\"lcores\": { \"control\": 0, \"workers\": [1, 2], \"idle\": \"poll\" },",
	"\"control\": { \"socket\": \"/run/rocelane.sock\", \"mode\": \"0600\" },",
	"\"ports\": [",
	"{ \"name\": \"p0\", \"device\": \"net_af_packet0\", \"mac\": \"02:00:00:00:00:01\",",
	"\"ipv4\": \"10.77.0.1\", \"prefix\": 24, \"mtu\": 4200,",
	"\"neighbors\": [ { \"ipv4\": \"10.77.0.2\", \"mac\": \"02:00:00:00:00:02\" } ] } ],",
	"\"profile\": \"iba\",",
	"\"knobs\": {},",
	"\"error_buffer\": null,",
	"\"pds\": [ \"pd0\" ],",
	"\"mrs\": [",
	"{ \"name\": \"mr0\", \"pd\": \"pd0\", \"length\": \"1M\", \"addr\": \"0x10000\", \"rkey\": 4097 },",
	"{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64 } ],",
	"\"cqs\": [ { \"name\": \"cq0\" } ],",
	"\"srqs\": [ { \"name\": \"srq0\", \"pd\": \"pd0\" } ],",
	"\"qps\": [",
	"{ \"qp_num\": 17, \"qp_type\": \"RC\", \"port\": \"p0\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
	"\"recv_cq\": \"cq0\",",
	"\"qp_state\": \"RTS\",",
	"\"path_mtu\": 1024,",
	"\"dest_qp_num\": 18,",
	"\"rq_psn\": 0,",
	"\"sq_psn\": 0,",
	"\"ah_attr\": { \"dest_ip\": \"10.77.0.2\" },",
	"\"timeout\": 14,",
	"\"retry_cnt\": 7,",
	"\"rnr_retry\": 7,",
	"\"min_rnr_timer\": 12,",
	"\"max_rd_atomic\": 16,",
	"\"max_dest_rd_atomic\": 16,",
	"\"pkey\": \"0xffff\",",
	"\"qp_access_flags\": [],",
	"\"cap\": {},",
	"\"worker\": 0,",
	"\"count\": 1,",
	"\"recv_feed\": null,",
	"\"send_feed\": null },",
	"{ \"qp_num\": 100, \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
	"\"recv_cq\": \"cq0\" } ]",
	"}",
};
/* clang-format on */
_Static_assert(ARRAY_LEN(base_lines) == L_END, "enum base_line goes with the text");

char *
base_text(const struct swap *swaps, size_t n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (size_t i = 0; i < ARRAY_LEN(base_lines); i++) {
		const char *line = base_lines[i];

		for (size_t k = 0; k < n; k++) {
			if (swaps[k].line == (int)i + 1)
				line = swaps[k].text;
		}
		fprintf(f, "%s\n", line);
	}
	fclose(f);
	return text;
}

int
base_load(const struct swap *swaps, size_t n, struct conf **out, struct conf_errors *err)
{
	char *text = base_text(swaps, n);
	int ret;

	conf_errors_init(err);
	strcpy(err->file, "test.json");
	ret = conf_load_text(text, strlen(text), out, err);
	free(text);
	return ret;
}

struct conf *
base_good(int line, const char *text)
{
	const struct swap swap = { line, text };
	struct conf_errors err;
	struct conf *c;
	int ret = base_load(&swap, 1, &c, &err);

	errors_show(&err);
	assert_int_equal(ret, 0);
	assert_int_equal(err.n, 0);
	conf_errors_free(&err);
	return c;
}

void
errors_show(const struct conf_errors *err)
{
	char line[2048];

	for (uint32_t i = 0; i < err->n; i++) {
		conf_error_print(err, i, line, sizeof(line));
		print_message("# %s\n", line);
	}
}
