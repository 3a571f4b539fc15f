/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

/* Checks of a site before the first run: facts of this machine and of the prefix
 * directory are measured first, and a pure function judges them. */

#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include <stdbool.h>
#include <stdint.h>

/* Numbers below 0 are unknown. */
typedef struct doctor_facts {
    int write;         /* 0, or -errno of writing a file in the prefix directory */
    int lock;          /* 0, or -errno of locking it */
    bool is_exclusive; /* a second lock was refused */
    double clock;      /* seconds by which its file system is ahead */
    int64_t prefix_free, wanted; /* bytes */
    int64_t cache_free;          /* bytes in SCR_CACHE_BASE */
    bool in_memory;              /* the cache is in memory */
    int64_t memory, limit; /* bytes of this machine, and for this session's cgroup */
    int64_t shared;        /* bytes of /dev/shm, which MPI uses, too */
    int64_t files;         /* most open files of a process */
} doctor_facts;

/* Measures. Files that it makes in the prefix directory are gone afterwards. */
void doctor_measure(const tool_prefix *prefix, doctor_facts *facts);

typedef struct doctor_row {
    const char *check;
    tool_mark mark; /* good, warn or bad */
    char text[400];
    int message; /* a tool_message, whose remedy helps; -1: none */
} doctor_row;

enum { DOCTOR_ROWS = 16 };

/* Adds a row for each check; returns how many there are. Pure. */
int doctor_judge(const doctor_facts *facts, doctor_row rows[DOCTOR_ROWS]);

/* Adds a row for each command that checks a part: configuration, node, programs. */
int doctor_ask_commands(const tool_prefix *prefix, doctor_row *rows);

/* What to do about a message, as docs/messages.md tells. */
const char *doctor_remedy(int message);

/* The message of an identifier; -1: there is none. */
int doctor_message(const char *identifier);

#endif
