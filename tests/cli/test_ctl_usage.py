# SPDX-License-Identifier: BSD-3-Clause
"""rocelanectl: wrong usage, help, the manual, completion."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from ctl import CTL, MRS, QPS, Case, run  # noqa: E402
from fake_daemon import FakeDaemon  # noqa: E402

ROOT = os.environ["ROCELANE_ROOT"]
COMPLETION = os.environ["ROCELANECTL_COMPLETION"]


def completed(words, cwd=None):
    """What bash makes of these words, of which the last is being typed."""
    script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_rocelanectl; printf "%s\\n" "${COMPREPLY[@]}"')
    p = subprocess.run(["bash", "-c", script, "bash", COMPLETION] + words, cwd=cwd,
                       capture_output=True, text=True, timeout=20, check=True)
    return p.stdout.splitlines()


class Usage(Case):
    def test_usage_errors(self):
        rows = [
            ([], "no object given; one of: qp, mr"),
            (["nonsense"], "unknown object 'nonsense'; one of: qp"),
            (["qp"], "no verb given; one of: list, show"),
            (["qp", "fly"], "unknown verb 'fly'; one of: list, show"),
            (["qp", "show"], "qp_num is missing"),
            (["qp", "show", "17", "18"], "'18' is too much"),
            (["qp", "show", "x17"], "qp_num must be a number, not 'x17'"),
            (["qp", "show", "1K"], "qp_num must be a number, not '1K'"),
            (["qp", "show", "-1"], "qp_num must be a number, not '-1'"),
            (["qp", "show", "99999999999999999999"], "qp_num must be a number"),
            (["mr", "read", "a", "0", "17000000000G"], "length must be a number of bytes"),
            (["qp", "modify", "17", "timeout"], "'timeout' has no value"),
            (["qp", "modify", "17", "a", "1", "a", "2"], "'a' is given twice"),
            (["qp", "modify", "17", "a", "1", "a.b", "2"], "'a.b' does not fit"),
            (["qp", "modify", "17", "a.", "1"], "'a.' does not fit"),
            (["post", "recv", "17", "count", "0"], "count must be"),
            (["explain", "-18446744073709551610"], "explain takes one number"),
            (["explain", " 6"], "explain takes one number"),
            (["stat", "show", "galaxy"], "'galaxy' is no scope"),
            (["stat", "show", "qp"], "qp needs a number"),
            (["stat", "show", "--watch", "0"], "--watch takes"),
            (["stat", "show", "--stages", "0"], "--stages takes"),
            (["top", "interval", "soon"], "interval takes"),
            (["top", "qps", "1000"], "qps takes 0 to 256"),
            (["top", "count", "0"], "count takes"),
            (["top", "17"], "'17' is none of"),
            (["-t", "soon", "version"], "-t takes"),
            (["-x"], "option '-x' is unknown"),
            (["-xj", "version"], "option '-x' is unknown"),
            (["-jx", "version"], "option '-x' is unknown"),
            (["--fly", "version"], "option '--fly' is unknown"),
            (["-s"], "option '-s' is unknown, or lacks its value"),
            (["--socket"], "option '--socket' is unknown, or lacks its value"),
            (["\x1b]0;x\a"], "unknown object '?]0;x?'"),
            (["qp", "\x9b31m\n"], "unknown verb '??31m\n"),
        ]
        for args, text in rows:
            with self.subTest(args=args):
                p = run(*args)
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn(text, p.stderr)
                self.assertEqual(p.stdout, "")

    def test_a_vendor_err_is_a_number_as_any_other(self):
        for text in ("10", "0x0a", "0xA", "010"):
            self.assertTrue(run("explain", text).stdout.startswith("10 (0x0a) NAK_RECEIVED"))
        p = run("explain", "4294967302")
        self.assertEqual((1, ""), (p.returncode, p.stdout))

    def test_manual_has_every_command(self):
        """And each with the words of its --help."""
        with open(os.path.join(ROOT, "app/rocelanectl/rocelanectl.1"), encoding="utf-8") as f:
            page = f.read().replace("\\-", "-")
        for obj in run("--complete").stdout.split():
            verbs = [] if obj == "top" else run("--complete", obj).stdout.split()
            for words in [f"{obj} {v}" for v in verbs] or [obj]:
                line = re.search(rf"^\.B {words}(?: .*)?\n(.+)$", page, re.M)
                self.assertIsNotNone(line, words)
                text = run(*words.split(), "--help").stdout
                self.assertIn(line[1][1:-1], text.replace("\n", " "), words)

    @staticmethod
    def keys(*words):
        """{key: (type, help, values)} of a command's --help."""
        found, key = {}, None
        for line in run(*words, "--help").stdout.split("Keys:\n")[-1].splitlines():
            row = re.match(r"  (\S+) +(\S.*?)(?:  +| (?<=.{51}))(\S.*)$", line)
            values = re.match(r" {29}(?:(?:one|any) of:|        )(.*)", line)
            if row:
                key = row[1]
                found[key] = (row[2].strip(), row[3], [])
            elif values and key:
                found[key][2].extend(values[1].split())
            elif key and not line:
                break
        return found

    def test_every_key_has_its_type_its_values_and_a_word_about_it(self):
        """And ranges and values are those of the configuration's schema."""
        with open(os.path.join(ROOT, "config/schema.json"), encoding="utf-8") as f:
            defs = json.load(f)["$defs"]

        def schema(kind, key):
            for part in key.split("."):
                props = defs.get({"alt_ah_attr": "ah_attr", "burst": "impair_burst"}.get(
                    kind, kind), {}).get("properties", {})
                kind, found = part, props.get(part)
            return found
        compared = 0
        for words in (("qp", "create"), ("qp", "modify"), ("mr", "register"), ("cq", "create"),
                      ("srq", "create"), ("post", "send"), ("impair", "set"), ("top",),
                      ("qp", "list"), ("cq", "notify"), ("trace", "read"), ("impair", "log")):
            keys = self.keys(*words)
            self.assertTrue(keys, words)
            for key, (form, text, values) in keys.items():
                with self.subTest(words=words, key=key):
                    self.assertTrue(form and text)
                    rule = schema(words[0], key) or (
                        words[0] == "impair" and schema("impair_rule", key)) or {}
                    if "minimum" in rule and "maximum" in rule and " to " in form:
                        low, high = re.search(r"([\d.]+) to ([\d.]+)(T?)", form).group(1, 2)
                        high = 1 << 40 if "1T" in form else float(high)
                        self.assertEqual((rule["minimum"], rule["maximum"]), (float(low), high))
                        compared += 1
                    names = rule.get("enum") or rule.get("items", {}).get("enum") or []
                    names = [str(n) for n in names if n and "0x" not in str(n)]
                    self.assertLessEqual(set(names), set(values), form)
                    compared += bool(names)
        self.assertGreater(compared, 50)

    def test_help_on_every_level(self):
        for args, text in ((["--help"], "OBJECT VERB"), (["qp", "--help"], "qp modify QP_NUM"),
                           (["qp", "modify", "--help"], "min_rnr_timer"),
                           (["help"], "OBJECT VERB"), (["metrics", "-h"], "Prometheus")):
            with self.subTest(args=args):
                p = run(*args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                self.assertIn(text, p.stdout)

    def test_every_command_has_help_and_is_completed(self):
        objects = run("--complete").stdout.split()
        self.assertIn("qp", objects)
        text = run("--help").stdout
        for obj in objects:
            self.assertIn(f"\n  {obj} ", text)
            p = run(obj, "--help")
            self.assertEqual(p.returncode, 0, obj)
            self.assertIn(f"rocelanectl {obj}", p.stdout)
            if obj == "top":  # its words are options, not verbs
                continue
            for verb in run("--complete", obj).stdout.split():
                p = run(obj, verb, "--help")
                self.assertEqual(p.returncode, 0, f"{obj} {verb}")
                self.assertIn(f"rocelanectl {obj} {verb}", p.stdout)


class Completion(Case):
    ANSWERS = {"qp_list": QPS, "mr_list": MRS, "cq_list": [{"name": "cq0"}],
               "pd_list": [{"name": "pd0"}], "port_list": [{"name": "p0"}],
               "srq_list": [{"name": "srq0"}], "worker_list": [{"worker": 0}, {"worker": 1}]}

    def words(self, *args):
        with FakeDaemon(self.ANSWERS) as d:
            return run("--complete", "--", "-s", d.path, *args).stdout.split()

    def test_words(self):
        self.assertEqual(self.words("mr"),
                         ["list", "show", "register", "rereg", "deregister", "read", "write",
                          "fill", "crc"])
        self.assertEqual(self.words("qp", "show"), ["17", "1048593"])
        self.assertEqual(self.words("mr", "read"), ["mr0"])
        self.assertEqual(self.words("post", "recv", "17", "mr"), ["mr0"])
        self.assertEqual(self.words("cq", "poll"), ["cq0"])
        self.assertEqual(self.words("stat", "show", "qp"), ["17", "1048593"])
        self.assertIn("timeout", self.words("qp", "modify", "17"))
        self.assertIn("RTS", self.words("qp", "modify", "17", "qp_state"))
        self.assertEqual(self.words("qp", "show", "17"), [])
        self.assertEqual(self.words("nonsense", "x"), [])

    def test_names_where_names_are_wanted(self):
        for words, want in ((("pd", "destroy"), "pd0"), (("qp", "create", "pd"), "pd0"),
                            (("mr", "register", "pd"), "pd0"), (("srq", "create", "pd"), "pd0"),
                            (("qp", "modify", "17", "alt_port"), "p0"),
                            (("qp", "create", "srq"), "srq0"), (("post", "recv", "srq"), "srq0"),
                            (("qp", "modify", "17", "path_mig_state"), "MIGRATED REARM"),
                            (("qp", "list", "worker"), "0 1"),
                            (("cq", "notify", "cq0", "solicited_only"), "true false"),
                            (("impair", "set", "p0", "action"),
                             "drop duplicate reorder corrupt delay ce"),
                            (("impair", "set", "p0", "opcode"), "")):
            with self.subTest(words=words):
                self.assertEqual(want.split(), self.words(*words))

    def test_behind_a_word_that_may_be_left_out(self):
        for words, some, none in (
                (("srq", "create", "s1"), {"pd", "max_wr"}, {"pd0"}),
                (("srq", "create", "s1", "pd"), {"pd0"}, {"pd"}),
                (("srq", "create", "pd"), {"pd0"}, {"pd"}),
                (("qp", "create", "5"), {"qp_type"}, {"RC"}),
                (("qp", "create", "5", "qp_type"), {"RC", "UD"}, {"pd"}),
                (("qp", "create", "5", "qp_type", "RC", "port"), {"p0"}, {"pd"}),
                (("mr", "register", "m", "pd"), {"pd0"}, {"pd"}),
                (("mw", "alloc", "w", "type"), {"1", "2"}, {"pd"}),
                (("trace", "read"), {"17", "max"}, set()),
                (("trace", "read", "17"), {"max"}, {"17"})):
            with self.subTest(words=words):
                offered = set(self.words(*words))
                self.assertEqual((some, set()), (some & offered, none & offered))
        self.assertNotIn("17", self.words("qp", "create"))
        self.assertNotIn("mr0", self.words("mr", "register"))

    def test_options_in_front(self):
        with FakeDaemon(self.ANSWERS) as d:
            for options in (["-s", d.path], ["-s" + d.path], ["-j", "-t5", "-s", d.path],
                            ["-js", d.path], ["--socket=" + d.path], ["--socket", "=", d.path],
                            ["--socket", d.path, "--json", "--timeout", "5"]):
                with self.subTest(options=options):
                    self.assertEqual(["mr0"], run("--complete", "--", *options, "mr",
                                                  "read").stdout.split())
            for options in (["-s"], ["-jt"], ["--socket", "="]):
                self.assertEqual("", run("--complete", "--", *options).stdout)

    def test_without_a_daemon_it_is_silent(self):
        p = run("--complete", "--", "-s", "/nonexistent/s", "qp", "show")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))

    def test_bash(self):
        with FakeDaemon(self.ANSWERS) as d:
            for words, want in ((["q"], ["qp"]), (["qp", "sh"], ["show"]),
                                (["-s", d.path, "qp", "show", "1"], ["17", "1048593"]),
                                (["-s", d.path, "mr", "read", ""], ["mr0"])):
                with self.subTest(words=words):
                    self.assertEqual(completed([CTL] + words), want)

    def test_bash_completion_runs_and_expands_nothing(self):
        """Objects' names come from others, with any printing character in them."""
        names = ["$(touch ran)", "`touch ran`", "{a,b}", "*", "~root", "client 1 mr 2", "mr0",
                 "-e", "a'b"]
        with tempfile.TemporaryDirectory() as there:
            fake = os.path.join(there, "rocelanectl")
            with open(fake, "w", encoding="utf-8") as f:
                f.write("#!/usr/bin/python3\nprint(" + repr("\n".join(names)) + ")\n")
            os.chmod(fake, 0o700)
            for cur, of in (("", names), ("mr", ["mr0"]), ("$", names[:1]), ("\\$", names[:1]),
                            ("client", ["client 1 mr 2"])):
                got = completed([fake, "mr", "show", cur], cwd=there)
                with self.subTest(cur=cur):
                    # As the command line has them, the shell takes them for these names.
                    self.assertEqual([shlex.split(word)[0] for word in got], of)
                    self.assertEqual(os.listdir(there), ["rocelanectl"])


if __name__ == "__main__":
    tap.main()
