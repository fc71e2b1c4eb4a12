# SPDX-License-Identifier: BSD-3-Clause
"""What the tests with a network of their own need, and what they say where they do not get it."""
import os
import subprocess
import sys
import unittest

import netns

HERE = os.path.dirname(os.path.abspath(__file__))
INTEROP = os.path.join(os.path.dirname(HERE), "interop", "run.py")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# Without rights, and where no user may have a namespace.
CONFINED = ("unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces && "
            "exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"", "-")
MAKES_A_WIRE = """
enter()
os.execvp("sh", ("sh", "-c", "ip link add name w0 type veth peer name w1 && ip link set w0 up && "
                 "mkdir /run/x && id -u"))
"""


class Needs(unittest.TestCase):

    def test_a_user_without_rights_has_a_network(self):
        """The file comes on standard input: that user may not be able to read this folder."""
        with open(netns.__file__, encoding="utf-8") as f:
            code = f.read() + MAKES_A_WIRE
        as_nobody = NOBODY if os.geteuid() == 0 else ()
        p = subprocess.run([*as_nobody, sys.executable, "-B", "-"], input=code, cwd="/", text=True,
                           capture_output=True, check=False)
        self.assertEqual((0, "0\n"), (p.returncode, p.stdout), p.stderr)

    def test_those_that_get_none_say_what_they_need(self):
        for program, status in ((os.path.join(HERE, "test_manage.py"), netns.SKIPPED),
                                (os.path.join(HERE, "test_transfer.py"), netns.SKIPPED),
                                (INTEROP, 0)):
            with self.subTest(program=program):
                p = subprocess.run([*CONFINED, sys.executable, "-B", program], text=True,
                                   capture_output=True, check=False,
                                   env=dict(os.environ, INTEROP_BUILD="/nonexistent"))
                self.assertEqual(status, p.returncode, p.stdout + p.stderr)
                self.assertRegex(p.stdout, "^1..0 # SKIP not run: needs root .CAP_SYS_ADMIN., or "
                                 "user namespaces, .*/max_user_namespaces is 0\n$")


if __name__ == "__main__":
    try:
        netns.check()
    except netns.NoNamespace as e:
        netns.skip(e)
    unittest.main(verbosity=2 if os.environ.get("VERBOSE") else 1)
