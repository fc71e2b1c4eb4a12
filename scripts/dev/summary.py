#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count test cases over several meson runs; the last line printed is "N passed, N failed".

usage: summary.py [--cases FILE] [NAME=testlog.json]...

FILE holds one "pass NAME" or "fail NAME" a line, for what is no test of meson's. In a test that
speaks TAP each of its lines is a case. A test that fails as a whole (crash, time-out, too few
cases) counts as one failure more where none of its cases says so. Exit code 0 only if something
passed and nothing failed; with CI=true a skipped case is a failed one.
"""
import argparse
import json
import os
import re
import sys

TAIL = 40  # lines of a failing test's output
CASE = re.compile(r"^(ok|not ok)\b(?:\s+(\d+))?\s*(?:-\s*)?(.*?)(?:#\s*(skip|todo)\b.*)?$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*skip\s*(.*))?", re.I)
BAD = {"FAIL", "TIMEOUT", "INTERRUPT", "ERROR", "UNEXPECTEDPASS"}


class Count:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []


def tap_cases(text):
    """(verdict, name) of each TAP line; none where the output is not TAP."""
    lines = text.splitlines()
    if not any(PLAN.match(line) for line in lines):
        return []
    cases = []
    for line in lines:
        m = CASE.match(line)
        if m is None:
            continue
        mark = (m.group(4) or "").lower()
        good = m.group(1).lower() == "ok"
        verdict = "skip" if mark == "skip" else "pass" if good or mark == "todo" else "fail"
        cases.append((verdict, m.group(3).strip() or f"case {m.group(2)}"))
    return cases


def reason(text):
    """Why a whole test was left out, as its plan says it."""
    plans = [PLAN.match(line) for line in text.splitlines()]
    words = [m.group(2).strip() for m in plans if m and m.group(2)]
    return f" ({words[0]})" if words else ""


def show(build, test):
    print(f"\n--- {build}: {test['name']}: {test['result']}, exit code {test.get('returncode')}")
    for stream in ("stdout", "stderr"):
        lines = (test.get(stream) or "").splitlines()
        bad = [n for n, line in enumerate(lines) if line.startswith("not ok")]
        # The first failing case is worth more than the last lines.
        if bad and bad[0] < len(lines) - TAIL:
            print("\n".join(lines[max(0, bad[0] - TAIL // 2):bad[0] + 5]), "\n...")
        print("\n".join(lines[-TAIL:]))


def count_test(build, test, count):
    where = f"{build}: {test['name']}"
    result = test["result"]
    cases = tap_cases(test.get("stdout") or "")
    failed = [name for verdict, name in cases if verdict == "fail"]
    count.failed += [f"{where}: {name}" for name in failed]
    count.skipped += [f"{where}: {name}" for verdict, name in cases if verdict == "skip"]
    count.passed += sum(verdict == "pass" for verdict, _ in cases)
    if result in BAD:
        if not failed:
            count.failed.append(f"{where}: {result}")
        show(build, test)
    elif failed:
        show(build, test)
    elif not cases and result in ("SKIP", "EXPECTEDFAIL"):
        count.skipped.append(where + reason(test.get("stdout") or ""))
    elif not cases:
        count.passed += 1


def read_log(spec, count):
    build, _, path = spec.partition("=")
    try:
        with open(path, encoding="utf-8") as f:
            tests = [json.loads(line) for line in f if line.strip()]
    except (OSError, ValueError) as e:
        count.failed.append(f"{build}: no test log: {e}")
        return
    if not tests:
        count.failed.append(f"{build}: no test ran")
    for test in tests:
        count_test(build, test, count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    count = Count()
    if args.cases:
        with open(args.cases, encoding="utf-8") as f:
            for line in f:
                verdict, _, name = line.strip().partition(" ")
                if verdict == "pass":
                    count.passed += 1
                else:
                    count.failed.append(name)
    for spec in args.logs:
        read_log(spec, count)
    if count.skipped:
        print(f"\nskipped: {len(count.skipped)}")
        print("\n".join(f"  {name}" for name in count.skipped))
        if os.environ.get("CI") == "true":
            count.failed += [f"{name} (skipped)" for name in count.skipped]
    if count.failed:
        print("\nfailed:")
        print("\n".join(f"  {name}" for name in count.failed))
    print(f"{count.passed} passed, {len(count.failed)} failed")
    sys.exit(1 if count.failed or count.passed == 0 else 0)


if __name__ == "__main__":
    main()
