/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions; see halt/halt.h. */
#include "halt/halt.h"

#include "common/errtext.h"
#include "common/number.h"
#include "common/record_size.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_REASON SCR_HALT_KEY_REASON
#define KEY_LEFT SCR_HALT_KEY_LEFT
#define KEY_AFTER SCR_HALT_KEY_AFTER
#define KEY_BEFORE SCR_HALT_KEY_BEFORE
#define KEY_SECONDS SCR_HALT_KEY_SECONDS

int scr_halt_read(int prefix, kvtree *halt, kvtree_error *err)
{
    kvtree_error why;
    int rc = kvtree_file_read(prefix, SCR_HALT_NAME, RECORD_SIZE_SMALL, halt, &why);
    return rc == 0 || rc == -ENOENT ? 0 : err_set(err, rc, "%s", why.text);
}

int scr_halt_write(int prefix, const kvtree *halt, kvtree_error *err)
{
    return kvtree_file_write(prefix, SCR_HALT_NAME, RECORD_SIZE_SMALL, halt, err);
}

int scr_halt_change(int prefix, scr_changer *change, void *arg, kvtree *halt,
                    kvtree_error *err)
{
    const scr_change c = {.prefix = prefix,
                          .name = SCR_HALT_NAME,
                          .limit = RECORD_SIZE_SMALL,
                          .make = 1,
                          .change = change,
                          .arg = arg};
    return scr_change_record(&c, halt, err);
}

/* ---- conditions ---- */

/* Only Slurm provides the end; other batch systems provide a walltime without its
 * start. */
#define END_VARIABLE "SLURM_JOB_END_TIME"

int scr_halt_find_end(scr_halt_end *end, kvtree_error *err)
{
    int64_t time;
    const char *text = getenv(END_VARIABLE);
    if (!text || !*text) return 0;
    if (number_int64(text, &time) != 0 || time <= 0)
        return err_set(err, -EINVAL, "%s=\"%.60s\" is not a time (seconds since 1970)",
                       END_VARIABLE, text);
    *end = (scr_halt_end){.time = time, .source = END_VARIABLE};
    return 0;
}

bool scr_halt_lacks_end(const kvtree *halt, const scr_halt_end *end)
{
    int64_t seconds = 0, before;
    kvtree_util_get_int64(halt, KEY_SECONDS, &seconds);
    return seconds > 0 && !end->time &&
           kvtree_util_get_int64(halt, KEY_BEFORE, &before) != 0;
}

/* Seconds from now to end, without overflow: a file can contain any numbers. */
static int64_t halt_seconds_until(int64_t end, int64_t now)
{
    if (end <= now) return 0;
    return now < 0 && end > INT64_MAX + now ? INT64_MAX : end - now;
}

/* The conditions that depend on an end time. */
static bool halt_check_ends(const kvtree *halt, const scr_halt_end *end, int64_t now,
                            char reason[SCR_HALT_REASON_SIZE])
{
    int64_t before, left, seconds = 0;
    kvtree_util_get_int64(halt, KEY_SECONDS, &seconds);
    if (kvtree_util_get_int64(halt, KEY_BEFORE, &before) == 0) {
        left = halt_seconds_until(before, now);
        if (left == 0 || left <= seconds) {
            snprintf(reason, SCR_HALT_REASON_SIZE,
                     "%lld seconds are left until ExitBefore", (long long)left);
            return true;
        }
    }
    if (!end->time || seconds <= 0) return false;
    left = halt_seconds_until(end->time, now);
    if (left > seconds) return false;
    snprintf(reason, SCR_HALT_REASON_SIZE,
             "%lld seconds are left until the allocation ends (%s)", (long long)left,
             end->source);
    return true;
}

bool scr_halt_check(const kvtree *halt, const scr_halt_end *end, int64_t now,
                    char reason[SCR_HALT_REASON_SIZE])
{
    int left;
    int64_t after;
    const char *text = kvtree_elem_get_first_val(halt, KEY_REASON);
    if (text) {
        snprintf(reason, SCR_HALT_REASON_SIZE, "%s", text);
        for (char *c = reason; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
        return true;
    }
    if (kvtree_util_get_int(halt, KEY_LEFT, &left) == 0 && left <= 0) {
        snprintf(reason, SCR_HALT_REASON_SIZE,
                 "the requested number of checkpoints is done");
        return true;
    }
    if (kvtree_util_get_int64(halt, KEY_AFTER, &after) == 0 && now >= after) {
        snprintf(reason, SCR_HALT_REASON_SIZE, "the time ExitAfter has come");
        return true;
    }
    return halt_check_ends(halt, end, now, reason);
}

bool scr_halt_is_request(const kvtree *halt, int64_t now)
{
    char reason[SCR_HALT_REASON_SIZE];
    const scr_halt_end none = {.time = 0};
    int64_t seconds = 0;
    kvtree_util_get_int64(halt, KEY_SECONDS, &seconds);
    return scr_halt_check(halt, &none, now, reason) ||
           (seconds > 0 && !kvtree_get(halt, SCR_HALT_KEY_OF_RUN));
}

int scr_halt_begin_seconds(kvtree *halt, int64_t seconds)
{
    int64_t known = 0, of_run = 0;
    kvtree_util_get_int64(halt, KEY_SECONDS, &known);
    int marked = kvtree_util_get_int64(halt, SCR_HALT_KEY_OF_RUN, &of_run) == 0;
    if (seconds > 0) {
        if (marked && known == seconds && of_run == seconds) return 0;
        int rc = kvtree_util_set_int64(halt, KEY_SECONDS, seconds);
        if (!rc) rc = kvtree_util_set_int64(halt, SCR_HALT_KEY_OF_RUN, seconds);
        return rc ? -ENOMEM : 1;
    }
    if (!kvtree_get(halt, SCR_HALT_KEY_OF_RUN)) return 0;
    kvtree_unset(halt, SCR_HALT_KEY_OF_RUN);
    if (marked && known == of_run) kvtree_unset(halt, KEY_SECONDS);
    return 1;
}

int scr_halt_add_reason(kvtree *halt, const char *reason)
{
    if (kvtree_elem_get_first_val(halt, KEY_REASON)) return 0;
    int rc = kvtree_util_set_str(halt, KEY_REASON, reason);
    return rc ? rc : 1;
}

int scr_halt_drop_own_reason(kvtree *halt)
{
    static const char *const own[] = {SCR_HALT_FINALIZED, SCR_HALT_SIGNAL,
                                      SCR_HALT_EXITED};
    const char *reason = kvtree_elem_get_first_val(halt, KEY_REASON);
    for (size_t i = 0; reason && i < sizeof own / sizeof *own; i++) {
        size_t length = strlen(own[i]);
        if (strncmp(reason, own[i], length) == 0 && strchr(":", reason[length]))
            return kvtree_unset(halt, KEY_REASON) == 0;
    }
    return 0;
}

int scr_halt_count_checkpoint(kvtree *halt)
{
    int left;
    if (kvtree_util_get_int(halt, KEY_LEFT, &left) != 0 || left <= 0) return 0;
    kvtree_util_set_int(halt, KEY_LEFT, left - 1);
    return 1;
}
