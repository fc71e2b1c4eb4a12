/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration texts: whatever they are, the loader ends with a configuration or with faults, each
 * on a line of the text; nothing leaks; and a configuration that was taken is written and loaded
 * again to the same. RPC parameters go through the same tables, so every object is one too.
 *
 * Input: the text.
 */
#include <string.h>

#include "conf_json.h"
#include "fuzz.h"

static const char *const seeds[] = {
	"{\"version\":1,\"ports\":[{\"name\":\"p\",\"device\":\"d\",\"ipv4\":\"10.0.0.1\"}]}",
	"{\n\"version\":1,\n\"eal\":[\"--vdev=net_af_packet0,framesz=4240,blocksz=65536\"],\n"
	"\"lcores\":{\"control\":0,\"workers\":[1],\"idle\":\"poll\"},\n"
	"\"control\":{\"socket\":\"/s\",\"mode\":\"0600\"},\n"
	"\"ports\":[{\"name\":\"p0\",\"device\":\"net_af_packet0\",\"mac\":\"02:00:00:00:00:01\",\n"
	"\"ipv4\":\"10.77.0.1\",\"prefix\":24,\"ipv6\":\"fd77::1\",\"prefix6\":64,\"mtu\":4200,\n"
	"\"neighbors\":[{\"ipv4\":\"10.77.0.2\",\"mac\":\"02:00:00:00:00:02\"}]}],\n"
	"\"profile\":\"ernic\",\"knobs\":{\"resp.early_retry\":\"drop\",\"cc.cnp_interval\":50},\n"
	"\"error_buffer\":{\"entries\":4096,\"pcapng\":null},\"pds\":[\"pd0\"],\n"
	"\"mrs\":[{\"name\":\"mr0\",\"pd\":\"pd0\",\"length\":\"1M\",\"addr\":\"0x10000\","
	"\"rkey\":\"0x1001\",\"access\":[\"LOCAL_WRITE\",\"REMOTE_WRITE\"],\"fill\":\"pattern:7\"}],\n"
	"\"cqs\":[{\"name\":\"cq0\",\"cqe\":1024}],\"srqs\":[{\"name\":\"srq0\",\"pd\":\"pd0\"}],\n"
	"\"qps\":[{\"qp_num\":17,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\n"
	"\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"path_mtu\":1024,\"dest_qp_num\":18,\"rq_psn\":0,\n"
	"\"sq_psn\":0,\"ah_attr\":{\"dest_ip\":\"10.77.0.2\",\"dest_mac\":null,\"vlan\":5},\n"
	"\"timeout\":14,\"pkey\":\"0xffff\",\"cap\":{\"max_send_wr\":128},\"worker\":0,\"count\":4,\n"
	"\"recv_feed\":{\"buffers\":8},\"send_feed\":{\"opcode\":\"RDMA_READ\",\"rkey\":1,"
	"\"remote_addr\":\"0x10\",\"stride\":8},\"knobs\":{\"rx.ip_df\":\"ignore\"}}]}",
	"{\"qp_num\":17,\"qp_state\":\"ERR\",\"cur_qp_state\":\"RTS\",\"timeout\":0}",
	"{\"version\":1,\"version\":1}",
	"{\"version\":1,\"a/b~c\\u0041\":[{}]",
};

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	return index < ARRAY_LEN(seeds) ? fuzz_text(seeds[index], buf, room) : 0;
}

static void
check_errors(const struct conf_errors *err, uint32_t lines, int ret)
{
	FUZZ_CHECK((ret != 0) == (err->n_errors != 0));
	for (uint32_t i = 0; i < err->n; i++) {
		char line[256];
		json_t *text = json_string(err->v[i].message);

		FUZZ_CHECK(err->v[i].line >= 1 && err->v[i].line <= lines);
		FUZZ_CHECK(text != NULL); /* UTF-8: it goes into replies */
		json_decref(text);
		FUZZ_CHECK(conf_error_print(err, i, line, sizeof(line)) > 0);
	}
}

static void
check_again(const struct conf *c)
{
	json_t *first = conf_encode_all(c);
	char *text = json_dumps(first, JSON_COMPACT);
	struct conf_errors err;
	struct conf *again;
	json_t *second;

	FUZZ_CHECK(text != NULL);
	conf_errors_init(&err);
	FUZZ_CHECK(conf_load_text(text, strlen(text), &again, &err) == 0);
	second = conf_encode_all(again);
	FUZZ_CHECK(json_equal(first, second));
	json_decref(first);
	json_decref(second);
	free(text);
	conf_free(again);
	conf_errors_free(&err);
}

static void
check_rpc(const uint8_t *data, size_t size)
{
	json_t *params = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct conf_errors err;
	struct conf_qp qp;
	struct conf_mr mr;

	if (params == NULL)
		return;
	conf_errors_init(&err);
	if (conf_decode_qp_modify(params, &qp, &err) == 0)
		FUZZ_CHECK(qp.qp_num >= CONF_QPN_MIN && qp.timeout <= 31);
	if (conf_decode_qp(params, &qp, &err) == 0)
		FUZZ_CHECK(qp.pd[0] != '\0' && qp.rq_psn <= 0xffffff && qp.retry_cnt <= 7);
	if (conf_decode_mr(params, &mr, &err) == 0)
		FUZZ_CHECK(mr.length > 0 && mr.addr + (mr.length - 1) >= mr.addr);
	conf_errors_free(&err);
	json_decref(params);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_errors err;
	struct conf *c;
	uint32_t lines = 1;
	int ret;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' ? 1 : 0;
	conf_errors_init(&err);
	ret = conf_load_text((const char *)data, size, &c, &err);
	FUZZ_CHECK((ret == 0) == (c != NULL));
	check_errors(&err, lines, ret);
	if (c != NULL)
		check_again(c);
	conf_free(c);
	conf_errors_free(&err);
	check_rpc(data, size);
	return 0;
}
