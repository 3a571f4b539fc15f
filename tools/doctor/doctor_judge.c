/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges the facts of a site; see doctor.h. */
#include "doctor/doctor.h"

#include "report/status.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Limits that suffice for a run on one machine. */
#define SHARED_LEAST (256 << 20)
#define FILES_LEAST 1024
#define CLOCK_MOST 2.0

typedef struct rows {
    doctor_row *list;
    int count;
} rows;

static void rows_add(rows *r, const char *check, tool_mark mark, int message,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

static void rows_add(rows *r, const char *check, tool_mark mark, int message,
                     const char *format, ...)
{
    doctor_row *row = &r->list[r->count++];
    va_list args;
    row->check = check;
    row->mark = mark;
    row->message = mark == TOOL_GOOD ? -1 : message;
    va_start(args, format);
    vsnprintf(row->text, sizeof row->text, format, args);
    va_end(args);
}

static void judge_write(rows *r, const doctor_facts *f)
{
    if (f->write)
        rows_add(r, "writing", TOOL_BAD, TOOL_MSG_DIRECTORY_UNUSABLE,
                 "no file can be created in the prefix directory: %s",
                 strerror(-f->write));
    else
        rows_add(r, "writing", TOOL_GOOD, -1,
                 "files can be created in the prefix directory");
}

static void judge_locks(rows *r, const doctor_facts *f)
{
    if (f->write) return;
    if (f->lock)
        rows_add(r, "locks", TOOL_WARN, TOOL_MSG_SITE_LOCKS_MISSING,
                 "the prefix directory has none: %s", strerror(-f->lock));
    else if (!f->is_exclusive)
        rows_add(r, "locks", TOOL_WARN, TOOL_MSG_SITE_LOCKS_MISSING,
                 "two processes can lock the same file of the prefix directory");
    else
        rows_add(r, "locks", TOOL_GOOD, -1,
                 "a lock excludes a second process on this machine");
}

static void judge_clock(rows *r, const doctor_facts *f)
{
    if (f->write) return;
    if (fabs(f->clock) > CLOCK_MOST)
        rows_add(r, "clock", TOOL_WARN, TOOL_MSG_SITE_CLOCK_DIFFERS,
                 "the file system of the prefix directory is %.0f s %s", fabs(f->clock),
                 f->clock > 0 ? "ahead" : "behind");
    else
        rows_add(r, "clock", TOOL_GOOD, -1, "agrees with that of the prefix directory");
}

static void judge_space(rows *r, const char *check, int64_t free, int64_t wanted)
{
    char is[SCR_AMOUNT_SIZE], want[SCR_AMOUNT_SIZE];
    if (free < 0)
        rows_add(r, check, TOOL_WARN, TOOL_MSG_SITE_SPACE_LOW, "it is not known");
    else if (free < wanted)
        rows_add(r, check, TOOL_WARN, TOOL_MSG_SITE_SPACE_LOW,
                 "%s are free, less than %s", scr_text_bytes((double)free, is),
                 scr_text_bytes((double)wanted, want));
    else
        rows_add(r, check, TOOL_GOOD, -1, "%s are free",
                 scr_text_bytes((double)free, is));
}

/* Data of a cache in memory counts as memory of the job. */
static void judge_memory(rows *r, const doctor_facts *f)
{
    char is[SCR_AMOUNT_SIZE], most[SCR_AMOUNT_SIZE];
    int64_t least = f->limit >= 0 && f->limit < f->memory ? f->limit : f->memory;
    if (f->in_memory && least >= 0 && f->cache_free > least)
        rows_add(r, "memory", TOOL_WARN, TOOL_MSG_SITE_MEMORY_SMALL,
                 "the cache is in memory and could take %s, but %s are for this session",
                 scr_text_bytes((double)f->cache_free, is),
                 scr_text_bytes((double)least, most));
    else if (least < 0)
        rows_add(r, "memory", TOOL_GOOD, -1, "no limit is known");
    else
        rows_add(r, "memory", TOOL_GOOD, -1, "%s%s", scr_text_bytes((double)least, is),
                 f->in_memory ? ", which the program shares with its cache" : "");
}

static void judge_limits(rows *r, const doctor_facts *f)
{
    char is[SCR_AMOUNT_SIZE];
    if (f->shared >= 0 && f->shared < SHARED_LEAST)
        rows_add(r, "/dev/shm", TOOL_WARN, TOOL_MSG_SITE_MEMORY_SMALL,
                 "it has only %s; MPI needs it for ranks of one node",
                 scr_text_bytes((double)f->shared, is));
    else if (f->shared < 0)
        rows_add(r, "/dev/shm", TOOL_WARN, TOOL_MSG_SITE_MEMORY_SMALL, "it is missing");
    else
        rows_add(r, "/dev/shm", TOOL_GOOD, -1, "%s",
                 scr_text_bytes((double)f->shared, is));
    if (f->files >= 0 && f->files < FILES_LEAST)
        rows_add(r, "open files", TOOL_WARN, TOOL_MSG_SITE_FILES_FEW,
                 "%" PRId64 " for each process", f->files);
    else
        rows_add(r, "open files", TOOL_GOOD, -1, "%" PRId64 " for each process",
                 f->files);
}

int doctor_judge(const doctor_facts *f, doctor_row list[DOCTOR_ROWS])
{
    rows r = {list, 0};
    judge_write(&r, f);
    judge_locks(&r, f);
    judge_clock(&r, f);
    judge_space(&r, "space", f->prefix_free, f->wanted);
    judge_space(&r, "cache", f->cache_free, f->wanted);
    judge_memory(&r, f);
    judge_limits(&r, f);
    return r.count;
}

/* ---- messages ---- */

const char *doctor_remedy(int message)
{
    static const char *const remedies[] = {
#define MESSAGE(identifier, severity, meaning, cause, remedy) remedy,
#include "report/messages.def"
/* clang-format off */
#include "lib/messages.def"
    /* clang-format on */
#undef MESSAGE
    };
    return message < 0 ? NULL : remedies[message];
}

int doctor_message(const char *identifier)
{
    static const char *const identifiers[] = {
#define MESSAGE(identifier, severity, meaning, cause, remedy) #identifier,
#include "report/messages.def"
/* clang-format off */
#include "lib/messages.def"
    /* clang-format on */
#undef MESSAGE
    };
    for (size_t i = 0; i < sizeof identifiers / sizeof *identifiers; i++)
        if (strcmp(identifiers[i], identifier) == 0) return (int)i;
    return -1;
}
