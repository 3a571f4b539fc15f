/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions; see scr_halt.h. */
#include "records/scr_halt.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
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

/* A writer that has no lock may replace the file again and again, but not for ever. */
#define ATTEMPTS 100

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

/* ---- changes ---- */

static int has_no_locks(int rc)
{
    return rc == -ENOLCK || rc == -ENOTSUP || rc == -EOPNOTSUPP || rc == -ENOSYS;
}

/* 1 written, 0 nothing to write, or -errno: -ESTALE when somebody without the lock was
 * faster. */
static int change_locked(int prefix, scr_halt_changer *change, void *arg, kvtree *halt,
                         char *err)
{
    int fd, rc = kvtree_file_lock_open_read(prefix, SCR_HALT_NAME, &fd, halt, err);
    if (rc) return rc;
    rc = change(halt, arg);
    if (rc <= 0) {
        io_close(&fd);
        return rc ? err_sys(err, rc, "change %s", SCR_HALT_NAME) : 0;
    }
    rc = kvtree_file_write_close_unlock(prefix, SCR_HALT_NAME, &fd, halt, err);
    return rc ? rc : 1;
}

static int change_unlocked(int prefix, scr_halt_changer *change, void *arg, kvtree *halt,
                           char *err)
{
    int rc = scr_halt_read(prefix, halt, err);
    if (rc) return rc;
    rc = change(halt, arg);
    if (rc < 0) return err_sys(err, rc, "change %s", SCR_HALT_NAME);
    return rc > 0 ? scr_halt_write(prefix, halt, err) : 0;
}

/* Whether there is anything to write; most often there is not, and no lock is needed. */
static int would_change(int prefix, scr_halt_changer *change, void *arg, kvtree *halt,
                        char *err)
{
    int rc = scr_halt_read(prefix, halt, err);
    if (rc) return rc;
    rc = change(halt, arg);
    return rc < 0 ? err_sys(err, rc, "change %s", SCR_HALT_NAME) : rc;
}

int scr_halt_change(int prefix, scr_halt_changer *change, void *arg, kvtree *halt,
                    char *err)
{
    int rc = would_change(prefix, change, arg, halt, err);
    if (rc <= 0) return rc;
    for (int i = 0; i < ATTEMPTS; i++) {
        kvtree_unset_all(halt);
        rc = change_locked(prefix, change, arg, halt, err);
        if (rc != -ESTALE) break;
    }
    if (has_no_locks(rc)) {
        kvtree_unset_all(halt);
        rc = change_unlocked(prefix, change, arg, halt, err);
    }
    return rc < 0 ? rc : 0;
}

/* ---- conditions ---- */

/* Others than Slurm set no such variable: their walltimes have no begin beside them. */
#define END_VARIABLE "SLURM_JOB_END_TIME"

int scr_halt_find_end(scr_halt_end *end, char *err)
{
    int64_t time;
    const char *text = getenv(END_VARIABLE);
    if (!text || !*text) return 0;
    if (number_int64(text, &time) != 0 || time <= 0)
        return err_set(err, -EINVAL, "%s=\"%.60s\" is no time (seconds since 1970)",
                       END_VARIABLE, text);
    *end = (scr_halt_end){.time = time, .source = END_VARIABLE};
    return 0;
}

int scr_halt_lacks_end(const kvtree *halt, const scr_halt_end *end)
{
    int64_t seconds = 0, before;
    kvtree_util_get_int64(halt, KEY_SECONDS, &seconds);
    return seconds > 0 && !end->time &&
           kvtree_util_get_int64(halt, KEY_BEFORE, &before) != 0;
}

/* Seconds from now to end; no difference of two numbers out of a file: it may overflow.
 */
static int64_t until(int64_t end, int64_t now)
{
    if (end <= now) return 0;
    return now < 0 && end > INT64_MAX + now ? INT64_MAX : end - now;
}

/* The conditions that count from an end. */
static int check_ends(const kvtree *halt, const scr_halt_end *end, int64_t now,
                      char reason[SCR_HALT_REASON_SIZE])
{
    int64_t before, left, seconds = 0;
    kvtree_util_get_int64(halt, KEY_SECONDS, &seconds);
    if (kvtree_util_get_int64(halt, KEY_BEFORE, &before) == 0) {
        left = until(before, now);
        if (left == 0 || left <= seconds) {
            snprintf(reason, SCR_HALT_REASON_SIZE,
                     "%lld seconds are left until ExitBefore", (long long)left);
            return 1;
        }
    }
    if (!end->time || seconds <= 0) return 0;
    left = until(end->time, now);
    if (left > seconds) return 0;
    snprintf(reason, SCR_HALT_REASON_SIZE,
             "%lld seconds are left until the allocation ends (%s)", (long long)left,
             end->source);
    return 1;
}

int scr_halt_check(const kvtree *halt, const scr_halt_end *end, int64_t now,
                   char reason[SCR_HALT_REASON_SIZE])
{
    int left;
    int64_t after;
    const char *text = kvtree_elem_get_first_val(halt, KEY_REASON);
    if (text) {
        snprintf(reason, SCR_HALT_REASON_SIZE, "%s", text);
        for (char *c = reason; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
        return 1;
    }
    if (kvtree_util_get_int(halt, KEY_LEFT, &left) == 0 && left <= 0) {
        snprintf(reason, SCR_HALT_REASON_SIZE,
                 "the number of checkpoints that was asked for is done");
        return 1;
    }
    if (kvtree_util_get_int64(halt, KEY_AFTER, &after) == 0 && now >= after) {
        snprintf(reason, SCR_HALT_REASON_SIZE, "the time ExitAfter has come");
        return 1;
    }
    return check_ends(halt, end, now, reason);
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
