# SPDX-License-Identifier: BSD-3-Clause
"""Every scene, once with rocelane and once with the Linux kernel in the observed part.

rocelane has to do what the specification wants. What the kernel does is only written down: all of
it together is the matrix, and MATRIX.md has to be that (run.py --write makes it anew).
"""
import difflib
import os

import matrix
import scenes_cm  # noqa: F401
import scenes_requester  # noqa: F401
import scenes_requester_sends  # noqa: F401
import scenes_responder  # noqa: F401
import scenes_responder_repeats  # noqa: F401
import scenes_uc  # noqa: F401
import scenes_ud  # noqa: F401
from bench import InteropCase
from meeting import Meeting
from scene import SCENES, Play, open_scratch


class Played(InteropCase):
    told = {}       # (scene, "rocelane" or "linux") -> telling

    def setUp(self):
        super().setUp()
        b = self.bench
        if "scratch" not in b.host.regions:
            open_scratch(b.host, b.linux)

    def play(self, scene, observed):
        b = self.bench
        other = b.linux if observed is b.host else b.host
        ends = (other, observed) if scene.part == "responder" else (observed, other)
        p = (Meeting if scene.part == "connections" else Play)(b.wire, *ends, scene)
        try:
            telling = scene.fn(p)
            if os.environ.get("FRAMES"):
                print("\n".join("#     %.4f %r" % (s.time - self.began, s)
                                for s in b.wire.frames()[:60]), flush=True)
        finally:
            p.close()
        self.check_memory()
        return telling

    def play_again(self, scene, end, tries=3):
        """The guest is emulated on CPUs that others use, too: a scene that one end's pace has
        spoilt is played again, and says so. What is wrong stays wrong."""
        for left in reversed(range(tries)):
            try:
                telling = self.play(scene, end)
            except (AssertionError, LookupError, ValueError) as e:
                if left == 0:
                    raise
                telling = repr(e)
            else:
                if left == 0 or end is not self.bench.host or telling in scene.wants:
                    return telling
            self.bench.wire.clear()
            print("# %s %s again: %s" % (scene.name, end.name, telling[:200].replace("\n", " ")),
                  flush=True)
        raise AssertionError(scene.name)

    def both(self, scene):
        told = {}
        for end in (self.bench.host, self.bench.linux):
            if scene.only is None or scene.only[0] == end.name:
                told[end.name] = self.told[scene, end.name] = self.play_again(scene, end)
                if os.environ.get("VERBOSE"):
                    print("#   %s %s: %s" % (scene.name, end.name, told[end.name]), flush=True)
            else:
                self.told[scene, end.name] = scene.only[1]
        if "rocelane" in told:
            self.assertIn(told["rocelane"], scene.wants)


class Scenes(Played):
    """A test for each scene of responder and requester, made below."""


class Connections(Played):
    """And for each scene of connections."""


def _add(scene):
    def test(self):
        self.both(scene)
    test.__doc__ = "%s: %s" % (scene.rules, scene.title)
    case = Connections if scene.part == "connections" else Scenes
    setattr(case, "test_%s_%s" % (scene.part, scene.name), test)


for _scene in SCENES:
    _add(_scene)


class TheMatrix(InteropCase):
    """Comes after the scenes, by its name."""

    def test_is_as_committed(self):
        """rocelane's column is. The kernel's is told: its emulated machine's pace is in it."""
        told, kernel = Played.told, self.bench.guest.kernel
        if os.environ.get("INTEROP_WRITE") and len(told) == 2 * len(SCENES):
            matrix.write(SCENES, told, kernel)
        committed = matrix.committed()
        for part in matrix.PARTS:
            scenes = matrix.of(part, SCENES)
            if any((s, "linux") not in told for s in scenes):
                continue    # only some of the scenes were asked for
            now = matrix.rows(scenes, told)
            self.assertEqual(matrix.without_linux(committed, part), [row[:4] for row in now])
            rows = ["| %s |" % " | ".join(row) for row in now]
            for line in difflib.unified_diff(matrix.lines(committed, part), rows, n=0,
                                             lineterm=""):
                print("# MATRIX.md, Linux: " + line, flush=True)
