/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of what batch systems answer; see tool_manager_table.h. */
#include "lib/tool_manager_table.h"

#include "common/errtext.h"
#include "lib/tool_time.h"
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { NEAR = 10 /* seconds before the end count as the end: clocks may differ */ };

static const char digits[] = "0123456789";

bool manager_is_slurm_step(const char *id)
{
    size_t n = strspn(id, digits);
    if (n == 0) return false;
    id += n;
    if (*id == '_' || *id == '+') {
        n = strspn(id + 1, digits);
        if (n == 0) return false;
        id += n + 1;
    }
    return *id == '.' && id[1] && strspn(id + 1, digits) == strlen(id + 1);
}

/* The word after the id in the line of that job, or NULL; *rest is the remainder. Other
 * parts of the same array, or of a heterogeneous job, may have lines, too. */
static const char *manager_find_state(char *lines, const char *job, char **rest)
{
    char *line;
    while ((line = strsep(&lines, "\n")) != NULL) {
        line += strspn(line, " ");
        size_t n = strcspn(line, " ");
        if (strlen(job) != n || strncmp(line, job, n) != 0) continue;
        *rest = line + n + strspn(line + n, " ");
        return strsep(rest, " ");
    }
    return NULL;
}

int manager_read_squeue_end(char *output, const char *job, int64_t *end,
                            kvtree_error *err)
{
    static const char *const without[] = {"",        "N/A",  "NONE",
                                          "UNKNOWN", "NULL", "UNLIMITED"};
    char *rest;
    const char *text = manager_find_state(output, job, &rest);
    *end = 0;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!text || strcasecmp(text, without[i]) == 0) return 0;
    return tool_time_parse(text, time(NULL), end) == 0
               ? 0
               : err_set(err, -EINVAL, "squeue: \"%.60s\" is no time", text);
}

/* When the time of a job is over, Slurm starts nothing in it, though it may still run. */
static bool manager_is_past(const char *text)
{
    int64_t end, now = time(NULL);
    return text && tool_time_parse(text, now, &end) == 0 && end <= now + NEAR;
}

bool manager_read_squeue_over(char *output, const char *job)
{
    static const char *const ends[] = {
        "COMPLETING", "COMPLETED", "CANCELLED", "TIMEOUT",       "FAILED",    "NODE_FAIL",
        "PREEMPTED",  "DEADLINE",  "REVOKED",   "OUT_OF_MEMORY", "BOOT_FAIL", NULL};
    char *rest;
    bool over = false;
    const char *state = manager_find_state(output, job, &rest);
    for (size_t i = 0; state && ends[i]; i++)
        over |= strcmp(state, ends[i]) == 0;
    return over || (state && manager_is_past(rest));
}
