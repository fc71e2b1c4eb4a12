# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's rping."""


def status(ended, out):
    """Its exit status. Before rdma-core 61 its thread for events can ask once more after the main
    thread has closed their channel; then it fails, although all went well: that counts as 0."""
    return 0 if ended == 255 and "rdma_get_cm_event: " in out else ended
