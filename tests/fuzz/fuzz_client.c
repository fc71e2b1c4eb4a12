/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of the control socket: methods, descriptors of all kinds, its shared areas, and frames
 * of the link meanwhile. The workers are mailboxes only (that of tests/unit/control). Each line is
 * answered or the client is disconnected, and in the end nothing is left.
 *
 * Input: lines. "#KINDS" are descriptors that go with the next request (descriptor()), "!HEX" is a
 * frame for the control lcore, "~" and two numbers write to the areas that the client got, "^"
 * punches a hole into its last memfd, "%" connects anew, "@" lets time pass. All others are
 * requests, in which $0 to $9 are the numbers of the queue pairs that were made, drawn by lot.
 * An input that begins with "&" has a dataplane whose control.client_memory is "any".
 *
 * What the control lcore sends to the port's own address comes back to it: the client can be both
 * ends of a connection.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "fuzz_control.h"

enum {
	LINES_MAX = 48,
	FDS_MAX = 10,
	AREAS_MAX = 8,
	FRAME_MAX = 1514,
	WAIT_S = 60, /* for an answer: beside other programs that takes long */
	NUMBERS_MAX = 10,
	REQUEST_MAX = 4096,
};

#define END "{\"jsonrpc\":\"2.0\",\"id\":\"fuzz-end\",\"method\":\"client_ports\"}\n"
static struct {
	int fd;
	bool gone;
	int next[FDS_MAX]; /* with the next request */
	uint32_t next_n;
	int last;                     /* its newest memfd */
	uint32_t number[NUMBERS_MAX]; /* of its queue pairs, oldest first */
	uint32_t numbers_n;
	struct {
		uint8_t *base;
		size_t len;
	} area[AREAS_MAX];
	uint32_t areas_n;
	char dir[32];
	char path[64];
} peer = { .fd = -1, .last = -1 };

/* ---- descriptors ----------------------------------------------------------------------------- */

static int
memfd(off_t bytes, int seals, bool filled)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	FUZZ_CHECK(fd >= 0 && ftruncate(fd, bytes) == 0);
	/* A page that nobody has written to is a hole, and a memfd with one is refused. */
	for (off_t at = 0; filled && at < bytes; at += 4096)
		FUZZ_CHECK(pwrite(fd, "", 1, at) == 1);
	FUZZ_CHECK(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
	if (peer.last >= 0)
		close(peer.last);
	peer.last = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}

/** One end; the other one is closed, or stays behind with bytes that nobody reads. */
static int
socket_end(bool filled)
{
	const struct linger forever = { .l_onoff = 1, .l_linger = 1 };
	char bytes[256] = { 0 };
	int fds[2];

	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	if (filled && write(fds[0], bytes, sizeof(bytes)) > 0)
		setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &forever, sizeof(forever));
	close(fds[1]);
	return fds[0];
}

static int
reopened(void)
{
	char path[64];
	int fd = memfd(4096, F_SEAL_SHRINK, true), again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return again;
}

static int
descriptor(char kind)
{
	int fds[2];

	switch (kind) {
	case 's':
		return memfd(4096, F_SEAL_SHRINK, true);
	case 'b':
		return memfd(65536, F_SEAL_SHRINK | F_SEAL_GROW, true);
	case 'a':
		return memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL, true);
	case 'e':
		return memfd(0, F_SEAL_SHRINK, false);
	case 'u':
	case 'h':
		return memfd(65536, 0, kind == 'u');
	case 'r':
		return reopened();
	case 'p':
		FUZZ_CHECK(pipe2(fds, O_CLOEXEC) == 0);
		close(fds[1]);
		return fds[0];
	case 'k':
	case 't':
		return socket_end(kind == 't');
	case 'n':
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 'd':
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 'x':
		return peer.fd >= 0 ? fcntl(peer.fd, F_DUPFD_CLOEXEC, 0) : -1;
	default:
		return -1;
	}
}

static void
descriptors(const char *kinds, size_t n)
{
	for (size_t i = 0; i < n && peer.next_n < FDS_MAX; i++) {
		int fd = descriptor(kinds[i]);

		if (fd >= 0)
			peer.next[peer.next_n++] = fd;
	}
}

static void
forget_next(void)
{
	while (peer.next_n != 0)
		close(peer.next[--peer.next_n]);
}

/* ---- the connection -------------------------------------------------------------------------- */

/** The dataplane's memory for this client: it is written to from here on. */
static void
got_fd(int fd)
{
	struct stat st;
	void *base;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && peer.areas_n < AREAS_MAX) {
		base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base != MAP_FAILED) {
			peer.area[peer.areas_n].base = base;
			peer.area[peer.areas_n++].len = (size_t)st.st_size;
		}
	}
	close(fd);
}

static void
got_numbers(const char *text)
{
	static const char key[] = "\"qp_num\":";
	const char *at = text;

	if (getenv("FUZZ_VERBOSE") != NULL)
		fprintf(stderr, "< %s", text);
	while ((at = strstr(at, key)) != NULL && peer.numbers_n < NUMBERS_MAX) {
		const uint32_t n = (uint32_t)strtoul(at += strlen(key), NULL, 10);

		if (n != 0 && (peer.numbers_n == 0 || peer.number[peer.numbers_n - 1] != n))
			peer.number[peer.numbers_n++] = n;
	}
}

/** What has come. @return true: the answer to the last line is in it, or the connection ended. */
static bool
receive(void)
{
	static char text[1 << 16];
	union {
		uint8_t bytes[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control) };
	const ssize_t n = recvmsg(peer.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n <= 0) {
		peer.gone = n == 0 || (errno != EAGAIN && errno != EINTR);
		return peer.gone;
	}
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h != NULL; h = CMSG_NXTHDR(&msg, h)) {
		int fds[16];
		const size_t bytes = h->cmsg_len - CMSG_LEN(0);

		memcpy(fds, CMSG_DATA(h), bytes);
		for (size_t i = 0; i < bytes / sizeof(int); i++)
			got_fd(fds[i]);
	}
	text[n] = '\0';
	got_numbers(text);
	return memmem(text, (size_t)n, "fuzz-end", 8) != NULL;
}

static void frame_in(const uint8_t *bytes, size_t len);

/** What was sent to the port's own address is received. */
static void
frames_back(void)
{
	static const uint8_t own[4] = { 10, 0, 0, 1 };
	const uint32_t n = fake.frames_n < FAKE_FRAMES ? fake.frames_n : FAKE_FRAMES;
	static struct fake_frame f[FAKE_FRAMES];

	fake.frames_n = 0;
	memcpy(f, fake.frames, n * sizeof(f[0]));
	for (uint32_t i = 0; i < n; i++)
		if (f[i].len > 34 && memcmp(f[i].data + 30, own, sizeof(own)) == 0)
			frame_in(f[i].data, f[i].len);
}

static void
poll_control(void)
{
	fake.now += 1000;
	control_poll(fake.c, fake.now);
	fake.env.pump(NULL);
	frames_back();
}

static void
frame_in(const uint8_t *bytes, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fake.env.ports[0].pool);
	struct mbox_msg msg = { .type = MBOX_PACKET, .pkt = { .m = m, .port = 0 } };

	FUZZ_CHECK(m != NULL);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), bytes, len);
	FUZZ_CHECK(mbox_send_up(&fake.mbox[0], &msg) == 0);
}

static void
answered(void)
{
	const time_t from = time(NULL);

	for (uint32_t i = 0; time(NULL) - from < WAIT_S; i++) {
		poll_control();
		if (receive())
			return;
		if (i > 20)
			usleep(100);
	}
	FUZZ_CHECK(!"each line is answered, or the connection ends");
}

static void
peer_close(void)
{
	if (peer.fd >= 0)
		close(peer.fd);
	peer.fd = -1;
	peer.numbers_n = 0;
	for (; peer.areas_n != 0; peer.areas_n--)
		munmap(peer.area[peer.areas_n - 1].base, peer.area[peer.areas_n - 1].len);
	for (int i = 0; i < 4; i++)
		poll_control();
}

static void
peer_connect(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memcpy(a.sun_path, peer.path, strlen(peer.path) + 1);
	peer.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(peer.fd >= 0);
	peer.gone = connect(peer.fd, (struct sockaddr *)&a, sizeof(a)) != 0;
	poll_control();
}

/** The line with numbers where it has $0 to $9. @return its length. */
static size_t
with_numbers(const char *text, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 16 < REQUEST_MAX; i++) {
		const uint32_t which = i + 1 < len ? (uint32_t)(text[i + 1] - '0') : UINT32_MAX;

		if (text[i] == '$' && which < peer.numbers_n) {
			n += (size_t)snprintf(out + n, 16, "%u", peer.number[which]);
			i++;
		} else {
			out[n++] = text[i];
		}
	}
	return n;
}

static void
request(const char *line_of, size_t line_len)
{
	static char text[REQUEST_MAX];
	const size_t len = with_numbers(line_of, line_len, text);
	union {
		uint8_t bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov[] = { { text, len }, { (void *)(uintptr_t) "\n" END, strlen("\n" END) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (!peer.gone && peer.next_n != 0) {
		const size_t bytes = peer.next_n * sizeof(int);
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(bytes);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(h), peer.next, bytes);
	}
	if (!peer.gone && sendmsg(peer.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		answered();
	forget_next();
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int
nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void
frame(const char *hex, size_t n)
{
	uint8_t bytes[FRAME_MAX];
	size_t len = 0;

	for (size_t i = 0; i + 1 < n && len < sizeof(bytes); i += 2)
		if (nibble(hex[i]) >= 0 && nibble(hex[i + 1]) >= 0)
			bytes[len++] = (uint8_t)(nibble(hex[i]) << 4 | nibble(hex[i + 1]));
	frame_in(bytes, len);
	poll_control();
}

static void
scribble(const char *text, size_t len)
{
	char copy[64] = { 0 }, *end;
	uint64_t at, value;

	memcpy(copy, text, len < sizeof(copy) ? len : sizeof(copy) - 1);
	at = strtoull(copy, &end, 10);
	value = strtoull(end, NULL, 10);
	for (uint32_t i = 0; i < peer.areas_n; i++)
		if (peer.area[i].len >= sizeof(value))
			memcpy(peer.area[i].base + at % (peer.area[i].len - sizeof(value) + 1),
				&value, sizeof(value));
	poll_control();
}

static void
line(const char *text, size_t len)
{
	switch (len != 0 ? text[0] : '\0') {
	case '#':
		descriptors(text + 1, len - 1);
		break;
	case '!':
		frame(text + 1, len - 1);
		break;
	case '~':
		scribble(text + 1, len - 1);
		break;
	case '^':
		if (peer.last >= 0 &&
			fallocate(peer.last, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) !=
				0)
			poll_control(); /* sealed */
		break;
	case '@':
		for (uint32_t i = 0; i < 20; i++) {
			fake.now += 20 * TIME_NS_PER_MS;
			poll_control();
		}
		break;
	case '&': /* start() has it */
		break;
	case '%':
		peer_close();
		peer_connect();
		break;
	default:
		request(text, len);
		break;
	}
}

static void
start(const char *memory)
{
	char conf[512];

	snprintf(peer.dir, sizeof(peer.dir), "/tmp/rlfuzzXXXXXX");
	FUZZ_CHECK(mkdtemp(peer.dir) != NULL);
	snprintf(peer.path, sizeof(peer.path), "%s/s", peer.dir);
	snprintf(conf, sizeof(conf),
		"{\"version\":1,\"control\":{\"socket\":\"%s/op\",\"client_socket\":\"%s\","
		"\"client_memory\":\"%s\"},"
		"\"lcores\":{\"workers\":[1,2]},\"ports\":[{\"name\":\"p0\",\"device\":\"n0\","
		"\"mac\":\"02:00:00:00:00:01\",\"ipv4\":\"10.0.0.1\",\"ipv6\":\"fd00::1\"}],"
		"\"pds\":[\"pd0\"]}",
		peer.dir, peer.path, memory);
	fake_start_env(conf, 0, false);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;

	LLVMFuzzerInitialize(NULL, NULL);
	start(size != 0 && data[0] == '&' ? "any" : "sealed");
	peer_connect();
	for (uint32_t n = 0; at != end && n < LINES_MAX; n++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (stop == NULL)
			stop = end;
		line(at, (size_t)(stop - at));
		at = stop != end ? stop + 1 : end;
	}
	peer_close();
	forget_next();
	if (peer.last >= 0)
		close(peer.last);
	peer.last = -1;
	fake_stop();
	rmdir(peer.dir);
	return 0;
}
