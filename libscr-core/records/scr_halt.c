/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions; see scr_halt.h. */
#include "records/scr_halt.h"

#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>

#define KEY_REASON "ExitReason"
#define KEY_LEFT "CheckpointsLeft"
#define KEY_AFTER "ExitAfter"
#define KEY_BEFORE "ExitBefore"
#define KEY_SECONDS "HaltSeconds"

int scr_halt_read(int prefix, kvtree *halt, char *err)
{
    char why[ERRTEXT_SIZE];
    int rc = kvtree_file_read(prefix, SCR_HALT_NAME, halt, why);
    return rc == 0 || rc == -ENOENT ? 0 : err_set(err, rc, "%s", why);
}

int scr_halt_write(int prefix, const kvtree *halt, char *err)
{
    return kvtree_file_write(prefix, SCR_HALT_NAME, halt, err);
}

int scr_halt_check(const kvtree *halt, int64_t now, char reason[128])
{
    int left;
    int64_t after, before, seconds = 0;
    const char *text = kvtree_elem_get_first_val(halt, KEY_REASON);
    if (text) {
        snprintf(reason, 128, "%s", text);
        for (char *c = reason; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
        return 1;
    }
    if (kvtree_util_get_int(halt, KEY_LEFT, &left) == 0 && left <= 0) {
        snprintf(reason, 128, "the number of checkpoints that was asked for is done");
        return 1;
    }
    if (kvtree_util_get_int64(halt, KEY_AFTER, &after) == 0 && now >= after) {
        snprintf(reason, 128, "the time ExitAfter has come");
        return 1;
    }
    kvtree_util_get_int64(halt, KEY_SECONDS, &seconds);
    if (kvtree_util_get_int64(halt, KEY_BEFORE, &before) != 0) return 0;
    /* no difference of two numbers out of a file: it may overflow */
    int64_t remain = before > now ? before - now : 0;
    if (remain > 0 && remain > seconds) return 0;
    snprintf(reason, 128, "%lld seconds are left until ExitBefore", (long long)remain);
    return 1;
}

int scr_halt_set_reason(kvtree *halt, const char *reason)
{
    if (!reason) return kvtree_unset(halt, KEY_REASON);
    return kvtree_util_set_str(halt, KEY_REASON, reason);
}

int scr_halt_count_checkpoint(kvtree *halt)
{
    int left;
    if (kvtree_util_get_int(halt, KEY_LEFT, &left) != 0 || left <= 0) return 0;
    kvtree_util_set_int(halt, KEY_LEFT, left - 1);
    return 1;
}
