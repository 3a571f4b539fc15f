# SPDX-License-Identifier: BSD-3-Clause
"""Users of this machine, for tests in which one of them attacks the other, or works with the other."""
import os
import pwd
import sys

SKIP = 77


def two_accounts():
    """Two that every system has. The script ends as skipped where it may not become them."""
    found = [user for user in pwd.getpwall() if 0 < user.pw_uid < 60000 and user.pw_gid]
    if os.geteuid() != 0 or len(found) < 2:
        print("needs root, and two other accounts")
        sys.exit(SKIP)
    return found[:2]
