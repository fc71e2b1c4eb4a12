/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "compiler.h"
#include "plain.h"

static void
test_text(void **state UNUSED)
{
	static const struct {
		const char *from, *kept, *to;
	} rows[] = {
		{ "", "", "" },
		{ "p0 ~", "", "p0 ~" },
		{ "\x1b]0;x\a", "", "?]0;x?" },
		{ "a\nb\tc\x7f", "", "a?b?c?" },
		{ "a\nb\tc", "\n", "a\nb?c" },
		/* Letters that are no ASCII stay: two, three and four bytes. */
		{ "\xc3\x9f \xe2\x80\xa6 \xf0\x9f\x98\x80", "",
			"\xc3\x9f \xe2\x80\xa6 \xf0\x9f\x98\x80" },
		/* CSI, as UTF-8 and as a byte of its own, and the last of these characters. */
		{ "\xc2\x9b"
		  "31m",
			"", "??31m" },
		{ "\x9b"
		  "31m",
			"", "?31m" },
		{ "\xc2\x9f\xc2\xa0", "", "??\xc2\xa0" },
		/* Longer than it has to be, out of range, cut off. */
		{ "\xc0\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", "", "?? ??? ????" },
		{ "\xf5\x80\x80\x80", "", "????" },
		{ "\xe2\x80", "", "??" },
		{ "\xc2", "", "?" },
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "%s", rows[i].from);
		assert_ptr_equal(plain_text(text, rows[i].kept), text);
		assert_string_equal(text, rows[i].to);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
