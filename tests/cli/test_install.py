# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` puts where: found by Debian 12's ld.so, pkg-config, man, bash, systemd.

MESON is the command, ROCELANE_ROOT the source. Only configured, not built: what would be installed
where is known then.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

ROOT, MESON = os.environ["ROCELANE_ROOT"], os.environ["MESON"].split()


def path_without(program, folder):
    """A PATH on which everything is that was there, but `program`."""
    for where in os.environ["PATH"].split(os.pathsep):
        for name in os.listdir(where) if os.path.isdir(where) else ():
            if name != program and not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.join(where, name), os.path.join(folder, name))
    return folder


class Install(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="rl")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        os.mkdir(os.path.join(cls.dir, "bin"))
        # A machine without dpkg-dev, which meson asks for the name of the folder of libraries.
        cls.env = dict(os.environ,
                       PATH=path_without("dpkg-architecture", os.path.join(cls.dir, "bin")))
        cls.plan = cls.configure("default")

    @classmethod
    def configure(cls, name, *options):
        """Source or output to destination, without the marks of its kind."""
        build = os.path.join(cls.dir, name)
        done = subprocess.run([*MESON, "setup", build, ROOT, "-Dtests=false", *options],
                              env=cls.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        done = subprocess.run([*MESON, "introspect", build, "--installed"], env=cls.env,
                              stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def where(self, name, plan=None):
        """The one folder where a file of that name goes."""
        found = {os.path.dirname(to) for to in (plan or self.plan).values()
                 if os.path.basename(to) == name}
        self.assertEqual(1, len(found), (name, found))
        return found.pop()

    def test_the_library_is_where_it_is_looked_for(self):
        """/usr/local/lib64 is on no list of Debian's; /usr/local/lib is on both."""
        self.assertIsNone(shutil.which("dpkg-architecture", path=self.env["PATH"]))
        self.assertEqual("/usr/local/lib", self.where("librocelane.so.0.1.0"))
        self.assertEqual("/usr/local/lib/pkgconfig", self.where("librocelane.pc"))
        self.assertEqual("/usr/local/include", self.where("rocelane.h"))

    def test_another_folder_is_the_users_choice(self):
        plan = self.configure("chosen", "--prefix=/opt/r", "--libdir=lib/x86_64-linux-gnu")
        self.assertEqual("/opt/r/lib/x86_64-linux-gnu", self.where("librocelane.so.0.1.0", plan))
        self.assertEqual("/opt/r/lib/systemd/system", self.where("rocelane.service", plan))

    def test_programs_manuals_completion_and_unit(self):
        for name in ("rocelane", "rocelane-perf"):
            self.assertEqual("/usr/local/bin", self.where(name))
        for name in ("rocelane.8", "rocelanectl.1", "rocelane-perf.1"):
            self.assertEqual("/usr/local/share/man/man" + name[-1], self.where(name))
        self.assertIn("/usr/local/share/bash-completion/completions/rocelanectl",
                      self.plan.values())
        self.assertIn("/usr/local/bin/rocelanectl", self.plan.values())
        self.assertEqual("/usr/local/lib/systemd/system", self.where("rocelane.service"))
        self.assertIn("/usr/local/lib/sysusers.d/rocelane.conf", self.plan.values())
        self.assertIn("/usr/local/share/rocelane/grafana/rocelane.json", self.plan.values())

    def test_every_example_and_the_schema(self):
        examples = os.listdir(os.path.join(ROOT, "config/examples"))
        self.assertIn("apm.json", examples)
        for name in examples:
            self.assertIn("/usr/local/share/rocelane/examples/" + name, self.plan.values())
        self.assertEqual("/usr/local/share/rocelane", self.where("schema.json"))


tap.main()
