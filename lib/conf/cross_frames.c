/* SPDX-License-Identifier: BSD-3-Clause */
#include "cross.h"
#include "errors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the longest packet adds to its payload: WRITE ONLY with immediate has RETH and ImmDt. */
#define ETH_LEN  14
#define VLAN_LEN 4
#define IPV4_LEN 20
#define IPV6_LEN 40
#define UDP_LEN  8
#define BTH_LEN  12
#define EXT_LEN  20
#define ICRC_LEN 4

/* What the kernel and the driver keep of an af_packet slot before the frame. */
#define AF_PACKET_OVERHEAD 66
#define AF_PACKET_ALIGN    16
#define AF_PACKET_PAGE     4096  /* a block is a number of them */
#define AF_PACKET_BLOCK    65536 /* that holds one of any frames */
#define AF_PACKET_MOST     65344 /* an mbuf's 65535, less its headroom, in cache lines */

uint32_t
conf_datagram_len(uint32_t path_mtu, bool ipv6)
{
	return path_mtu + (ipv6 ? IPV6_LEN : IPV4_LEN) + UDP_LEN + BTH_LEN + EXT_LEN + ICRC_LEN;
}

uint32_t
conf_frame_len(uint32_t path_mtu, bool ipv6, bool vlan)
{
	return ETH_LEN + (vlan ? VLAN_LEN : 0) + conf_datagram_len(path_mtu, ipv6);
}

uint32_t
conf_path_mtu(uint32_t mtu)
{
	uint32_t path_mtu = 4096;

	while (path_mtu > 256 && conf_datagram_len(path_mtu, true) > mtu)
		path_mtu /= 2;
	return path_mtu;
}

const struct conf_port *
conf_port_find(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_ports; i++) {
		if (name[0] != '\0' && strcmp(c->ports[i].name, name) == 0)
			return &c->ports[i];
	}
	return NULL;
}

/* Largest path MTU that fits, 0: none. */
static uint32_t
fitting(uint32_t mtu, bool ipv6)
{
	for (uint32_t path_mtu = 4096; path_mtu >= 256; path_mtu /= 2) {
		if (conf_datagram_len(path_mtu, ipv6) <= mtu)
			return path_mtu;
	}
	return 0;
}

static void
path_against_port(const struct conf_qp *qp, bool alternate, const struct conf_port *p, bool mtus,
	struct conf_errors *err)
{
	const struct conf_ah *ah = alternate ? &qp->alt_ah_attr : &qp->ah_attr;
	const bool ipv6 = ah->dest_ip.family == 6;
	const uint32_t need = conf_datagram_len(qp->path_mtu, ipv6);
	const uint32_t best = fitting(p->mtu, ipv6);
	char lower[48] = "";

	if ((p->given & (ipv6 ? CONF_PORT_IPV6 : CONF_PORT_IPV4)) == 0)
		conf_fault(err, alternate ? "alt_ah_attr" : "ah_attr",
			"dest_ip is an %s address, but port \"%s\" has no %s: give "
			"the port one",
			ipv6 ? "IPv6" : "IPv4", p->name, ipv6 ? "ipv6" : "ipv4");
	if (need <= p->mtu || !mtus)
		return;
	if (best != 0)
		snprintf(lower, sizeof(lower), ", or lower path_mtu to %u", best);
	conf_fault(err, "path_mtu",
		"%u makes datagrams of up to %u bytes, but port \"%s\" has mtu %u: "
		"raise the port's mtu to %u%s",
		qp->path_mtu, need, p->name, p->mtu, need, lower);
}

/* "DEVICE,a=b" of "--vdev=DEVICE,a=b" or "--vdev" "DEVICE,a=b", or NULL. */
static const char *
vdev_of(char *const *eal, uint32_t i)
{
	const char *s = eal[i];

	if (s == NULL)
		return NULL;
	if (strncmp(s, "--vdev=", 7) == 0)
		return s + 7;
	return i > 0 && eal[i - 1] != NULL && strcmp(eal[i - 1], "--vdev") == 0 ? s : NULL;
}

/* Arguments of `device` among EAL's; its index in *index. */
static const char *
vdev_args(const struct conf *c, const char *device, uint32_t *index)
{
	const size_t len = strlen(device);

	for (uint32_t i = 0; i < c->n_eal; i++) {
		const char *s = vdev_of(c->eal, i);

		if (s != NULL && strncmp(s, device, len) == 0 &&
			(s[len] == ',' || s[len] == '\0')) {
			*index = i;
			return s + len;
		}
	}
	return NULL;
}

/* A device's ring, with DPDK's defaults. */
struct ring {
	unsigned long framesz;
	unsigned long blocksz;
	unsigned long framecnt;
};

static unsigned long
value_of(const char *args, const char *key, unsigned long otherwise)
{
	const char *at = strstr(args, key);

	return at != NULL ? strtoul(at + strlen(key), NULL, 0) : otherwise;
}

static struct ring
ring_of(const char *args)
{
	return (struct ring){ value_of(args, ",framesz=", 2048),
		value_of(args, ",blocksz=", AF_PACKET_PAGE), value_of(args, ",framecnt=", 512) };
}

unsigned long
conf_af_packet_framesz(unsigned long framesz, unsigned long blocksz)
{
	while (blocksz % framesz != 0)
		framesz = framesz < blocksz && framesz < AF_PACKET_MOST
				  ? (framesz / AF_PACKET_ALIGN + 1) * AF_PACKET_ALIGN
				  : blocksz;
	return framesz;
}

/* The largest that divides the block and fits an mbuf. */
static unsigned long
most_that_divides(unsigned long blocksz)
{
	unsigned long frame = AF_PACKET_MOST;

	while (blocksz % frame != 0)
		frame -= AF_PACKET_ALIGN;
	return frame;
}

/* What neither DPDK nor the kernel takes: the device would not be there, for reasons of theirs. */
static bool
ring_fault(const struct ring *r, const char *device, struct conf_errors *err)
{
	if (r->framesz == 0)
		conf_fault(err, NULL, "framesz of %s must be a number of bytes, and not 0", device);
	else if (r->framesz > AF_PACKET_MOST)
		conf_fault(err, NULL, "framesz %lu of %s is more than an mbuf holds: at most %u",
			r->framesz, device, AF_PACKET_MOST);
	else if (r->blocksz == 0 || r->blocksz % AF_PACKET_PAGE != 0)
		conf_fault(err, NULL, "blocksz %lu of %s must be a multiple of the page, %u",
			r->blocksz, device, AF_PACKET_PAGE);
	else if (r->framesz > r->blocksz)
		conf_fault(err, NULL,
			"framesz %lu of %s is larger than its blocksz, %lu: give it blocksz=%u",
			r->framesz, device, r->blocksz, AF_PACKET_BLOCK);
	else if (conf_af_packet_framesz(r->framesz, r->blocksz) > AF_PACKET_MOST)
		conf_fault(err, NULL,
			"framesz %lu of %s does not divide its blocksz, %lu, and no larger one that an "
			"mbuf holds does: lower framesz to %lu",
			r->framesz, device, r->blocksz, most_that_divides(r->blocksz));
	else if (r->framecnt == 0 ||
		 (r->blocksz % r->framesz == 0 && r->framecnt < r->blocksz / r->framesz))
		conf_fault(err, NULL, "framecnt %lu of %s is less than the %lu frames of one block",
			r->framecnt, device, r->blocksz / r->framesz);
	else
		return false;
	return true;
}

struct longest {
	uint32_t frame; /* bytes, 0: none */
	uint32_t qp;
};

static void
device_against_frames(const struct conf *c, const struct conf_port *p, const struct longest *l,
	struct conf_errors *err)
{
	const uint32_t need = l->frame + AF_PACKET_OVERHEAD;
	uint32_t index = 0;
	uint32_t mark = err->at_len;
	char block[64] = "";
	const char *args;
	struct ring r;

	if (strncmp(p->device, "net_af_packet", 13) != 0 &&
		strncmp(p->device, "eth_af_packet", 13) != 0)
		return;
	args = vdev_args(c, p->device, &index);
	if (args == NULL)
		return; /* it may come from the command line */
	r = ring_of(args);
	conf_enter(err, "eal");
	conf_enter_index(err, index);
	if (need > r.blocksz)
		snprintf(block, sizeof(block), ", and blocksz, which is %lu, to %u", r.blocksz,
			AF_PACKET_BLOCK);
	if (!ring_fault(&r, p->device, err) && l->frame != 0 && r.framesz < need)
		conf_fault(err, NULL,
			"framesz %lu of %s is too small: /qps/%u has frames of up to %u bytes and "
			"af_packet adds %u, so raise framesz to at least %u%s",
			r.framesz, p->device, l->qp, l->frame, AF_PACKET_OVERHEAD,
			(need + AF_PACKET_ALIGN - 1) / AF_PACKET_ALIGN * AF_PACKET_ALIGN, block);
	conf_leave(err, mark);
}

/* Both are what was written. */
static bool
mtus_known(const struct conf *c, uint32_t qp, const struct conf_port *p, struct conf_errors *err)
{
	uint32_t mark = conf_enter(err, "qps");
	bool known;

	conf_enter_index(err, qp);
	known = !conf_errors_within(err, "path_mtu");
	conf_leave(err, mark);
	mark = conf_enter(err, "ports");
	conf_enter_index(err, (uint32_t)(p - c->ports));
	known = known && !conf_errors_within(err, "mtu");
	conf_leave(err, mark);
	return known;
}

/* One of a QP's two paths against the port that it leaves by. */
static void
path_check(const struct conf *c, uint32_t i, bool alternate, struct longest *longest,
	struct conf_errors *err)
{
	const struct conf_qp *qp = &c->qps[i];
	const bool other = alternate && (qp->given & CONF_QP_ALT_PORT) != 0;
	const struct conf_port *p = conf_port_find(c, other ? qp->alt_port : qp->port);
	const struct conf_ah *ah = alternate ? &qp->alt_ah_attr : &qp->ah_attr;
	uint32_t mark = err->at_len;
	uint32_t frame;
	bool mtus;

	if (p == NULL || ah->dest_ip.family == 0)
		return; /* no path yet: a modify will be checked when it gives one */
	mtus = err->n_errors == 0 || mtus_known(c, i, p, err);
	conf_enter(err, "qps");
	conf_enter_index(err, i);
	path_against_port(qp, alternate, p, mtus, err);
	conf_leave(err, mark);
	frame = conf_frame_len(
		qp->path_mtu, ah->dest_ip.family == 6, (ah->given & CONF_AH_VLAN) != 0);
	if (frame > longest[p - c->ports].frame)
		longest[p - c->ports] = (struct longest){ frame, i };
}

/* getopt_long() takes the beginning of a name, too. "--p" is nothing else's. */
static bool
is_proc_type(const char *s)
{
	const size_t n = strcspn(s, "=");

	return n > 2 && n <= strlen("--proc-type") && strncmp(s, "--proc-type", n) == 0;
}

/* The process type that the i-th argument says, or NULL. */
static const char *
proc_type_of(char *const *eal, uint32_t i)
{
	const char *s = eal[i];

	if (s == NULL)
		return NULL;
	if (is_proc_type(s) && strchr(s, '=') != NULL)
		return strchr(s, '=') + 1;
	return i > 0 && eal[i - 1] != NULL && is_proc_type(eal[i - 1]) &&
			       strchr(eal[i - 1], '=') == NULL
		       ? s
		       : NULL;
}

bool
conf_eal_fault(char *const *eal, uint32_t i, char *buf, size_t room)
{
	const char *vdev = vdev_of(eal, i), *type = proc_type_of(eal, i);

	if (eal[i] != NULL && strcmp(eal[i], "--") == 0) {
		snprintf(buf, room, "ends EAL's arguments, and nobody reads what is behind it");
		return true;
	}
	if (eal[i] != NULL && (strcmp(eal[i], "-h") == 0 || strcmp(eal[i], "--help") == 0)) {
		snprintf(buf, room, "prints EAL's options, and starts nothing: leave it out");
		return true;
	}
	if (type != NULL && strcmp(type, "primary") != 0) {
		snprintf(buf, room,
			"%s: rocelane is a primary process; give another --file-prefix beside another one",
			type);
		return true;
	}
	if (vdev == NULL || strncmp(vdev, "net_pair", 8) != 0)
		return false;
	snprintf(buf, room,
		"%.*s is no device of EAL's: an in-memory pair is made by itself when both of its ends "
		"are the \"device\" of a port; leave --vdev out",
		(int)strcspn(vdev, ","), vdev);
	return true;
}

static void
check_eal(const struct conf *c, struct conf_errors *err)
{
	char text[256];

	for (uint32_t i = 0; i < c->n_eal; i++) {
		const uint32_t mark = err->at_len;

		if (!conf_eal_fault(c->eal, i, text, sizeof(text)))
			continue;
		conf_enter(err, "eal");
		conf_enter_index(err, i);
		conf_fault(err, NULL, "%s", text);
		conf_leave(err, mark);
	}
}

void
conf_cross_frames(const struct conf *c, struct conf_errors *err)
{
	struct longest longest[CONF_MAX_PORTS] = { 0 };

	for (uint32_t i = 0; i < c->n_qps; i++) {
		path_check(c, i, false, longest, err);
		path_check(c, i, true, longest, err);
	}
	for (uint32_t i = 0; i < c->n_ports; i++)
		device_against_frames(c, &c->ports[i], &longest[i], err);
	check_eal(c, err);
}
