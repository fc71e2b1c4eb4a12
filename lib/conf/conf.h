/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_H
#define CONF_H
/**
 * @file conf.h  The configuration as plain structs: validated, with its defaults filled in.
 *
 * Owner:   control lcore (or main before the lcores start). Read-only after conf_load_*.
 * Memory:  conf_load_* allocates one struct conf with its arrays; conf_free gives all of it back.
 *          The object structs (conf_qp, conf_mr, ...) hold no pointers: copy them freely.
 * Depends: base, impair, route. No JSON type is visible here: see conf_json.h for RPC's.
 * Spec:    QP-04 (ranges), RX-LNK-02 (path MTU against port MTU), TMR-03 (timeout 0).
 *
 * Every object has a `given` mask: a bit is set when the key stood in the JSON with a value other
 * than null. Values that were left out hold their default (or zero when there is none).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "conf_limits.h"
#include "conf_prio.h"
#include "impair_conf.h"
#include "route.h"
#include "verbs.h"

#define CONF_NAME_MAX   64 /* bytes with the final zero; every name of an object */
#define CONF_PATH_MAX   256
#define CONF_SOCKET_MAX 108 /* sun_path */

/* Limits of this device: what the decoder lets through. */
#define CONF_CM_LISTENERS   256
#define CONF_MAX_LCORE      127
#define CONF_MAX_WORKERS    64
#define CONF_MAX_PORTS      32
#define CONF_MAX_NEIGHBORS  4096       /* of one port */
#define CONF_MAX_ROUTES     1000       /* of one port */
#define CONF_MAX_OBJECTS    65536      /* entries of each of pds, mrs, cqs, srqs, qps */
#define CONF_MAX_QPS        (1u << 20) /* QPs in all, every `count` counted */
#define CONF_MAX_RD_ATOMIC  16
#define CONF_MAX_WR         65536 /* entries of a queue */
#define CONF_MAX_CQE        65536
#define CONF_MAX_SGE        16
#define CONF_MAX_INLINE     256        /* bytes */
#define CONF_MAX_CLIENTS    112        /* connections of clients: some are left for operators */
#define CONF_SRQ_PLACES     4096u      /* XRC SRQs by the low bits of their numbers */
#define CONF_MAX_MESSAGE    (1u << 30) /* bytes of a feed's message */
#define CONF_MTU_MIN        256        /* bytes of an IP datagram */
#define CONF_MTU_MAX        16000
#define CONF_QPN_MIN        2u
#define CONF_QPN_MAX        0xfffffeu
#define CONF_DEFAULT_SOCKET "/run/rocelane.sock"

/* ---- enumerators ------------------------------------------------------------------------ */

enum conf_idle { CONF_IDLE_POLL, CONF_IDLE_PAUSE, CONF_IDLE_YIELD, CONF_IDLE_SLEEP };
enum conf_profile { CONF_PROFILE_IBA, CONF_PROFILE_ERNIC };
enum conf_fill { CONF_FILL_ZERO, CONF_FILL_PATTERN };

/* ---- knobs ------------------------------------------------------------------------------ */

#define KNOB_PSN_WINDOW 0x7fffff /* 2^23-1 */

enum { KNOB_off, KNOB_on };
enum { /* KNOB_INDEX_x: which row of knobs.def; KNOB_x_value: its values, the first one is 0 */
#define KNOB_ROW(group, name)                                        KNOB_INDEX_##group##_##name
#define KNOB_SWITCH(group, name, iba, ernic, text)                   KNOB_ROW(group, name),
#define KNOB_TWO(group, name, v0, v1, iba, ernic, text)              KNOB_ROW(group, name),
#define KNOB_THREE(group, name, v0, v1, v2, iba, ernic, text)        KNOB_ROW(group, name),
#define KNOB_FIVE(group, name, v0, v1, v2, v3, v4, iba, ernic, text) KNOB_ROW(group, name),
#define KNOB_NUMBER(group, name, least, most, iba, ernic, text)      KNOB_ROW(group, name),
#include "tables/knobs.def"
#undef KNOB_SWITCH
#undef KNOB_TWO
#undef KNOB_THREE
#undef KNOB_FIVE
#undef KNOB_NUMBER
#undef KNOB_ROW
	KNOB_MAX
};
_Static_assert(KNOB_MAX <= 64, "conf_knobs.given has a bit for each");
#define KNOB_GIVEN(member) BIT64(KNOB_INDEX_##member)

#define KNOB_VALUE(group, name, value) KNOB_##group##_##name##_##value
#define KNOB_SWITCH(group, name, iba, ernic, text)
#define KNOB_TWO(group, name, v0, v1, iba, ernic, text) \
	enum { KNOB_VALUE(group, name, v0), KNOB_VALUE(group, name, v1) };
#define KNOB_THREE(g, name, v0, v1, v2, iba, ernic, text) \
	enum { KNOB_VALUE(g, name, v0), KNOB_VALUE(g, name, v1), KNOB_VALUE(g, name, v2) };
#define KNOB_FIVE(g, name, v0, v1, v2, v3, v4, iba, ernic, text) \
	enum {                                                   \
		KNOB_VALUE(g, name, v0),                         \
		KNOB_VALUE(g, name, v1),                         \
		KNOB_VALUE(g, name, v2),                         \
		KNOB_VALUE(g, name, v3),                         \
		KNOB_VALUE(g, name, v4)                          \
	};
#define KNOB_NUMBER(group, name, least, most, iba, ernic, text)
#include "tables/knobs.def"
#undef KNOB_SWITCH
#undef KNOB_TWO
#undef KNOB_THREE
#undef KNOB_FIVE
#undef KNOB_NUMBER

/** A member for each knob, of its name with '_' for '.'. */
struct conf_knobs {
	uint64_t given;   /* KNOB_GIVEN(member): set by name, not by the profile */
	uint32_t profile; /* enum conf_profile; also the place of the RNR check */
#define KNOB_MEMBER(group, name)                                     uint32_t group##_##name
#define KNOB_SWITCH(group, name, iba, ernic, text)                   KNOB_MEMBER(group, name);
#define KNOB_TWO(group, name, v0, v1, iba, ernic, text)              KNOB_MEMBER(group, name);
#define KNOB_THREE(group, name, v0, v1, v2, iba, ernic, text)        KNOB_MEMBER(group, name);
#define KNOB_FIVE(group, name, v0, v1, v2, v3, v4, iba, ernic, text) KNOB_MEMBER(group, name);
#define KNOB_NUMBER(group, name, least, most, iba, ernic, text)      KNOB_MEMBER(group, name);
#include "tables/knobs.def"
#undef KNOB_SWITCH
#undef KNOB_TWO
#undef KNOB_THREE
#undef KNOB_FIVE
#undef KNOB_NUMBER
#undef KNOB_MEMBER
};

/* ---- addresses -------------------------------------------------------------------------- */

/** An IP address in network order; family 0 means none. */
struct conf_ip {
	uint8_t family; /* 0, 4 or 6 */
	uint8_t addr[16];
};

enum { CONF_AH_DEST_MAC = 1 << 0, CONF_AH_VLAN = 1 << 1 };

struct conf_ah {
	uint64_t given; /* CONF_AH_*: without DEST_MAC the neighbour is resolved */
	struct conf_ip dest_ip;
	uint8_t dest_mac[6];
	uint8_t traffic_class; /* default 0 */
	uint8_t hop_limit;     /* default 64 */
	uint16_t vlan;         /* 1..4094, valid with CONF_AH_VLAN */
	uint8_t vlan_priority; /* 0..7, default 0 */
	uint32_t flow_label;   /* 20 bits; 0: the UDP source port is by the QP (WIRE-15) */
};

/* ---- objects ---------------------------------------------------------------------------- */

#include "conf_srq.h"

struct conf_pd {
	char name[CONF_NAME_MAX];
};

enum { CONF_MR_ADDR = 1 << 0, CONF_MR_RKEY = 1 << 1 };

struct conf_mr {
	uint64_t given; /* CONF_MR_*: what is left out the dataplane picks */
	char name[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	uint64_t length; /* bytes */
	uint64_t addr;   /* virtual address of a RETH */
	uint32_t rkey;
	uint32_t access; /* ACCESS_*, default none */
	uint32_t fill;   /* enum conf_fill */
	uint64_t fill_seed;
	bool remote_invalidate;
};

struct conf_cq {
	char name[CONF_NAME_MAX];
	uint32_t cqe; /* entries, default 1024 */
};

struct conf_cap {
	uint32_t max_send_wr;     /* default 128 */
	uint32_t max_recv_wr;     /* default 128 */
	uint32_t max_send_sge;    /* default 4 */
	uint32_t max_recv_sge;    /* default 4 */
	uint32_t max_inline_data; /* bytes, default CONF_MAX_INLINE */
};

struct conf_recv_feed {
	uint32_t buffers; /* default 256 */
	uint32_t size;    /* bytes of each, default 4096 */
};

enum {
	CONF_FEED_RKEY = 1 << 0,
	CONF_FEED_REMOTE_ADDR = 1 << 1,
	CONF_FEED_SIZE = 1 << 2,
	CONF_FEED_SRQN = 1 << 3
};

struct conf_send_feed {
	uint64_t given;  /* CONF_FEED_* */
	uint32_t opcode; /* enum wr_opcode */
	uint32_t size;   /* bytes of a message, default 64 (8 for an ATOMIC) */
	uint32_t depth;  /* requests in flight, default 64 */
	uint32_t rkey;
	uint32_t xrc_remote_srqn; /* XRC_SEND: number of the peer's SRQ */
	uint64_t remote_addr;
	uint64_t stride; /* bytes from one QP of the template to the next, default 0 */
	uint64_t count;  /* requests in all, 0: no end */
};

/**
 * conf_qp.given: the low half has verbs' QP_ATTR_*, so that it is the mask of a modify as it stands
 * (key "pkey" is PKEY_INDEX, "ah_attr" AV, "alt_ah_attr" ALT_PATH, "max_rd_atomic"
 * MAX_QP_RD_ATOMIC). The high half tells of keys that are no attribute of a modify.
 */
#define CONF_QP_ATTR_MASK   (BIT64(32) - 1)
#define CONF_QP_QP_NUM      BIT64(32)
#define CONF_QP_SRQ         BIT64(33)
#define CONF_QP_WORKER      BIT64(34)
#define CONF_QP_RECV_FEED   BIT64(35)
#define CONF_QP_SEND_FEED   BIT64(36)
#define CONF_QP_PROFILE     BIT64(37)
#define CONF_QP_KNOBS       BIT64(38)
#define CONF_QP_SEND_CQ     BIT64(39)
#define CONF_QP_RECV_CQ     BIT64(40)
#define CONF_QP_XRCD        BIT64(41)
#define CONF_QP_RQ_LIMIT    BIT64(42)
#define CONF_QP_ALT_PORT    BIT64(48) /* these go with QP_ATTR_ALT_PATH */
#define CONF_QP_ALT_TIMEOUT BIT64(49)
#define CONF_QP_ALT_PKEY    BIT64(50)

struct conf_qp {
	uint64_t given;  /* QP_ATTR_*, CONF_QP_* */
	uint32_t qp_num; /* of the first one when count > 1; 0 when not given */
	uint32_t dest_qp_num;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t qp_type;         /* enum qp_type */
	uint32_t qp_state;        /* enum qp_state, default RESET */
	uint32_t cur_qp_state;    /* modify only */
	uint32_t path_mtu;        /* bytes: 256, 512, 1024 (default), 2048, 4096 */
	uint32_t qp_access_flags; /* ACCESS_* */
	uint16_t pkey;
	uint8_t timeout; /* exponent; 0: no timer */
	uint8_t retry_cnt;
	uint8_t rnr_retry;     /* 7: no end */
	uint8_t min_rnr_timer; /* code; 0: 655.36 ms */
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool en_sqd_async_notify; /* modify only */
	bool sq_sig_all;
	char port[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	char send_cq[CONF_NAME_MAX];
	char recv_cq[CONF_NAME_MAX];
	char srq[CONF_NAME_MAX];  /* "" when the QP has its own RQ */
	char xrcd[CONF_NAME_MAX]; /* of an XRC_RECV QP */
	struct conf_ah ah_attr;
	struct conf_ah alt_ah_attr;   /* valid with QP_ATTR_ALT_PATH */
	char alt_port[CONF_NAME_MAX]; /* without CONF_QP_ALT_PORT: the same as `port` */
	uint8_t alt_timeout;          /* without CONF_QP_ALT_TIMEOUT: the same as `timeout` */
	uint16_t alt_pkey;            /* without CONF_QP_ALT_PKEY: the same as `pkey` */
	uint32_t path_mig_state;      /* enum mig_state, default MIGRATED */
	struct conf_cap cap;
	uint32_t rq_limit; /* default 0: no event */
	uint32_t worker; /* index into lcores.workers; without CONF_QP_WORKER the dataplane picks */
	uint32_t count;
	struct conf_recv_feed recv_feed; /* valid with CONF_QP_RECV_FEED */
	struct conf_send_feed send_feed; /* valid with CONF_QP_SEND_FEED */
	uint32_t profile;                /* valid with CONF_QP_PROFILE */
	struct conf_knobs knobs; /* those with their bit in knobs.given; see conf_qp_knobs */
};

/* ---- connections ------------------------------------------------------------------------ */

enum conf_cm_ps { CONF_PS_TCP = 0x0106, CONF_PS_UDP = 0x0111, CONF_PS_IB = 0x013f };
enum conf_cm_accept { CONF_ACCEPT_ALWAYS, CONF_ACCEPT_ASK };

/** A service that peers can connect to by the connection manager. */
struct conf_cm_listen {
	char name[CONF_NAME_MAX];
	char port[CONF_NAME_MAX];
	uint32_t ps; /* enum conf_cm_ps, default TCP */
	uint16_t service_port;
	uint32_t accept;   /* enum conf_cm_accept, default always */
	uint32_t backlog;  /* connections that are not finished, default 128 */
	struct conf_qp qp; /* what each connection gets; without number, state, peer, PSNs */
};

struct conf_cm {
	uint32_t connections; /* at a time, default 16384 */
	uint32_t half_open;   /* begun by peers and not finished, default 1024 */
	uint32_t reqs;        /* a second from one source, default 2000 */
	struct conf_cm_listen *listen;
	uint32_t n_listen;
};

enum { CONF_NEIGHBOR_IPV4 = 1 << 0, CONF_NEIGHBOR_IPV6 = 1 << 1 };

struct conf_neighbor {
	uint64_t given; /* CONF_NEIGHBOR_*: exactly one */
	struct conf_ip ip;
	uint8_t mac[6];
};

enum {
	CONF_PORT_MAC = 1 << 0,
	CONF_PORT_IPV4 = 1 << 1,
	CONF_PORT_IPV6 = 1 << 2,
	CONF_PORT_IMPAIR = 1 << 3,
	CONF_PORT_GATEWAY = 1 << 4,
	CONF_PORT_GATEWAY6 = 1 << 5,
	CONF_PORT_BOTTLENECK = 1 << 6,
	CONF_PORT_PRIORITIES = 1 << 7,
};

struct conf_route {
	struct route_prefix to;
	struct conf_ip via;
};

/** What applications may put on a port's wire beside the port's own. */
struct conf_allow {
	uint32_t *vlans; /* 1..4094; default none: untagged */
	uint32_t n_vlans;
	uint32_t *priorities; /* 0..7; 0 is always allowed */
	uint32_t n_priorities;
	uint32_t *traffic_classes; /* 0..252, multiples of 4: without ECN; 0 is always allowed */
	uint32_t n_traffic_classes;
	bool dest_mac; /* any; default: what neighbours answer */
};

struct conf_port {
	uint64_t given; /* CONF_PORT_* */
	char name[CONF_NAME_MAX];
	char device[CONF_NAME_MAX]; /* name of the ethdev */
	uint8_t mac[6];             /* without CONF_PORT_MAC: the device's own */
	uint8_t ipv4[4];
	uint8_t ipv6[16];
	uint8_t prefix;     /* of ipv4, default 24 */
	uint8_t prefix6;    /* of ipv6, default 64 */
	uint16_t mtu;       /* bytes of an IP datagram, default 1500 */
	uint16_t rx_queues; /* one for each of so many workers, default 1 */
	struct conf_neighbor *neighbors;
	uint32_t n_neighbors;
	uint8_t gateway[4];   /* valid with CONF_PORT_GATEWAY: the route to 0.0.0.0/0 */
	uint8_t gateway6[16]; /* valid with CONF_PORT_GATEWAY6: the route to ::/0 */
	struct conf_route *routes;
	uint32_t n_routes;
	struct conf_allow allow;
	struct impair_conf impair; /* valid with CONF_PORT_IMPAIR: of what the port receives */
	struct bottleneck_conf bottleneck; /* valid with CONF_PORT_BOTTLENECK: likewise */
	struct conf_prio priorities;       /* valid with CONF_PORT_PRIORITIES */
};

struct conf_lcores {
	uint32_t control;  /* lcore id, default 0 */
	uint32_t *workers; /* lcore ids, default { 1 } */
	uint32_t n_workers;
	uint32_t idle; /* enum conf_idle */
};

enum { CONF_CONTROL_CLIENT_SOCKET = 1 << 0 };

/** Which memfds of applications become regions. */
enum conf_client_memory {
	CONF_CLIENT_MEMORY_SEALED, /* those that nobody can take pages out of */
	CONF_CLIENT_MEMORY_ANY,
};

struct conf_control {
	uint64_t given; /* CONF_CONTROL_* */
	char socket[CONF_SOCKET_MAX];
	uint32_t mode;                       /* permission bits, default 0600 */
	char client_socket[CONF_SOCKET_MAX]; /* valid with CONF_CONTROL_CLIENT_SOCKET */
	uint32_t client_mode;                /* default 0600 */
	bool sandbox;                        /* default true */
	struct conf_client_limits client_limits;
	enum conf_client_memory client_memory;
};

struct conf_error_buffer {
	uint32_t entries;           /* of each worker, default 4096 */
	char pcapng[CONF_PATH_MAX]; /* "": no file */
	uint64_t pcapng_size;       /* bytes of the file before it is begun anew, default 64 MiB */
	uint32_t pcapng_age;        /* seconds likewise, default a day */
	bool present;               /* the record is on (by this key or by knob rx.errbuf) */
	uint64_t given;             /* internal: CONF_EB_PCAPNG */
};

enum { CONF_EB_PCAPNG = 1 << 0 };
enum { CONF_ROOT_ERROR_BUFFER = 1 << 0 };

struct conf {
	uint64_t given; /* CONF_ROOT_* */
	uint32_t version;
	char **eal; /* n_eal arguments, without a program name */
	uint32_t n_eal;
	struct conf_lcores lcores;
	struct conf_control control;
	uint32_t profile;        /* enum conf_profile */
	struct conf_knobs knobs; /* every field in effect: defaults, profile, then the given ones */
	struct conf_error_buffer error_buffer;
	struct conf_port *ports;
	uint32_t n_ports;
	struct conf_pd *pds;
	uint32_t n_pds;
	struct conf_mr *mrs;
	uint32_t n_mrs;
	struct conf_cq *cqs;
	uint32_t n_cqs;
	struct conf_xrcd *xrcds;
	uint32_t n_xrcds;
	struct conf_srq *srqs;
	uint32_t n_srqs;
	struct conf_qp *qps; /* entries of the file; each stands for `count` QPs */
	uint32_t n_qps;
	struct conf_mcast *mcasts;
	uint32_t n_mcasts;
	struct conf_mw *mws;
	uint32_t n_mws;
	struct conf_cm cm;
};

/* ---- faults ----------------------------------------------------------------------------- */

struct conf_error {
	char *pointer; /* RFC 6901; "" is the whole document */
	char *message; /* what is wrong and what is allowed */
	uint32_t line; /* from 1; 0 when there is no text */
	bool is_warning;
};

#define CONF_POINTER_MAX 512
#define CONF_ERRORS_MAX  256 /* later faults are counted only */

struct conf_errors {
	char file[CONF_PATH_MAX]; /* for printing; "" for RPC parameters */
	struct conf_error *v;
	uint32_t n;
	uint32_t room;
	uint32_t n_errors; /* counts go on after v is full */
	uint32_t n_warnings;
	char at[CONF_POINTER_MAX]; /* where the decoder is; internal */
	uint32_t at_len;
};

/** An empty list; a zeroed struct is one too. */
void conf_errors_init(struct conf_errors *err);
/** Give the list's memory back; it is empty then. */
void conf_errors_free(struct conf_errors *err);
/**
 * "FILE:LINE: POINTER: message" of entry i ("warning: " before the message of one), cut at `room`.
 * Without a file name: "POINTER: message". @return length of the whole line as snprintf.
 */
int conf_error_print(const struct conf_errors *err, uint32_t i, char *buf, size_t room);
/** Index of the first entry that is no warning, or -1. */
int conf_errors_first(const struct conf_errors *err);

/* ---- loading ---------------------------------------------------------------------------- */

/**
 * Read and check a file. Every fault is in `err` when it returns, not only the first; warnings may
 * be there on success. @return 0; -EINVAL: see err; -ENOMEM; or open's and read's -errno (with an
 * entry in err). *out is NULL on failure.
 */
int conf_load_file(const char *path, struct conf **out, struct conf_errors *err);
/** The same for a text of `len` bytes; err->file stays what the caller made it. */
int conf_load_text(const char *text, size_t len, struct conf **out, struct conf_errors *err);
/** Free what conf_load_file() or conf_load_text() made; NULL is allowed. */
void conf_free(struct conf *c);

/* ---- questions about a configuration ---------------------------------------------------- */

/** The standard's defaults of every knob under a profile; given is 0. */
void conf_knobs_default(struct conf_knobs *k, enum conf_profile profile);
/** Make a struct with some given knobs whole: defaults and profile under what was given. */
void conf_knobs_apply(struct conf_knobs *k, enum conf_profile profile);
/**
 * Knobs in effect for one QP: the process's, then the group of the QP's own profile (if it has
 * one), then the QP's own knobs. `global` is conf.knobs.
 */
void conf_qp_knobs(
	const struct conf_knobs *global, const struct conf_qp *qp, struct conf_knobs *out);
/** The largest path MTU whose IPv6 datagrams fit a port of this MTU; at least 256. */
uint32_t conf_path_mtu(uint32_t mtu);
/** Bytes of a path MTU's longest IP datagram: a port's `mtu` must not be less (RX-LNK-02). */
uint32_t conf_datagram_len(uint32_t path_mtu, bool ipv6);
/** The same as a frame, from the Ethernet header to the ICRC, without the FCS. */
uint32_t conf_frame_len(uint32_t path_mtu, bool ipv6, bool vlan);
/**
 * The framesz of an af_packet device that is taken for this one: the next that divides blocksz, or
 * its ring would stop behind the first block; blocksz where an mbuf holds none that does. Both are
 * above 0, framesz at most blocksz.
 */
unsigned long conf_af_packet_framesz(unsigned long framesz, unsigned long blocksz);
/** What is wrong with the i-th of EAL's arguments, for people. @return false: nothing. */
bool conf_eal_fault(char *const *eal, uint32_t i, char *buf, size_t room);
/** Entry with this name, or NULL. Cost: linear. */
const struct conf_port *conf_port_find(const struct conf *c, const char *name);

#endif
