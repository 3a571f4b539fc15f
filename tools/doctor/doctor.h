/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

/* Checks of a site before the first run. First, facts of this machine and of the prefix
 * directory are measured; then a pure function judges them. */

#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include <stdbool.h>
#include <stdint.h>

/* Negative numbers are unknown. */
typedef struct doctor_facts {
    int write;         /* 0, or -errno from writing a file in the prefix directory */
    int lock;          /* 0, or -errno from locking that file */
    bool is_exclusive; /* a second lock was refused */
    double clock;      /* seconds by which the file system of the prefix directory is
                        * ahead */
    int64_t prefix_free, wanted; /* bytes */
    int64_t cache_free;          /* bytes in SCR_CACHE_BASE */
    bool in_memory;              /* the cache is in memory */
    int64_t memory, limit; /* bytes of this machine; bytes that the cgroup of this session
                            * may use */
    int64_t shared;        /* size of /dev/shm in bytes, which MPI uses, too */
    int64_t files;         /* maximum number of open files of a process */
} doctor_facts;

/* Measures the facts. Removes the files that it creates in the prefix directory. */
void doctor_measure(const tool_prefix *prefix, doctor_facts *facts);

typedef struct doctor_row {
    const char *check;
    tool_mark mark; /* good, warn or bad */
    char text[400];
    int message; /* a tool_message with a useful remedy; -1: none */
} doctor_row;

enum { DOCTOR_ROWS = 16 };

/* Adds a row for each check; returns the number of rows. Pure. */
int doctor_judge(const doctor_facts *facts, doctor_row rows[DOCTOR_ROWS]);

/* Adds a row for each command that checks a part: configuration, directories, programs;
 * returns the number of rows. */
int doctor_ask_commands(const tool_prefix *prefix, doctor_row *rows);

/* Returns the remedy of a message, as in docs/messages.md. */
const char *doctor_remedy(int message);

/* Returns the message with the identifier; -1: none. */
int doctor_message(const char *identifier);

#endif
