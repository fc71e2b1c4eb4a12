# SPDX-License-Identifier: BSD-3-Clause
"""Every operation, size and path MTU, either way round, with nothing wrong on the wire."""
import unittest

from bench import InteropCase, LinuxAsks, RocelaneAsks
from ends import SEND


class Operations:

    def test_send(self):
        """RESP-01, REQ-01: one byte and several packets."""
        link = self.link()
        link.run([link.request(SEND, size) for size in (1, 1024, 3000)])
        self.check_memory()


class RocelaneAsksLinux(RocelaneAsks, Operations, InteropCase):
    pass


class LinuxAsksRocelane(LinuxAsks, Operations, InteropCase):
    pass


if __name__ == "__main__":
    unittest.main()
