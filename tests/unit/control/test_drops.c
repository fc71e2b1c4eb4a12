/* SPDX-License-Identifier: BSD-3-Clause */
/* error_buffer.pcapng: the file of dropped packets. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_state.h"
#include "log.h"

#define FILE_CONF                                                                       \
	"{\"version\":1,\"lcores\":{\"workers\":[1,2]},"                                \
	"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}]," \
	"\"error_buffer\":{\"entries\":64,\"pcapng\":\"%s\"%s}}"

#define NO_FILE_CONF                                                                    \
	"{\"version\":1,\"lcores\":{\"workers\":[1,2]},"                                \
	"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}]," \
	"\"error_buffer\":{\"entries\":64}}"

/** With a pcapng file of its own, whose name goes into `path`. @return the file, open. */
static int
start_with_file(char path[32], const char *more)
{
	char conf[1024];
	int fd;

	strcpy(path, "/tmp/rlcontrolXXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	snprintf(conf, sizeof(conf), FILE_CONF, path, more);
	fake_start(conf);
	return fd;
}

/* Blocks of a pcapng file, read back by hand. */
static void
RX_ERR_01_pcapng_file(void **state UNUSED)
{
	char path[32];
	static uint32_t words[1024];
	const char *comment;
	uint64_t wall;
	json_t *v;
	size_t n;
	FILE *f;
	int fd = start_with_file(path, "");

	fake_drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	control_poll(fake.c, fake.now);
	v = rpc_ok("rx_errors", NULL); /* the file takes nothing away */
	assert_int_equal(json_array_size(v), 1);
	json_decref(v);
	fake_stop();

	f = fdopen(fd, "r");
	n = fread(words, 4, ARRAY_LEN(words), f);
	fclose(f);
	remove(path);
	assert_int_equal(words[0], 0x0a0d0d0a);
	assert_int_equal(words[2], 0x1a2b3c4d);
	size_t at = words[1] / 4;

	assert_int_equal(words[at], 1);     /* interface */
	assert_int_equal(words[at + 2], 1); /* Ethernet */
	at += words[at + 1] / 4;
	assert_int_equal(words[at], 6); /* packet */
	assert_int_equal(words[at + 1] / 4, n - at);
	assert_int_equal(words[n - 1], words[at + 1]);
	wall = ((uint64_t)words[at + 3] << 32 | words[at + 4]) / TIME_NS_PER_S;
	assert_in_range(wall, (uint64_t)time(NULL) - 1000, (uint64_t)time(NULL) + 1000); /* UTC */
	assert_int_equal(words[at + 5], 3);
	assert_int_equal(words[at + 6], 300);
	assert_memory_equal(&words[at + 7], "\x01\x02\xff", 4);
	comment = (const char *)&words[at + 9];
	assert_int_equal(words[at + 8] & 0xffff, 1);
	assert_int_equal(strncmp(comment, "syndrome 0x40000000: ICRC [RX-SYN-30] (QP 17,", 45), 0);
}

/* Packets of one section, read back by hand; the file is whole blocks. */
static uint32_t
packets_in(const char *path)
{
	static uint32_t words[1 << 17];
	FILE *f = fopen(path, "r");
	uint32_t packets = 0;
	size_t n, at = 0;

	assert_non_null(f);
	n = fread(words, 4, ARRAY_LEN(words), f);
	fclose(f);
	assert_int_equal(words[0], 0x0a0d0d0a);
	while (at < n) {
		packets += words[at] == 6;
		at += words[at + 1] / 4;
	}
	assert_int_equal(at, n);
	return packets;
}

/* RX-ERR-03: a flood fills two files of a limited size; an old file is begun anew, too. */
static void
RX_ERR_03_the_pcapng_file_is_limited(void **state UNUSED)
{
	static const char *const more[] = { ",\"pcapng_size\":65536", ",\"pcapng_age\":60" };

	for (uint32_t how = 0; how < 2; how++) {
		char path[32], old[40];
		struct stat st;

		close(start_with_file(path, more[how]));
		snprintf(old, sizeof(old), "%s.1", path);
		for (uint32_t i = 0; i < (how == 0 ? 3000u : 10u); i++) {
			fake_drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
			fake.now += how == 0 ? 1000 : 9 * TIME_NS_PER_S;
			control_poll(fake.c, fake.now);
			assert_int_equal(stat(path, &st), 0);
			assert_in_range(st.st_size, 0, 65536 + 1024);
			assert_int_equal(st.st_mode & 0777, 0600);
		}
		fake_stop();
		assert_int_equal(stat(old, &st), 0);
		assert_in_range(st.st_size, 100, 65536 + 1024);
		assert_int_equal(st.st_mode & 0777, 0600);
		/* The old one is full, and the new one has what came later. */
		if (how == 0)
			assert_true(packets_in(old) > 200);
		else
			assert_int_equal(packets_in(old) + packets_in(path), 10);
		remove(path);
		remove(old);
	}
}

/* The disk is full: the file ends with a whole block, and the records are there by RPC as ever. */
static void
RX_ERR_03_pcapng_file_on_a_full_disk(void **state UNUSED)
{
	char path[32];
	int fd = start_with_file(path, "");
	struct rlimit was, limit;
	uint32_t end[2], records = 0;
	struct stat at, full;
	off_t pos = 0;
	json_t *v;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(fstat(fd, &at), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur = (rlim_t)at.st_size + 500;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (uint32_t psn = 0; psn < 20; psn++) {
		fake_drop(psn % 2, psn, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
		control_poll(fake.c, fake.now);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(fstat(fd, &full), 0);
	assert_in_range(full.st_size, at.st_size + 100, at.st_size + 500);
	fake_drop(0, 20, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	control_poll(fake.c, fake.now);
	v = rpc_ok("rx_errors", NULL);
	assert_int_equal(json_array_size(v), 21);
	json_decref(v);
	fake_stop();

	while (pread(fd, end, sizeof(end), pos) == sizeof(end)) {
		uint32_t last = 0;

		assert_in_range(end[1], 12, 1000);
		pos += end[1];
		assert_int_equal(pread(fd, &last, sizeof(last), pos - 4), sizeof(last));
		assert_int_equal(last, end[1]);
		records += end[0] == 6;
	}
	assert_int_equal(pos, full.st_size);
	assert_true(records >= 1);
	close(fd);
	remove(path);
}

/* RX-ERR-03: a file with packets of an earlier start is kept, one without any is not worth it. */
static void
RX_ERR_03_an_earlier_file_is_kept(void **state UNUSED)
{
	char path[32], old[40], conf[512];

	close(start_with_file(path, ""));
	snprintf(old, sizeof(old), "%s.1", path);
	snprintf(conf, sizeof(conf), FILE_CONF, path, "");
	fake_drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	control_poll(fake.c, fake.now);
	fake_stop();
	for (int again = 0; again < 2; again++) {
		fake_start(conf);
		fake_stop();
		assert_int_equal(packets_in(old), 1);
		assert_int_equal(packets_in(path), 0);
	}
	remove(path);
	remove(old);
}

/* RX-ERR-03: a file that somebody has moved is not touched again, and there is a new one. */
static void
RX_ERR_03_a_file_that_was_moved(void **state UNUSED)
{
	static const char *const more[] = { "", ",\"pcapng_age\":60" };

	for (uint32_t how = 0; how < 2; how++) {
		char path[32], away[40];
		uint32_t n;

		close(start_with_file(path, more[how]));
		snprintf(away, sizeof(away), "%s.kept", path);
		fake_drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
		control_poll(fake.c, fake.now);
		assert_int_equal(rename(path, away), 0);
		fake_drop(0, 6, FAULT_BIT(FAULT_ICRC), FAULT_ICRC); /* it may go to either */
		control_poll(fake.c, fake.now += 100 * TIME_NS_PER_S);
		n = packets_in(away);
		for (int i = 0; i < 3; i++) {
			fake_drop(0, 7, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
			control_poll(fake.c, fake.now);
		}
		fake_stop();
		assert_in_range(n, 1, 2);
		assert_int_equal(packets_in(away), n);
		assert_int_equal(packets_in(path), 5 - n);
		remove(path);
		remove(away);
	}
}

/* RX-ERR-03: a name that leads to something else destroys nothing, and its mode is no excuse. */
static void
RX_ERR_03_another_file_is_left_alone(void **state UNUSED)
{
	static const char text[] = "{\"version\": 1}\n";
	char path[32], conf[512], is[64] = "";
	int fd = start_with_file(path, "");
	struct stat st;

	fake_stop();
	snprintf(conf, sizeof(conf), FILE_CONF, path, "");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, sizeof(text), 0), sizeof(text));
	fake_start_env(conf, -EEXIST, true);
	fake_stop();
	assert_int_equal(pread(fd, is, sizeof(is), 0), sizeof(text));
	assert_string_equal(is, text);

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	fake_start(conf);
	fake_stop();
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
	assert_int_equal(packets_in(path), 0);
	remove(path);
}

static void
flood(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		fake_drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
		fake.now += 1000;
		control_poll(fake.c, fake.now);
	}
}

/* RX-ERR-03: clients have all descriptors: the file that is full is kept all the same. */
static void
RX_ERR_03_a_full_file_without_descriptors(void **state UNUSED)
{
	char path[32], old[40];
	struct rlimit was, limit;
	int fd[256], made;
	uint32_t n = 0;

	close(start_with_file(path, ",\"pcapng_size\":65536"));
	snprintf(old, sizeof(old), "%s.1", path);
	made = open(old, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(made, "\x0a\x0d\x0d\x0a", 4), 4); /* an earlier capture */
	close(made);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	limit = was;
	limit.rlim_cur = ARRAY_LEN(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (n < ARRAY_LEN(fd) && (fd[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	flood(1000);
	while (n > 0)
		close(fd[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	fake_stop();
	assert_true(packets_in(old) > 200);
	assert_int_equal(packets_in(old) + packets_in(path), 1000);
	remove(path);
	remove(old);
}

static uint32_t said;

static void
count(void *ctx, enum log_level level UNUSED, const char *line)
{
	said += strstr(line, ctx) != NULL;
}

/* RX-ERR-03: what cannot be kept is not lost without a word. */
static void
RX_ERR_03_a_full_file_that_cannot_be_kept(void **state UNUSED)
{
	static char what[] = "what is in it is lost";
	char path[32], old[40], in[48];

	close(start_with_file(path, ",\"pcapng_size\":65536"));
	snprintf(old, sizeof(old), "%s.1", path);
	snprintf(in, sizeof(in), "%s/x", old);
	assert_int_equal(mkdir(old, 0700), 0);
	assert_int_equal(mkdir(in, 0700), 0);
	said = 0;
	log_set_sink(count, what);
	flood(1000);
	log_set_sink(NULL, NULL);
	fake_stop();
	assert_int_equal(said, 1);
	assert_in_range(packets_in(path), 1, 800);
	remove(path);
	rmdir(in);
	rmdir(old);
}

/* RX-ERR-03: nor is a file lost that has the other name by chance, as of a page of a manual. */
static void
RX_ERR_03_another_file_1_is_left_alone(void **state UNUSED)
{
	static const char text[] = ".TH\n";
	static char what[] = "that is no capture";
	char path[32], old[40], conf[512], is[16] = "";
	int fd;

	close(start_with_file(path, ",\"pcapng_size\":65536"));
	snprintf(old, sizeof(old), "%s.1", path);
	fd = open(old, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	close(fd);
	said = 0;
	log_set_sink(count, what);
	flood(1000);
	assert_int_equal(said, 1);
	fake_stop();
	assert_in_range(packets_in(path), 1, 800);
	snprintf(conf, sizeof(conf), FILE_CONF, path, "");
	fake_start(conf);
	fake_stop();
	log_set_sink(NULL, NULL);
	assert_int_equal(said, 2);
	fd = open(old, O_RDONLY);
	assert_int_equal(read(fd, is, sizeof(is)), sizeof(text));
	assert_string_equal(is, text);
	close(fd);
	remove(path);
	remove(old);
}

/* RX-ERR-03: what is shown are the newest ones. */
static void
RX_ERR_03_the_newest_are_kept(void **state UNUSED)
{
	for (int file = 0; file < 2; file++) {
		char path[32];
		json_t *v;

		if (file == 1)
			close(start_with_file(path, ""));
		else
			fake_start(NO_FILE_CONF);
		for (uint32_t psn = 0; psn < 200; psn++) {
			fake.now += 1000;
			fake_drop(psn % 2, psn, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
			if (psn % 7 == 6)
				control_poll(fake.c, fake.now);
		}
		control_poll(fake.c, fake.now);
		v = rpc_ok("stats", NULL);
		assert_int_equal(number_of(v, "error_buffer_lost"), file == 1 ? 0 : 200 - 64);
		json_decref(v);
		for (int peek = 1; peek >= 0; peek--) {
			v = rpc_ok("rx_errors",
				peek ? "{\"max\":1024,\"peek\":true}" : "{\"max\":1024}");
			assert_int_equal(json_array_size(v), 64); /* entries */
			for (uint32_t i = 0; i < 64; i++)
				assert_int_equal(
					number_of(json_array_get(v, i), "psn"), 200 - 64 + i);
			json_decref(v);
		}
		fake_stop();
		if (file == 1)
			remove(path);
	}
}

enum { FLOOD = 2000 };
static uint32_t flooded;

/* With each look at the clock comes one more: a peer sends rubbish without end. */
static ns_t
clock_of_a_flood(void)
{
	if (flooded < FLOOD) {
		fake_drop(0, ++flooded, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
		return ++fake.now;
	}
	return fake.now;
}

/* The end takes what is there into the file, and not what comes while it does. */
static void
RX_ERR_03_the_end_amid_a_flood(void **state UNUSED)
{
	char path[32];
	struct stat st;
	const int fd = start_with_file(path, "");

	flooded = 0;
	for (uint32_t i = 0; i < 3; i++)
		fake_drop(i % 2, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	fake.c->env.w.clock = clock_of_a_flood;
	fake_stop();
	assert_in_range(flooded, 3, FLOOD / 2);
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(st.st_size, 3 * 100, 1u << 20);
	close(fd);
	remove(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RX_ERR_01_pcapng_file),
		cmocka_unit_test(RX_ERR_03_the_end_amid_a_flood),
		cmocka_unit_test(RX_ERR_03_pcapng_file_on_a_full_disk),
		cmocka_unit_test(RX_ERR_03_the_pcapng_file_is_limited),
		cmocka_unit_test(RX_ERR_03_an_earlier_file_is_kept),
		cmocka_unit_test(RX_ERR_03_a_file_that_was_moved),
		cmocka_unit_test(RX_ERR_03_another_file_is_left_alone),
		cmocka_unit_test(RX_ERR_03_a_full_file_without_descriptors),
		cmocka_unit_test(RX_ERR_03_a_full_file_that_cannot_be_kept),
		cmocka_unit_test(RX_ERR_03_another_file_1_is_left_alone),
		cmocka_unit_test(RX_ERR_03_the_newest_are_kept),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
