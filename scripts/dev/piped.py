# SPDX-License-Identifier: BSD-3-Clause
"""The end of a script whose reader may go away first ("| head"), or that Ctrl-C ends."""
import os
import signal
import sys


def run(main):
    """Exit with what main() returns, or with the signal's status and without a trace of Python."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    sys.exit(status)
