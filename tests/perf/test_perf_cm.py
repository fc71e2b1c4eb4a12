#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-perf -R: both ends meet by the connection manager, every byte checked."""
import json
import sys
import unittest

from test_perf import Ends, free_port


class ByConnectionManager(Ends):

    def test_by_the_connection_manager(self):
        """-R: no TCP; the server's address is its port's, whatever port the client goes by."""
        for test, args in (("send_bw", ("-q", "3")), ("read_bw", ()), ("write_bw", ("-c", "UC")),
                           ("send_bw", ("-e",))):
            with self.subTest(test=test, args=args):
                for out in self.pair(test, "-R", "-n", "300", "--validate", "--json", *args,
                                     host="10.77.0.2"):
                    r = json.loads(out)
                    self.assertEqual((300, 0), (r["iterations"], r["wrong_messages"]))
        self.pair("write_bw", "-R", "-n", "50", "-m", "512", host="10.77.0.2")
        port = str(free_port())         # without -d: by the address alone, from any port
        server = self.start("read_bw", "-R", "-p", port, "-n", "50")
        self.finish(self.start("read_bw", "-R", "-p", port, "-n", "50", "10.77.0.1"))
        self.finish(server)

    def test_what_the_connection_manager_refuses(self):
        _, err = self.finish(self.start("send_bw", "-R", "-c", "UD", "127.0.0.1"), 2)
        self.assertIn("-R", err)
        _, err = self.finish(self.start("send_bw", "-R", "192.0.2.1"), 1)
        self.assertIn("no port has a route", err)
        server = self.start("send_bw", "-R", "-D", "60", "-p", "4711")
        client = self.start("send_bw", "-R", "-D", "60", "-p", "4711", "10.77.0.2")
        self.assertIn("#bytes", self.until(client, "#bytes"))
        client.kill()
        _, err = self.finish(server, 1)
        self.assertNotEqual("", err)

    @staticmethod
    def until(proc, word):
        """The line of its output that has this word."""
        for line in proc.stdout:
            if word in line:
                return line
        return ""


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
