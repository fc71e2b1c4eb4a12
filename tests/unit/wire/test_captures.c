/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every frame of tests/vectors/captures, made by Linux's Soft-RoCE: parsed, compared with the
 * decoded line next to it, ICRC checked, and built again byte for byte.
 *
 * What a sender chooses is carried over from the frame to the builder: MACs, IP addresses, IP
 * identification, TOS, TTL, UDP source port, flow label, and a UDP checksum where there is one (in
 * these captures there is none).
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crc_zlib.h"
#include "icrc.h"
#include "wire_build.h"
#include "../../clib/fields.h"
#include "../../vectors/pcap.h"

enum { PATH_ROOM = 1024, FRAME_ROOM = 4500, FILES_MAX = 100, TEXT_FRAMES_MAX = 512 };

static const char *folder;

static const struct wire_port ports[2] = {
	{ .mac = { 2, 0, 0, 0x77, 0, 1 },
		.has_ipv4 = true,
		.has_ipv6 = true,
		.require_df = true,
		.ipv4 = { 10, 77, 0, 1 },
		.ipv6 = { 0xfd, 0x77, [15] = 1 } },
	{ .mac = { 2, 0, 0, 0x77, 0, 2 },
		.has_ipv4 = true,
		.has_ipv6 = true,
		.require_df = true,
		.ipv4 = { 10, 77, 0, 2 },
		.ipv6 = { 0xfd, 0x77, [15] = 2 } },
};

/* What the text file says of one frame. */
struct told {
	bool seen;
	bool bad_icrc; /* changed on the wire, and the ICRC not made right again */
	unsigned int qpn, psn, pad, tver, pkey, payload, syndrome, msn;
	char flags[4];
	bool has_aeth;
};

struct totals {
	unsigned int files, frames, bad, v6, with_aeth, qp1;
};

/** A number behind a word of the line, e.g. " psn 000200". */
static bool
number(const char *line, const char *word, const char *format, unsigned int *value)
{
	const char *at = strstr(line, word);

	return at != NULL && sscanf(at + strlen(word), format, value) == 1;
}

static void
read_text(const char *path, struct told *told)
{
	FILE *in = fopen(path, "r");
	char line[1024];

	memset(told, 0, TEXT_FRAMES_MAX * sizeof(*told));
	assert_non_null(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		unsigned int n;

		if (sscanf(line, "{\"frame\":%u,", &n) == 1 && n < TEXT_FRAMES_MAX &&
			(strstr(line, "\"act\":\"set\"") != NULL ||
				strstr(line, "\"act\":\"flip\"") != NULL) &&
			strstr(line, "fix=1") == NULL)
			told[n].bad_icrc = true;
		if (line[0] == ' ' && sscanf(line, " %u ", &n) == 1 && n < TEXT_FRAMES_MAX) {
			struct told *t = &told[n];
			const char *psn_at = strstr(line, " psn ");

			t->seen = number(line, " qp ", "%x", &t->qpn) &&
				  number(line, " psn ", "%x", &t->psn) &&
				  number(line, " pad", "%u", &t->pad) &&
				  number(line, " tver", "%u", &t->tver) &&
				  number(line, " pkey ", "%x", &t->pkey) &&
				  number(line, " payload ", "%u", &t->payload) &&
				  sscanf(psn_at, " psn %*x %3s", t->flags) == 1;
			t->has_aeth = number(line, " syn ", "%x", &t->syndrome) &&
				      number(line, " msn ", "%u", &t->msn);
		}
	}
	fclose(in);
}

static void
compare_with_text(const char *name, unsigned int n, const struct wire_pkt *p, const struct told *t)
{
	bool same = t->seen && p->dest_qpn == t->qpn && p->psn.v == t->psn && p->pad == t->pad &&
		    p->tver == t->tver && p->pkey == t->pkey && p->payload_len == t->payload &&
		    ((p->flags & PKT_SE) != 0) == (t->flags[0] == 'S') &&
		    ((p->flags & PKT_MIGREQ) != 0) == (t->flags[1] == 'M') &&
		    ((p->flags & PKT_ACKREQ) != 0) == (t->flags[2] == 'A') &&
		    op_has(p->op, OPF_AETH) == t->has_aeth;

	if (same && t->has_aeth)
		same = wire_aeth(p).syndrome == t->syndrome && wire_aeth(p).msn == t->msn;
	if (!same)
		fail_msg("%s frame %u: not what its text says", name, n);
}

/** Path and identification of a frame, for the builder. */
static struct wire_path
path_of(const struct wire_pkt *p, uint16_t *ip_id)
{
	const uint8_t *ip = p->frame + p->l3_off;
	struct wire_path path = { .ipv6 = (p->flags & PKT_IPV6) != 0,
		.sport = be16_load(p->frame + p->bth_off - WIRE_UDP_LEN) };

	memcpy(path.dmac, p->frame, 6);
	memcpy(path.smac, p->frame + 6, 6);
	if (path.ipv6) {
		path.tos = (uint8_t)(be16_load(ip) >> 4);
		path.flow_label = be32_load(ip) & 0xfffff;
		path.ttl = ip[7];
		memcpy(path.src_ip, ip + 8, 16);
		memcpy(path.dst_ip, ip + 24, 16);
		*ip_id = 0;
	} else {
		path.tos = ip[1];
		path.ttl = ip[8];
		memcpy(path.src_ip, ip + 12, 4);
		memcpy(path.dst_ip, ip + 16, 4);
		*ip_id = be16_load(ip + 4);
	}
	return path;
}

static void
rebuild(const char *name, unsigned int n, const struct wire_pkt *p, bool bad_icrc)
{
	const struct wire_fields f = fields_of(p);
	uint32_t udp_sum_off = p->bth_off - 2u;
	static uint8_t b[FRAME_ROOM];
	struct wire_path path;
	uint16_t ip_id;
	int len;

	path = path_of(p, &ip_id);
	memset(b, 0xcc, sizeof(b));
	len = wire_build(&path, &f, ip_id, b, sizeof(b));
	if (len != p->frame_len)
		fail_msg("%s frame %u: built %d bytes", name, n, len);
	memcpy(b + udp_sum_off, p->frame + udp_sum_off, 2);
	icrc_seal(crc_zlib(), b, p->l3_off, path.ipv6, (uint32_t)len);
	for (int i = 0; i < len - (bad_icrc ? WIRE_ICRC_LEN : 0); i++) {
		if (b[i] != p->frame[i])
			fail_msg("%s frame %u: byte %d built as %02x, was %02x", name, n, i, b[i],
				p->frame[i]);
	}
	if (bad_icrc)
		assert_memory_not_equal(b + len - 4, p->frame + len - 4, 4);
}

static void
check_frame(const char *name, unsigned int n, const uint8_t *frame, uint32_t len,
	const struct told *t, struct totals *sum)
{
	const struct wire_port *port = &ports[frame[5] == 1 ? 0 : 1];
	/* CM datagrams go to QP 1, which this project does not serve. */
	const fault_mask_t want = t->qpn == 1 ? FAULT_BIT(FAULT_DST_QP) : 0;
	struct wire_pkt p;

	if (wire_parse(port, frame, len, &p) != WIRE_CLASS_ROCE || p.faults != want)
		fail_msg("%s frame %u: faults 0x%llx", name, n, (unsigned long long)p.faults);
	assert_int_equal(p.icrc_off, len - WIRE_ICRC_LEN);
	compare_with_text(name, n, &p, t);
	if (icrc_verify(crc_zlib(), &p) == t->bad_icrc)
		fail_msg("%s frame %u: ICRC is %s", name, n, t->bad_icrc ? "right" : "wrong");
	rebuild(name, n, &p, t->bad_icrc);
	sum->bad += t->bad_icrc;
	sum->v6 += (p.flags & PKT_IPV6) != 0;
	sum->with_aeth += t->has_aeth;
	sum->qp1 += t->qpn == 1;
}

static void
check_file(const char *name, struct totals *sum)
{
	static struct told told[TEXT_FRAMES_MAX];
	char path[PATH_ROOM];
	struct pcap_file in;
	const uint8_t *frame;
	uint32_t len;
	unsigned int n = 0;
	int rc;

	snprintf(path, sizeof(path), "%s/%.*s.txt", folder, (int)(strlen(name) - 5), name);
	read_text(path, told);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(pcap_open(&in, path), 0);
	while ((rc = pcap_next(&in, &frame, &len)) == 1) {
		assert_true(++n < TEXT_FRAMES_MAX);
		check_frame(name, n, frame, len, &told[n], sum);
	}
	assert_int_equal(rc, 0);
	pcap_close(&in);
	sum->files++;
	sum->frames += n;
}

/* WIRE-01, WIRE-02, WIRE-04, WIRE-05, WIRE-07, WIRE-13, ICRC-01, ICRC-05 against a Linux peer. */
static void
vectors_parse(void **state)
{
	struct totals sum = { 0 };
	DIR *dir = opendir(folder);
	struct dirent *e;

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name);

		if (len > 5 && strcmp(e->d_name + len - 5, ".pcap") == 0)
			check_file(e->d_name, &sum);
	}
	closedir(dir);
	assert_int_equal(sum.files, 39);
	assert_int_equal(sum.frames, 967);
	assert_int_equal(sum.bad, 2);
	assert_int_equal(sum.v6, 16);
	assert_true(sum.with_aeth > 300);
	assert_true(sum.qp1 > 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_parse),
	};

	folder = argc > 1 ? argv[1] : "tests/vectors/captures";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
