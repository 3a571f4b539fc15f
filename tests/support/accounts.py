# SPDX-License-Identifier: BSD-3-Clause
"""Users of this machine, for tests in which two users attack each other or cooperate."""
import os
import pwd
import sys

SKIP = 77


def two_accounts():
    """Returns two users that every system has. Skips the script if it may not become
    them."""
    found = [user for user in pwd.getpwall() if 0 < user.pw_uid < 60000 and user.pw_gid]
    if os.geteuid() != 0 or len(found) < 2:
        print("needs root, and two other accounts")
        sys.exit(SKIP)
    return found[:2]
