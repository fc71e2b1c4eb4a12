/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_json.h"

/* The tables by name, for RPC. */

int
conf_decode_pd(const json_t *obj, struct conf_pd *out, struct conf_errors *err)
{
	return conf_decode(&conf_table_pd, obj, CONF_CREATE, out, err);
}

int
conf_decode_mr(const json_t *obj, struct conf_mr *out, struct conf_errors *err)
{
	return conf_decode(&conf_table_mr, obj, CONF_CREATE, out, err);
}

int
conf_decode_cq(const json_t *obj, struct conf_cq *out, struct conf_errors *err)
{
	return conf_decode(&conf_table_cq, obj, CONF_CREATE, out, err);
}

int
conf_decode_srq(const json_t *obj, struct conf_srq *out, struct conf_errors *err)
{
	return conf_decode(&conf_table_srq, obj, CONF_CREATE, out, err);
}

int
conf_decode_qp(const json_t *obj, struct conf_qp *out, struct conf_errors *err)
{
	return conf_decode(&conf_table_qp, obj, CONF_CREATE, out, err);
}

int
conf_decode_qp_modify(const json_t *obj, struct conf_qp *out, struct conf_errors *err)
{
	return conf_decode(&conf_table_qp, obj, CONF_MODIFY, out, err);
}

json_t *
conf_encode_pd(const struct conf_pd *pd)
{
	return conf_encode(&conf_table_pd, pd);
}

json_t *
conf_encode_mr(const struct conf_mr *mr)
{
	return conf_encode(&conf_table_mr, mr);
}

json_t *
conf_encode_xrcd(const struct conf_xrcd *xrcd)
{
	return conf_encode(&conf_table_xrcd, xrcd);
}

json_t *
conf_encode_cq(const struct conf_cq *cq)
{
	return conf_encode(&conf_table_cq, cq);
}

json_t *
conf_encode_srq(const struct conf_srq *srq)
{
	return conf_encode(&conf_table_srq, srq);
}

json_t *
conf_encode_qp(const struct conf_qp *qp)
{
	return conf_encode(&conf_table_qp, qp);
}

json_t *
conf_encode_port(const struct conf_port *port)
{
	return conf_encode(&conf_table_port, port);
}

json_t *
conf_encode_all(const struct conf *c)
{
	return conf_encode(&conf_table_root, c);
}
