# SPDX-License-Identifier: BSD-3-Clause
"""The checks find what they are for, and the summary counts what it should."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

SCRIPTS = os.environ["SCRIPTS"]
TAG = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
HEAD = TAG + "/**\n * @file x.h  X.\n * Owner: a\n * Memory: a\n * Depends: a\n */\n"
MESON = "# SPDX-License-Identifier: BSD-3-Clause\nsources = files()\n"


class Tree(unittest.TestCase):
    """A tree of a few files with the project's checks in it."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        self.root = holder.name
        shutil.copytree(os.path.join(SCRIPTS, "check"), os.path.join(self.root, "scripts/check"))
        for module, deps in (("base", ""), ("wire", "'base'"), ("pipeline", "'base', 'wire'"),
                             ("control", "'base'")):
            self.write(f"lib/{module}/meson.build", MESON + f"deps = [{deps}]\n")
        self.write("lib/base/base.h", HEAD + "#ifndef B\n#define B\n"
                   "/** One. */\nint base_x(void);\n#endif\n")
        self.write("lib/wire/wire.h", HEAD + '#ifndef W\n#define W\n#include "base.h"\n#endif\n')
        self.write("lib/control/control.h", HEAD + "#ifndef C\n#define C\n#endif\n")

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)

    def check(self, name):
        p = subprocess.run([os.path.join(self.root, "scripts/check", name)], capture_output=True,
                           text=True, timeout=60, check=False,
                           env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(p.stderr, "")
        self.assertEqual(p.returncode, 1 if p.stdout else 0)
        return p.stdout

    def finds(self, check, path, text, *wanted):
        """The check is content before, and names each of `wanted` once `path` holds `text`."""
        self.assertEqual(self.check(check), "")
        self.write(path, text)
        found = self.check(check)
        for line in wanted:
            self.assertIn(line, found)
        self.assertEqual(len(found.splitlines()), len(wanted), found)


class Checks(Tree):
    def test_spdx(self):
        self.finds("spdx", "lib/base/a.c", "int a;\n", "lib/base/a.c:1: no 'SPDX")

    def test_style_white_space(self):
        self.finds("style", "lib/base/a.c",
                   TAG + "int a; \n        int b;\n/* " + "x" * 100 + " */\nint c;\r\nint d;",
                   "a.c:2: white space", "a.c:3: indented with spaces", "a.c:4: line longer",
                   "a.c:5: carriage return", "a.c:6: no newline")

    def test_style_lets_tables_and_strings_be_long(self):
        self.finds("style", "lib/base/a.c", TAG + "/* clang-format off */\nint a" + " " * 200 +
                   "= 1;\n/* clang-format on */\n\tf(\"" + "x" * 120 + "\");\n")

    def test_style_sizes(self):
        body = "\tx();\n"
        self.finds("style", "lib/base/a.c", TAG + "int\nf(void)\n{\n" + body * 81 + "}\n" +
                   "int\ng(void)\n{\n" + body * 80 + "}\n" + "int a;\n" * 400,
                   "a.c:4: function of 81 lines", "a.c:501: file of")

    def test_style_sizes_of_tests_and_scripts(self):
        self.write("tests/a.c", TAG + "int\nf(void)\n{\n" + "\tx();\n" * 400 + "}\n")
        for path, head, line in (("tests/b.c", TAG, "int b;\n"), ("tests/b.py", "", "b = 1\n"),
                                 ("scripts/b", "#!/usr/bin/env bash\n", "b=1\n")):
            with self.subTest(path=path):
                self.finds("style", path, head + line * 501, path + ":501: file of")
                self.write(path, head + line * 499)

    def test_style_scripts_parse(self):
        self.finds("style", "scripts/x", "#!/usr/bin/env bash\nif true; then\n",
                   "scripts/x:1: does not parse")

    def test_words(self):
        self.finds("words", "README.md", "see /" + "root/x\nTO" + "DO\nTO" + "DO: say it later\n",
                   "README.md:1: ", "README.md:2: ")

    def test_options(self):
        """What getopt_long() takes, --help and the manual have the same options."""
        path, page = "app/x/main.c", "app/x/x.1"
        rows = ('{ "size", required_argument, NULL, \'s\' }, { "all", no_argument, NULL, ALL },',
                '{ "help", no_argument, NULL, \'h\' },')
        code = TAG + ('struct option l[] = { %s };\n\tgetopt_long(argc, argv, "%s", l, NULL);\n'
                      '\tputs("  -s, --size BYTES  one\\n"\n\t     "      --all  two\\n");\n')
        self.write(page, ".TH X 1\n.SH OPTIONS\n"
                   ".TP\n.BR \\-s \", \" \\-\\-size \" \\fIBYTES\\fR\"\nOne.\n"
                   ".TP\n.B \\-\\-all\nTwo.\n.SH SEE ALSO\n")
        self.write(path, code % (rows[0], "s:"))
        self.finds("options", path, code % (rows[0] + rows[1], "s:h"),
                   "--help is not in --help", "--help is not in app/x/x.1")
        self.write(path, code % (rows[0], "s:"))
        self.finds("options", path, code % (rows[0], "s"), "-s has no row of the same kind")
        self.write(path, code % (rows[0], "s:"))
        self.finds("options", path, (code % (rows[0], "s:")).replace("BYTES", "N"),
                   "--size: N in --help, BYTES in app/x/x.1")
        self.write(path, code % (rows[0], "s:"))
        self.finds("options", path, code % (rows[0], "s:") + '\tgetenv("HOW");\n',
                   "HOW is not in the manual")
        self.write(path, code % (rows[0], "s:"))
        self.finds("options", page, ".TH X 1\n.SH OPTIONS\n.TP\n.BR \\-s \", \" \\-\\-size\n.TP\n"
                   ".B \\-\\-none\n", "--size is another one", "--all is not in app",
                   "--none is in app/x/x.1 alone", "--size: BYTES in --help, None")

    def test_tables(self):
        head = TAG + "/*\n * ROW(code, name, clause)\n */\n/* clang-format off */\n"
        self.finds("tables", "lib/wire/a.def", head +
                   'ROW(1, A, "9.7.5")\nROW(2, B, "later")\nROW(3, C)\nROW(1, A, "9.7.5")\n'
                   'ROW(4, D, "RESP-NAK-01")\nOTHER(1)\n',
                   'a.def:7: "later" is neither', "a.def:8: 2 columns, 3 in the form",
                   "a.def:8: no column", "a.def:9: the same row", "a.def:11: the table's head",
                   "a.def:11: no column")

    def test_layering_pure_modules(self):
        self.finds("layering", "lib/wire/a.c", TAG + "#include <rte_mbuf.h>\n/* rte_ok */\n"
                   "int x = rte_lcore_id();\n", "a.c:2: rte_mbuf", "a.c:4: rte_lcore_id")

    def test_layering_pipeline_never_sees_control(self):
        self.finds("layering", "lib/pipeline/a.c", TAG + '#include "control.h"\n',
                   'a.c:2: "control.h" is of control', 'a.c:2: "control.h": pipeline must never')

    def test_layering_undeclared(self):
        self.finds("layering", "lib/base/a.c", TAG + '#include "wire.h"\n',
                   'a.c:2: "wire.h" is of wire, which base/meson.build does not name')

    def test_headers(self):
        self.finds("headers", "lib/base/x.h", HEAD + "uint32_t x_f(void);\n",
                   "lib/base/x.h:1: does not compile alone")

    def test_headers_need_a_guard(self):
        self.finds("headers", "lib/base/x.h", HEAD + "struct x { int a; };\n",
                   "lib/base/x.h:1: does not compile alone")

    def test_headers_see_only_declared_modules(self):
        self.finds("headers", "lib/base/x.h", HEAD + '#include "wire.h"\n',
                   "lib/base/x.h:1: does not compile alone")

    def test_headers_say_what_they_are(self):
        self.finds("headers", "lib/base/x.h", TAG + "#define X 1\n", "no '@file'", "no 'Owner:'",
                   "no 'Memory:'", "no 'Depends:'")

    def test_documented(self):
        self.finds("documented", "lib/base/x.h", HEAD +
                   "/** Two. */\nint x_b(int a,\n\tint b);\nint x_c(void);\n\n"
                   "/* No doc. */\nvoid *x_d(void);\n/** A struct. */\nstruct x { int a; };\n"
                   "static inline int\nx_e(void)\n{\n\treturn x_c();\n}\n",
                   "x_c() has no", "x_d() has no", "x_e() has no")

    def test_walks(self):
        row = "| %d | `base_x` | `lib/base/x.c` | what |\n"
        self.write("lib/base/x.c", TAG + "int\nbase_x(void)\n{\n\treturn 1;\n}\n")
        self.write("CONTRIBUTING.md", "# A\n" + row % 1 + "# B\n" + row % 1)
        self.finds("walks", "CONTRIBUTING.md",
                   "# A\n" + "".join(row % i for i in range(1, 14)) + "# B\n" +
                   "| 1 | `base_y` | `lib/base/x.c` | what |\n"
                   "| 2 | `base_x` | `lib/base/gone.c` | what |\n",
                   "CONTRIBUTING.md:14: a walk of more than 12",
                   "base_y() is not defined in lib/base/x.c",
                   "base_x() is not defined in lib/base/gone.c")

    def test_links(self):
        self.write("lib/README.md", "# One `b`, two\n[a](../README.md#what-is-b) `base/base.h`\n")
        self.write("README.md", "# What is b?\n[a](lib/README.md#one-b-two) `lib/*/base.h`\n"
                   "[b](#what-is-b) [c](https://x/y) `build/x`\n")
        self.write("app/examples/ping.c", TAG)
        self.write("CHANGELOG.md", "`lib/base/gone.h`\n")
        self.finds("links", "lib/README.md",
                   "# One\n[a](../GONE.md) [b](../README.md#gone)\n`base/gone.h` `gone/base.h`\n"
                   "`tests/gone.py` `app/examples/ping`\n",
                   "lib/README.md:2: link to ../GONE.md", "lib/README.md:2: link to ../README.md#gone",
                   "lib/README.md:3: lib/base/gone.h is not there",
                   "lib/README.md:4: tests/gone.py is not there",
                   "README.md:2: link to lib/README.md#one-b-two")

    def test_forbidden_on_the_hot_path(self):
        self.finds("forbidden", "lib/wire/a.c", TAG +
                   "int\nf(void)\n{\n\tlog_warn(\"free(x)\");\n\tmalloc(1); /* not hot: start */\n"
                   "}\n\n/* not hot: end */\nvoid\ng(void)\n{\n\tfree(p);\n}\n\n"
                   "void\nh(void)\n{\n\tfree(p);\n}\n",
                   "a.c:5: log_warn", "a.c:19: free")

    def test_forbidden_mark_of_a_file(self):
        self.finds("forbidden", "lib/wire/a.c",
                   TAG + "/* not hot: all */\n#include <x.h>\nvoid\nf(void)\n{\n\tfree(p);\n}\n")

    def test_forbidden_anywhere(self):
        self.finds("forbidden", "lib/base/a.c", TAG +
                   "volatile int x;\nvoid\nf(void)\n{\n\tstrcpy(a, b);\n\tprintf(\"x\");\n"
                   "\tsnprintf(a, 1, b);\n}\n",
                   "a.c:2: volatile", "a.c:6: strcpy", "a.c:7: printf")


class Summary(unittest.TestCase):
    def run_summary(self, tests, cases=None, ci=False):
        with tempfile.TemporaryDirectory(prefix="rl") as d:
            log = os.path.join(d, "log")
            with open(log, "w", encoding="utf-8") as f:
                f.write("".join(json.dumps(t) + "\n" for t in tests))
            args = [f"default={log}"]
            if cases is not None:
                with open(log + "c", "w", encoding="utf-8") as f:
                    f.write(cases)
                args = ["--cases", log + "c"] + args
            p = subprocess.run(["/usr/bin/python3", os.path.join(SCRIPTS, "dev/summary.py")] + args,
                               capture_output=True, text=True, check=False, timeout=60,
                               env={**os.environ, "CI": "true" if ci else ""})
        self.printed = p.stdout.splitlines()
        return self.printed[-1], p.returncode

    def test_counts(self):
        ok = {"name": "a", "result": "OK", "returncode": 0}
        two = {**ok, "stdout": "1..2\nok 1 - x\nok 2 - y\n"}
        rows = [
            ([ok], None, "1 passed, 0 failed", 0),
            ([two], None, "2 passed, 0 failed", 0),
            ([two, ok], "pass check a\nfail check b\n", "4 passed, 1 failed", 1),
            ([{**two, "result": "FAIL", "stdout": "1..2\nok 1 - x\nnot ok 2 - y\n"}], None,
             "1 passed, 1 failed", 1),
            # A crash after the last case, and one before it.
            ([{**two, "result": "ERROR", "returncode": -11}], None, "2 passed, 1 failed", 1),
            ([{**ok, "result": "TIMEOUT"}], None, "0 passed, 1 failed", 1),
            # Meson believes it, the output does not.
            ([{**two, "stdout": "1..1\nnot ok 1 - x\n"}], None, "0 passed, 1 failed", 1),
            ([], None, "0 passed, 1 failed", 1),
        ]
        for tests, cases, line, code in rows:
            with self.subTest(line=line, tests=tests):
                self.assertEqual(self.run_summary(tests, cases), (line, code))

    def test_skips_fail_in_ci_and_never_pass(self):
        tests = [{"name": "a", "result": "OK", "stdout": "1..2\nok 1 - x\nok 2 - y # SKIP no\n"},
                 {"name": "b", "result": "SKIP", "stdout": "", "returncode": 77}]
        self.assertEqual(self.run_summary(tests), ("1 passed, 0 failed", 0))
        self.assertEqual(self.run_summary(tests, ci=True), ("1 passed, 2 failed", 1))

    def test_tells_why_a_test_was_left_out(self):
        self.run_summary([{"name": "b", "result": "SKIP", "stdout": "1..0 # SKIP no such thing\n"}])
        self.assertIn("  default: b (no such thing)", self.printed)

    def test_nothing_passed_is_a_failure(self):
        tests = [{"name": "b", "result": "SKIP", "stdout": "", "returncode": 77}]
        self.assertEqual(self.run_summary(tests), ("0 passed, 0 failed", 1))


class Pktgen(unittest.TestCase):
    def test_where_pktgen_is_not_installed(self):
        for path in ("", "/nonexistent/pktgen", "/"):
            with self.subTest(path=path):
                p = subprocess.run([os.path.join(SCRIPTS, "pktgen")], capture_output=True,
                                   text=True, timeout=60, check=False,
                                   env={"PATH": "/nonexistent", "PKTGEN": path})
                self.assertEqual((p.returncode, p.stdout), (1, ""))
                self.assertIn("PKTGEN=/path/to/pktgen scripts/pktgen", p.stderr)


class Run(unittest.TestCase):
    """scripts/run before it sets anything up."""

    def run_script(self, *args):
        return subprocess.run([os.path.join(SCRIPTS, "run"), *args], capture_output=True,
                              text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)

    def test_help_and_list(self):
        p = self.run_script("--help")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        for word in ("--duration", "--loss", "--replay", "--list", "--tap", "--build"):
            self.assertIn(word, p.stdout)
        p = self.run_script("--list")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn("rnr", p.stdout.split())

    def test_wrong_words(self):
        for args in (["--colour"], ["--loss"], ["--replay", "--loss", "1%"], ["--list", "x"],
                     ["--duration", "2", "--build"]):
            with self.subTest(args=args):
                p = self.run_script(*args)
                self.assertEqual((p.returncode, p.stdout), (2, ""))
                self.assertIn("usage:", p.stderr)


class Downloads(unittest.TestCase):
    """scripts/test says what comes over the network before anything does."""

    def plan(self, *options, debs=()):
        with tempfile.TemporaryDirectory(prefix="rl") as d:
            os.mkdir(os.path.join(d, "debs"))
            for name in debs:
                open(os.path.join(d, "debs", name), "w", encoding="ascii").close()
            with open(os.path.join(d, "id"), "w", encoding="ascii") as f:
                f.write("#!/bin/sh\necho 0\n")
            os.chmod(os.path.join(d, "id"), 0o755)
            p = subprocess.run([os.path.join(SCRIPTS, "test"), "--downloads", *options],
                               capture_output=True, text=True, check=False, timeout=60,
                               stdin=subprocess.DEVNULL, env={
                                   **os.environ, "INTEROP_BUILD": d,
                                   "PATH": d + ":" + os.environ["PATH"]})
        self.assertEqual((0, ""), (p.returncode, p.stderr))
        return p.stdout

    def test_of_the_interop_tests(self):
        kernel = "linux-image-6.1.0-1-amd64_1_amd64.deb"
        said = self.plan(debs=[kernel])
        for word in ("about 80 MB", "build/interop", "interop tests", "perftest", "busybox-static",
                     "scripts/test --no-interop"):
            self.assertIn(word, said)
        self.assertNotIn("linux-image", said)           # it is there
        self.assertIn("perftest", self.plan("suite:interop", debs=[kernel]))
        for options in (["--no-interop"], ["suite:unit"], ["errbuf"]):
            self.assertNotIn("perftest", self.plan(*options, debs=[kernel]))

    def test_help_says_it(self):
        p = subprocess.run([os.path.join(SCRIPTS, "test"), "--help"], capture_output=True,
                           text=True, check=True)
        for word in ("80 MB", "--no-interop", "--downloads", "build/interop"):
            self.assertIn(word, p.stdout)


class Setup(unittest.TestCase):
    """scripts/setup with dpkg-query and apt-get of our own making."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        self.dir = holder.name
        self.tool("apt-get", 'echo "$@" >>"$HERE/asked"; case " $* " in\n'
                  '*" update "*) exit 0 ;; esac\n[ ! -e "$HERE/broken" ] || exit 100\n'
                  'shift $(($# - 1)); echo "installed $1" >>"$HERE/packages"\n')
        self.tool("dpkg-query", 'cat "$HERE/packages"; exit 1\n')
        self.tool("id", "echo 0\n")

    def tool(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write('#!/bin/bash\nHERE=$(dirname "$0")\n' + text)
        os.chmod(path, 0o755)

    def setup_run(self, *missing, options=()):
        names = subprocess.run([os.path.join(SCRIPTS, "setup"), "--print"], capture_output=True,
                               text=True, check=True).stdout
        names = [w for line in names.splitlines() if not line.startswith("dev:")
                 for w in line.split()[1:]]
        with open(os.path.join(self.dir, "packages"), "w", encoding="utf-8") as f:
            f.write("".join(f"installed {n}\n" for n in names if n not in missing))
        p = subprocess.run([os.path.join(SCRIPTS, "setup"), *options], capture_output=True,
                           text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
                           env={**os.environ, "PATH": self.dir + ":" + os.environ["PATH"]})
        asked = os.path.join(self.dir, "asked")
        if not os.path.exists(asked):
            return p, []
        with open(asked, encoding="utf-8") as f:
            return p, f.read().splitlines()

    def test_silent_when_all_is_there(self):
        p, asked = self.setup_run()
        self.assertEqual((p.returncode, p.stdout, p.stderr, asked), (0, "", "", []))

    def test_installs_what_is_missing(self):
        p, asked = self.setup_run("libisal-dev")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(asked[-1].endswith("install -y --no-install-recommends libisal-dev"), asked)

    def test_says_what_could_not_be_installed(self):
        with open(os.path.join(self.dir, "broken"), "w", encoding="utf-8"):
            pass
        p, asked = self.setup_run("libisal-dev")
        self.assertEqual(p.returncode, 1)
        self.assertIn("could not install: libisal-dev", p.stderr)
        self.assertTrue(any(" update" in a for a in asked), asked)

    def test_lists_what_it_would_install(self):
        p, asked = self.setup_run("libisal-dev", "qemu-system-x86", options=("--missing",))
        self.assertEqual((["libisal-dev", "qemu-system-x86"], []), (p.stdout.split(), asked))
        p, asked = self.setup_run("qemu-system-x86", options=("--missing", "--no-interop"))
        self.assertEqual(("", []), (p.stdout, asked))

    def test_without_root_it_says_what_to_run(self):
        self.tool("id", "echo 1000\n")
        self.tool("sudo", 'echo "$@" >>"$HERE/sudo.log"; exit 1\n')
        p, asked = self.setup_run("libisal-dev")
        self.assertEqual((p.returncode, asked), (1, []))
        self.assertIn("libisal-dev", p.stderr)


if __name__ == "__main__":
    tap.main()
