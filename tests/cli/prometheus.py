# SPDX-License-Identifier: BSD-3-Clause
"""Prometheus' text format 0.0.4, read strictly.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
SAMPLE = re.compile(r"(%s)(?:\{(%s(?:,%s)*)\})? (\S+)" % (NAME, LABEL, LABEL))


class Family:
    def __init__(self, help_text):
        self.help, self.type, self.samples = help_text, None, {}


def parse(text):
    """Families by name, or ValueError: order, types, names, labels, doubles, values."""
    families, name = {}, None

    def need(good, line, why):
        if not good:
            raise ValueError(f"{why}: {line!r}")

    need(text.endswith("\n"), text[-40:], "no newline at the end")
    for line in text.split("\n")[:-1]:
        found = re.fullmatch(r"# (HELP|TYPE) (%s) (.+)" % NAME, line)
        if found and found[1] == "HELP":
            name = found[2]
            need(name not in families, line, "a second time, or not in one group")
            need("\\" not in re.sub(r"\\\\|\\n", "", found[3]), line, "wrong escape")
            families[name] = Family(found[3])
        elif found:
            need(found[2] == name and families[name].type is None, line, "TYPE without its HELP")
            need(not families[name].samples, line, "TYPE behind samples")
            need(found[3] in ("counter", "gauge"), line, "a type that is not used here")
            families[name].type = found[3]
        else:
            sample = SAMPLE.fullmatch(line)
            need(sample, line, "no sample")
            need(sample[1] == name and families[name].type, line, "a sample outside of its family")
            labels = re.findall(LABEL, sample[2] or "")
            need(len(dict(labels)) == len(labels), line, "a label twice")
            key = tuple(sorted(labels))
            need(key not in families[name].samples, line, "the same labels twice")
            families[name].samples[key] = float(sample[sample.re.groups])
    return families


def faults_of(families):
    """Practice: https://prometheus.io/docs/practices/naming/. Faults as a list."""
    faults = []
    for name, f in families.items():
        if not name.startswith("rocelane_"):
            faults.append(f"{name}: not rocelane's")
        if (f.type == "counter") != name.endswith("_total"):
            faults.append(f"{name}: {f.type}s end in _total, others do not")
        if len({tuple(k for k, _ in s) for s in f.samples}) > 1:
            faults.append(f"{name}: sum() adds up different things: {sorted(f.samples)}")
    return faults
