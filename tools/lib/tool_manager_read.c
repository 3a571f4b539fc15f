/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of the output of batch systems; see tool_manager_table.h. */
#include "lib/tool_manager_table.h"

#include "common/errtext.h"
#include "common/number.h"
#include "lib/tool_time.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { NEAR = 10 /* seconds before the end that count as past: clocks may differ */ };

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

/* Returns the word after the id in the line of that job, or NULL; *rest is the remainder
 * of the line. Other parts of the same array or heterogeneous job may have lines, too. */
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
               : err_set(err, -EINVAL, "squeue: \"%.60s\" is not a time", text);
}

/* ---- PBS ---- */

/* Returns the value in a line "    name = value", or NULL. Values of other attributes may
 * contain the name. */
static const char *manager_find_attribute(const char *output, const char *name,
                                          char *text, size_t size)
{
    size_t n = strlen(name);
    for (const char *line = output; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n\t ");
        if (strncmp(line, name, n) != 0 || strncmp(line + n, " = ", 3) != 0) continue;
        line += n + 3;
        snprintf(text, size, "%.*s", (int)strcspn(line, "\r\n"), line);
        return text;
    }
    return NULL;
}

/* Parses "36:00:00", hours first; false: not a duration. */
static bool manager_parse_duration(const char *text, int64_t *seconds)
{
    long hours, minutes, rest;
    int used = 0;
    if (sscanf(text, "%ld:%2ld:%2ld%n", &hours, &minutes, &rest, &used) != 3 ||
        text[used] || hours < 0 || hours > 1000000 || minutes < 0 || rest < 0)
        return false;
    *seconds = (hours * 60 + minutes) * 60 + rest;
    return true;
}

/* Adds the time limit to the start, "stime". A job without a limit has no end. */
int manager_read_qstat_end(char *output, const char *job, int64_t *end, kvtree_error *err)
{
    char start[64], limit[64];
    struct tm tm = {.tm_isdst = -1};
    int64_t seconds;
    (void)job;
    *end = 0;
    if (!manager_find_attribute(output, "Resource_List.walltime", limit, sizeof limit))
        return 0;
    if (!manager_find_attribute(output, "stime", start, sizeof start))
        return err_set(err, -EINVAL, "qstat: no start of the job (stime)");
    const char *rest = strptime(start, "%a %b %d %H:%M:%S %Y", &tm);
    tm.tm_isdst = -1;
    time_t begin = rest && !*rest ? mktime(&tm) : (time_t)-1;
    if (begin == (time_t)-1 || !manager_parse_duration(limit, &seconds))
        return err_set(err, -EINVAL, "qstat: \"%s\" and \"%s\" are not times", start,
                       limit);
    *end = begin + seconds;
    return 0;
}

/* ---- LSF ---- */

/* Reads "12:34 L": hours and minutes until the limit; "E": an estimate; "-": no limit. */
int manager_read_bjobs_end(char *output, const char *job, int64_t *end, kvtree_error *err)
{
    long hours, minutes;
    int used = 0;
    (void)job;
    *end = 0;
    output += strspn(output, " \n");
    size_t n = strcspn(output, "\n");
    while (n > 0 && output[n - 1] == ' ')
        n--;
    output[n] = 0;
    if (!*output || strcmp(output, "-") == 0 || strcmp(output, "- -") == 0) return 0;
    if (sscanf(output, "%ld:%2ld%n", &hours, &minutes, &used) != 2 || hours < 0 ||
        hours > 1000000 || minutes < 0)
        return err_set(err, -EINVAL, "bjobs: \"%.60s\" is not a time", output);
    if (strcmp(output + used, " E") == 0) return 0;
    *end = time(NULL) + (hours * 60 + minutes) * 60;
    return 0;
}

/* ---- Flux ---- */

/* Reads the remaining seconds; UINT_MAX or "infinity": no limit. */
int manager_read_timeleft(char *output, const char *job, int64_t *end, kvtree_error *err)
{
    int64_t seconds;
    (void)job;
    *end = 0;
    output[strcspn(output, "\n")] = 0;
    if (strcmp(output, "infinity") == 0) return 0;
    if (number_int64(output, &seconds) != 0 || seconds < 0)
        return err_set(err, -EINVAL, "flux job timeleft: \"%.60s\" is not a time",
                       output);
    if (seconds < UINT32_MAX) *end = time(NULL) + seconds;
    return 0;
}

/* ---- Slurm: over ---- */

/* When the time of a job is over, Slurm starts nothing in it, even if it still runs. */
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
