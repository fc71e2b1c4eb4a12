/* SPDX-License-Identifier: BSD-3-Clause */
#include "why.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf_json.h"
#include "conf_json_value.h"
#include "diagnose.h"
#include "regions.h"

/** A refusal with what is known of its regions, as its viewer may know it. */
struct known {
	struct mem_refusal m;
	struct region_view region;
	struct region_view meant;
	bool has_region;
	unsigned int likeness; /* of `meant`, 0: there is none */
	bool own;              /* the viewer is an application */
	bool blind;            /* there was no time to look for a region */
};

static void
learn(struct diagnose *dg, const struct why_view *v, const struct mem_refusal *m, struct known *k)
{
	*k = (struct known){ .m = *m, .own = v->owner != NULL };
	k->blind = !regions_may_look(dg->objects);
	k->has_region = !k->blind && regions_of(dg->objects, v->owner, m, v->time_ns, &k->region);
	/* Another's region: to this viewer there is none. */
	if (m->region && !k->has_region && v->owner != NULL) {
		k->m.region = false;
		if (m->why == MEM_WHY_OTHER_PD || m->why == MEM_WHY_REVOKED ||
			m->why == MEM_WHY_OTHER_QP || m->why == MEM_WHY_UNBOUND)
			k->m.why = MEM_WHY_UNKNOWN_KEY;
	}
	if (k->blind)
		return;
	switch (k->m.why) {
	case MEM_WHY_UNKNOWN_KEY:
	case MEM_WHY_REVOKED:
	case MEM_WHY_UNBOUND:
	case MEM_WHY_OTHER_PD:
	case MEM_WHY_BELOW:
	case MEM_WHY_BEYOND:
		k->likeness = regions_meant(dg->objects, v->owner, m, v->time_ns, &k->meant);
		break;
	default:
		break;
	}
}

/* ---- words ---------------------------------------------------------------------------------- */

static json_t *
access_json(access_t access)
{
	return conf_json_flags(conf_names_access, access);
}

static void
put_access(FILE *f, access_t access)
{
	json_t *list = access_json(access);

	for (size_t i = 0; i < json_array_size(list); i++)
		fprintf(f, "%s%s", i != 0 ? ", " : "", json_string_value(json_array_get(list, i)));
	if (json_array_size(list) == 0)
		fputs("none", f);
	json_decref(list);
}

/* "mr0"; an application knows its regions by their keys. */
static void
put_region(FILE *f, const struct known *k, const struct region_view *r)
{
	if (k->own || r->name[0] == '\0')
		fprintf(f, "the region with key 0x%x", r->key);
	else
		fprintf(f, "%s", r->name);
}

/* The region of the key: by name if it has one. */
static void
put_it(FILE *f, const struct known *k)
{
	if (k->has_region)
		put_region(f, k, &k->region);
	else
		fputs("its region", f);
}

static void
put_bytes(FILE *f, uint64_t n)
{
	fprintf(f, "%" PRIu64 " byte%s", n, n == 1 ? "" : "s");
}

static void
put_key(FILE *f, const struct known *k)
{
	static const char *const names[] = { [MEM_BY_PEER] = "R_Key",
		[MEM_BY_SEND] = "L_Key",
		[MEM_BY_RECEIVE] = "L_Key",
		[MEM_BY_BIND] = "key" };

	fprintf(f, "%s 0x%x", names[k->m.by], k->m.key);
}

static void
put_unknown(FILE *f, const struct known *k, ns_t when)
{
	put_key(f, k);
	if (k->blind) {
		fputs(" was not looked for: too many regions for as many failures", f);
		return;
	}
	if (k->has_region && k->region.gone_ns != 0) {
		const ns_t ago = when > k->region.gone_ns ? when - k->region.gone_ns : 0;

		fputs(" was that of ", f);
		put_region(f, k, &k->region);
		fprintf(f, ", deregistered %.3f s before", (double)ago / 1e9);
		return;
	}
	fputs(" is no region's", f);
}

static void
put_window(FILE *f, const struct known *k)
{
	put_key(f, k);
	fputs(" is that of ", f);
	if (k->has_region && !k->own && k->region.name[0] != '\0')
		fprintf(f, "%s, ", k->region.name);
	fputs(k->m.fast ? "a fast-register region" : "a memory window", f);
}

/* The key of a bind: of a window, or of a fast-register region, which is bound in the same way. */
static void
put_bind(FILE *f, const struct known *k)
{
	static const char *const fast[MEM_WHY_MAX] = {
		[MEM_WHY_BOUND] = "the fast-register region is valid already: it has to be "
				  "invalidated first",
		[MEM_WHY_NEW_KEY] = "the new key is not the fast-register region's index with a "
				    "low byte",
		[MEM_WHY_NO_LOCAL_WRITE] =
			"a fast-register region that is written to needs LOCAL_WRITE, and so does "
			"the region that it is made of",
		[MEM_WHY_NO_LENGTH] = "a fast-register region has at least one byte",
		[MEM_WHY_WINDOW_ACCESS] =
			"a fast-register region has LOCAL_WRITE, remote rights but "
			"FLUSH_PERSISTENT, and ZERO_BASED",
	};
	const char *text = k->m.fast ? fast[k->m.why] : NULL;

	put_key(f, k);
	fprintf(f, ": %s", text != NULL ? text : mem_why_text((enum mem_why)k->m.why));
}

static void
put_rights(FILE *f, const struct known *k)
{
	put_it(f, k);
	fputs(" does not grant ", f);
	put_access(f, k->m.need & (access_t)~k->m.have);
	fputs(": its access is ", f);
	put_access(f, k->m.have);
}

static void
put_qp_rights(FILE *f, const struct known *k)
{
	fputs("the queue pair's qp_access_flags do not grant ", f);
	put_access(f, k->m.need);
	fputs(": they are ", f);
	put_access(f, k->m.have);
}

static void
put_pd(FILE *f, const struct known *k, const char *pd)
{
	put_key(f, k);
	fputs(" is that of ", f);
	put_it(f, k);
	if (k->own || !k->has_region)
		fputs(", which is in another protection domain", f);
	else
		fprintf(f, ", which is in protection domain %s, not in %s", k->region.pd,
			pd[0] != '\0' ? pd : "the queue pair's");
}

/* Where the range lies to its region. */
static void
put_range(FILE *f, const struct known *k)
{
	const struct mem_refusal *m = &k->m;

	fprintf(f, "address 0x%" PRIx64 " plus ", m->va);
	put_bytes(f, m->length);
	fputs(m->why == MEM_WHY_BELOW ? " begins " : " ends ", f);
	put_bytes(f, mem_refusal_excess(m));
	fputs(m->why == MEM_WHY_BELOW ? " below " : " behind the end of ", f);
	put_it(f, k);
	fprintf(f, " (0x%" PRIx64 " plus ", m->region_va);
	put_bytes(f, m->region_length);
	fputc(')', f);
}

static void
put_list_room(FILE *f, const struct known *k)
{
	fputs("the message has at least ", f);
	put_bytes(f, k->m.length);
	fputs(", the receive request has room for ", f);
	put_bytes(f, k->m.region_length);
}

static void
put_reason(FILE *f, struct diagnose *dg, const struct known *k, ns_t when)
{
	const struct mem_refusal *m = &k->m;

	switch ((enum mem_why)m->why) {
	case MEM_WHY_UNKNOWN_KEY:
		put_unknown(f, k, when);
		return;
	case MEM_WHY_REVOKED:
		put_key(f, k);
		fputs(" of ", f);
		put_it(f, k);
		fputs(" was revoked by a SEND with Invalidate, or as it was deregistered", f);
		return;
	case MEM_WHY_UNBOUND:
		put_window(f, k);
		fputs(m->fast ? ", which is not registered, or is with another key by now"
			      : ", which is not bound, or is bound with another key by now",
			f);
		return;
	case MEM_WHY_OTHER_QP:
		put_window(f, k);
		fputs(" of type 2, which another queue pair has bound: it alone may use it", f);
		return;
	case MEM_WHY_OTHER_PD:
		put_pd(f, k, regions_pd_name(dg->objects, m->pd));
		return;
	case MEM_WHY_BELOW:
	case MEM_WHY_BEYOND:
	case MEM_WHY_TOO_LONG:
		put_range(f, k);
		return;
	case MEM_WHY_NO_RIGHT:
		put_rights(f, k);
		return;
	case MEM_WHY_QP_NO_RIGHT:
		put_qp_rights(f, k);
		return;
	case MEM_WHY_NOT_REVOCABLE:
		put_it(f, k);
		fputs(" does not let a peer revoke its key (remote_invalidate)", f);
		return;
	case MEM_WHY_MISALIGNED:
		fprintf(f, "address 0x%" PRIx64 " is not a multiple of 8", m->va);
		return;
	case MEM_WHY_WRAPS:
		fprintf(f, "address 0x%" PRIx64 " plus ", m->va);
		put_bytes(f, m->length);
		fputs(" goes over the end of 64 bits", f);
		return;
	case MEM_WHY_MESSAGE_LIMIT:
		fprintf(f, "%" PRIu64 " bytes are more than 2^31", m->length);
		return;
	case MEM_WHY_LIST_TOO_SHORT:
		put_list_room(f, k);
		return;
	case MEM_WHY_NO_WINDOW:
	case MEM_WHY_BOUND:
	case MEM_WHY_NEW_KEY:
	case MEM_WHY_NO_MW_BIND:
	case MEM_WHY_NO_LOCAL_WRITE:
	case MEM_WHY_NO_LENGTH:
	case MEM_WHY_WINDOW_ACCESS:
	case MEM_WHY_NOT_OF_TYPE_2:
		put_bind(f, k);
		return;
	default:
		fputs(mem_why_text((enum mem_why)m->why), f);
		return;
	}
}

/* ", but mr1 (R_Key 0x1001) has these addresses": what to look at first. */
static void
put_meant(FILE *f, const struct known *k)
{
	if (k->likeness == 0)
		return;
	fputs("; ", f);
	put_region(f, k, &k->meant);
	if (!k->own)
		fprintf(f, " (0x%x)", k->meant.key);
	if ((k->likeness & REGION_HOLDS_RANGE) != 0)
		fputs(" has these addresses", f);
	if ((k->likeness & (REGION_KEY_BYTE | REGION_KEY_DIGIT)) != 0)
		fprintf(f, "%s a key like it",
			(k->likeness & REGION_HOLDS_RANGE) != 0 ? " and" : " has");
}

static json_t *
text_of(struct diagnose *dg, const struct known *k, ns_t when)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	json_t *v;

	if (f == NULL)
		return json_null();
	if ((k->m.by == MEM_BY_SEND || k->m.by == MEM_BY_RECEIVE) &&
		k->m.why != MEM_WHY_LIST_TOO_SHORT && k->m.why != MEM_WHY_LIST_TOO_LONG)
		fprintf(f, "sg_list[%u] of %u: ", k->m.sge, k->m.sges);
	put_reason(f, dg, k, when);
	put_meant(f, k);
	fclose(f);
	v = json_string(text);
	free(text);
	return v;
}

json_t *
why_text(struct diagnose *dg, const struct why_view *v, const struct mem_refusal *m)
{
	struct known k;

	if (m->why == MEM_WHY_NONE)
		return json_null();
	learn(dg, v, m, &k);
	return text_of(dg, &k, v->time_ns);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static json_t *
region_json(const struct known *k, const struct region_view *r)
{
	json_t *o = json_object();

	if (!k->own)
		json_object_set_new(o, "name", json_string(r->name));
	json_object_set_new(o, "addr", conf_json_hex(r->va));
	json_object_set_new(o, "length", conf_json_u64(r->length));
	json_object_set_new(o, "rkey", conf_json_hex(r->key));
	json_object_set_new(o, "access", access_json(r->access));
	if (!k->own)
		json_object_set_new(o, "pd", json_string(r->pd));
	json_object_set_new(o, "registered", json_boolean(r->gone_ns == 0));
	return o;
}

static json_t *
meant_json(const struct known *k)
{
	json_t *o, *because;

	if (k->likeness == 0)
		return json_null();
	o = region_json(k, &k->meant);
	because = json_array();
	if ((k->likeness & REGION_HOLDS_RANGE) != 0)
		json_array_append_new(because, json_string("addresses"));
	if ((k->likeness & (REGION_KEY_BYTE | REGION_KEY_DIGIT)) != 0)
		json_array_append_new(because, json_string("key"));
	json_object_set_new(o, "because", because);
	return o;
}

json_t *
why_memory(struct diagnose *dg, const struct why_view *v, const struct mem_refusal *m)
{
	static const char *const by[] = { [MEM_BY_PEER] = "packet",
		[MEM_BY_SEND] = "send",
		[MEM_BY_RECEIVE] = "receive",
		[MEM_BY_BIND] = "bind" };
	const bool list = m->by == MEM_BY_SEND || m->by == MEM_BY_RECEIVE;
	/* A key to be revoked has none. */
	const bool range = list || m->need != 0 || m->length != 0;
	struct known k;
	json_t *o;

	if (m->why == MEM_WHY_NONE)
		return json_null();
	learn(dg, v, m, &k);
	o = json_object();
	json_object_set_new(o, "why", json_string(mem_why_name((enum mem_why)k.m.why)));
	json_object_set_new(o, "text", text_of(dg, &k, v->time_ns));
	json_object_set_new(o, "by", json_string(m->by < ARRAY_LEN(by) ? by[m->by] : "?"));
	json_object_set_new(o, list ? "addr" : "va", range ? conf_json_hex(m->va) : json_null());
	json_object_set_new(o, "length", range ? conf_json_u64(m->length) : json_null());
	json_object_set_new(o, list ? "lkey" : "rkey", conf_json_hex(m->key));
	json_object_set_new(o, "sge", list ? json_integer(m->sge) : json_null());
	json_object_set_new(o, "sges", list ? json_integer(m->sges) : json_null());
	json_object_set_new(o, "needs", access_json(m->need));
	json_object_set_new(o, "excess", conf_json_u64(mem_refusal_excess(&k.m)));
	if (!k.own)
		json_object_set_new(o, "pd", json_string(regions_pd_name(dg->objects, m->pd)));
	json_object_set_new(o, "region", k.has_region ? region_json(&k, &k.region) : json_null());
	json_object_set_new(o, "meant", meant_json(&k));
	return o;
}

const char *
why_wr_opcode(uint8_t opcode)
{
	return conf_name_of(conf_names_wr_opcode, opcode);
}

/* Where a datagram was to go; null: its address handle is gone. */
static void
set_destination(json_t *o, const struct qp_failure *f)
{
	char text[INET6_ADDRSTRLEN];

	if (!f->datagram)
		return;
	json_object_set_new(o, "dest_ip",
		f->dest_family != 0 && inet_ntop(f->dest_family == 6 ? AF_INET6 : AF_INET,
					       f->dest_ip, text, sizeof(text)) != NULL
			? json_string(text)
			: json_null());
	json_object_set_new(o, "remote_qpn", json_integer(f->remote_qpn));
}

json_t *
why_request(const struct qp_failure *f)
{
	const bool send = f->work == QP_FAILED_SEND;
	const char *opcode = send ? why_wr_opcode(f->opcode) : NULL;
	json_t *o;

	if (f->work == QP_FAILED_NONE)
		return json_null();
	o = json_object();
	json_object_set_new(o, "queue", json_string(send ? "send" : "receive"));
	json_object_set_new(o, "wr_id", f->fed ? json_null() : conf_json_u64(f->wr_id));
	json_object_set_new(o, "opcode",
		json_string(opcode != NULL ? opcode
			    : send         ? "?"
					   : "RECV"));
	json_object_set_new(o, "length", json_integer(f->length));
	if (f->remote_addr != 0 || f->rkey != 0) {
		json_object_set_new(o, "remote_addr", conf_json_hex(f->remote_addr));
		json_object_set_new(o, "rkey", conf_json_hex(f->rkey));
	}
	set_destination(o, f);
	return o;
}
