/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without libFuzzer:
 *
 *   fuzz_NAME_replay PATH...       the files, and the files of the folders
 *   fuzz_NAME_replay -r N SEED     N inputs mutated from the built-in seeds; same SEED, same inputs
 *   fuzz_NAME_replay -w DIR        write the built-in seeds as files: a first corpus for libFuzzer
 *
 * On a crash the input stands in fuzz-crash.bin of the current folder.
 */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { INPUT_MAX = 65536, MUTANT_MAX = 4096, PATH_ROOM = 4096, SEEDS_MAX = 1024 };

static uint8_t input[INPUT_MAX];
static size_t input_len;
static uint64_t rng;

static uint32_t
random_below(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng >> 32) * n >> 32);
}

static void
run(const uint8_t *data, size_t len)
{
	memmove(input, data, len);
	input_len = len;
	LLVMFuzzerTestOneInput(input, len);
}

/** Keep the input that crashed, then die of the signal. A crash within stdio may lose it. */
static void
on_crash(int sig)
{
	FILE *out = fopen("fuzz-crash.bin", "wb");

	if (out != NULL) {
		fwrite(input, 1, input_len, out);
		fclose(out);
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static int
run_file(const char *path)
{
	static uint8_t data[INPUT_MAX];
	FILE *in = fopen(path, "rb");
	size_t len;

	if (in == NULL) {
		perror(path);
		return 1;
	}
	len = fread(data, 1, sizeof(data), in);
	fclose(in);
	run(data, len);
	return 0;
}

static int
run_path(const char *path, unsigned int *count)
{
	struct stat st;
	struct dirent *e;
	DIR *dir;
	int rc = 0;

	if (stat(path, &st) != 0) {
		perror(path);
		return 1;
	}
	if (!S_ISDIR(st.st_mode)) {
		(*count)++;
		return run_file(path);
	}
	dir = opendir(path);
	if (dir == NULL) {
		perror(path);
		return 1;
	}
	while ((e = readdir(dir)) != NULL) {
		char file[PATH_ROOM];

		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		rc |= run_path(file, count);
	}
	closedir(dir);
	return rc;
}

static unsigned int
seed_count(void)
{
	static uint8_t b[MUTANT_MAX];
	unsigned int n = 0;

	while (n < SEEDS_MAX && fuzz_seed(n, b, sizeof(b)) != 0)
		n++;
	return n;
}

/** One random change. @return the new length. */
static size_t
mutate(uint8_t *b, size_t len, size_t room, unsigned int seeds)
{
	static const uint8_t odd[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 0x20, 0x10 };
	size_t at = len != 0 ? random_below((uint32_t)len) : 0;
	size_t n = random_below(16) + 1;

	switch (random_below(8)) {
	case 0: /* flip a bit */
		if (len != 0)
			b[at] ^= (uint8_t)(1u << random_below(8));
		return len;
	case 1: /* any byte */
		if (len != 0)
			b[at] = (uint8_t)random_below(256);
		return len;
	case 2: /* a byte at some limit */
		if (len != 0)
			b[at] = odd[random_below(sizeof(odd))];
		return len;
	case 3: /* a little more or less: lengths and counters */
		if (len != 0)
			b[at] = (uint8_t)(b[at] + random_below(9) - 4);
		return len;
	case 4: /* cut the end */
		return at;
	case 5: /* take bytes out */
		n = n < len - at ? n : len - at;
		memmove(b + at, b + at + n, len - at - n);
		return len - n;
	case 6: /* put bytes in */
		n = n < room - len ? n : room - len;
		memmove(b + at + n, b + at, len - at);
		for (size_t i = 0; i < n; i++)
			b[at + i] = (uint8_t)random_below(256);
		return len + n;
	default: /* go on as another seed does */
		if (seeds != 0 && at < room) {
			static uint8_t other[MUTANT_MAX];
			size_t olen = fuzz_seed(random_below(seeds), other, sizeof(other));

			if (olen > at && olen <= room) {
				memcpy(b + at, other + at, olen - at);
				return olen;
			}
		}
		return len;
	}
}

static void
run_random(unsigned long count, uint64_t seed)
{
	static uint8_t b[MUTANT_MAX];
	unsigned int seeds = seed_count();

	rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 0x1234567;
	if (rng == 0)
		rng = 1;
	for (unsigned int i = 0; i < seeds; i++)
		run(b, fuzz_seed(i, b, sizeof(b)));
	for (unsigned long i = 0; i < count; i++) {
		size_t len = 0;

		/* One in 32 is plain noise, the others are changed seeds. */
		if (seeds == 0 || random_below(32) == 0) {
			len = random_below(256);
			for (size_t k = 0; k < len; k++)
				b[k] = (uint8_t)random_below(256);
		} else {
			len = fuzz_seed(random_below(seeds), b, sizeof(b));
			for (uint32_t k = random_below(6) + 1; k != 0; k--)
				len = mutate(b, len, sizeof(b), seeds);
		}
		run(b, len);
	}
	printf("%u seeds and %lu inputs from them (seed %llu): ok\n", seeds, count,
		(unsigned long long)seed);
}

static int
write_seeds(const char *dir)
{
	static uint8_t b[MUTANT_MAX];
	unsigned int seeds = seed_count();

	for (unsigned int i = 0; i < seeds; i++) {
		size_t len = fuzz_seed(i, b, sizeof(b));
		char path[PATH_ROOM];
		FILE *out;

		snprintf(path, sizeof(path), "%s/seed-%03u", dir, i);
		out = fopen(path, "wb");
		if (out == NULL || fwrite(b, 1, len, out) != len || fclose(out) != 0) {
			perror(path);
			return 1;
		}
	}
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned int count = 0;
	int rc = 0;

	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	if (argc == 4 && strcmp(argv[1], "-r") == 0) {
		run_random(strtoul(argv[2], NULL, 0), strtoull(argv[3], NULL, 0));
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "-w") == 0)
		return write_seeds(argv[2]);
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: %s PATH... | -r COUNT SEED | -w DIR\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		rc |= run_path(argv[i], &count);
	printf("%u files: %s\n", count, rc == 0 ? "ok" : "some could not be read");
	return rc;
}
