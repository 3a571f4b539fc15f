/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of datasets: short lists for people; all fields for programs and for a single
 * dataset. */
#include "commands/scr_index.h"
#include "lib/tool_time.h"

#include <stddef.h>
#include <time.h>

enum { SHORT = 5, ALL = 23 };

static const tool_column index_short_columns[SHORT] = {
    {"dset", "DSET", TOOL_NUMBER},     {"valid", "VALID", TOOL_TEXT},
    {"flushed", "FLUSHED", TOOL_TEXT}, {"current", "CUR", TOOL_TEXT},
    {"name", "NAME", TOOL_TEXT},
};

static const tool_column index_all_columns[ALL] = {
    {"dset", "dataset", TOOL_NUMBER},
    {"valid", "valid", TOOL_SWITCH},
    {"flushed", "flushed", TOOL_TEXT},
    {"current", "current", TOOL_SWITCH},
    {"name", "name", TOOL_TEXT},
    {"checkpoint", "checkpoint", TOOL_NUMBER},
    {"output", "output", TOOL_SWITCH},
    {"complete", "complete", TOOL_SWITCH},
    {"deleting", "being deleted", TOOL_SWITCH},
    {"attempts", "restarts without end", TOOL_NUMBER},
    {"fetched", "fetched", TOOL_TEXT},
    {"failed", "failed", TOOL_TEXT},
    {"reason", "not complete because", TOOL_TEXT},
    {"created", "created", TOOL_TEXT},
    {"ranks", "ranks", TOOL_NUMBER},
    {"files", "files", TOOL_NUMBER},
    {"size", "bytes", TOOL_NUMBER},
    {"bypass", "bypassed the cache", TOOL_SWITCH},
    {"scattered", "files outside of its directory", TOOL_SWITCH},
    {"user", "user", TOOL_TEXT},
    {"job_id", "job id", TOOL_TEXT},
    {"job_name", "job name", TOOL_TEXT},
    {"cluster", "cluster", TOOL_TEXT},
};

tool_table *index_table(int all)
{
    return all ? tool_table_new(index_all_columns, ALL)
               : tool_table_new(index_short_columns, SHORT);
}

static void index_row_text(tool_table *table, const char *text)
{
    tool_table_text(table, *text ? text : NULL);
}

/* Adds a time from the index, which has no time zone. */
static void index_row_time(tool_table *table, const char *text)
{
    char zoned[TOOL_TIME_SIZE];
    int64_t seconds;
    if (text && tool_time_parse(text, time(NULL), &seconds) == 0) {
        tool_time_text(seconds, zoned);
        text = zoned;
    }
    tool_table_text(table, text);
}

static void index_row_description(tool_table *table, const scr_dataset *d)
{
    char created[TOOL_TIME_SIZE];
    tool_time_text(d->created / 1000000, created);
    tool_table_text(table, d->created ? created : NULL);
    tool_table_number(table, d->ranks);
    tool_table_number(table, d->files);
    tool_table_number(table, (int64_t)d->size);
    tool_table_switch(table, d->bypass);
    tool_table_switch(table, d->scattered);
    index_row_text(table, d->user);
    index_row_text(table, d->job_id);
    index_row_text(table, d->job_name);
    index_row_text(table, d->cluster);
}

/* Adds a switch; empty without an index entry. */
static void index_row_switch(tool_table *table, int known, int on)
{
    if (known)
        tool_table_switch(table, on);
    else
        tool_table_text(table, NULL);
}

void index_row(tool_table *table, int all, const scr_index *index, const scr_dataset *d)
{
    scr_index_state state = {.complete = d->complete};
    int known = scr_index_look(index, d, &state) == 0;
    int valid = state.complete == 1 && !state.failed && !state.deleting;
    int current = scr_index_is_current(index, d->name);
    tool_table_number(table, d->id);
    if (all)
        tool_table_switch(table, valid);
    else
        tool_table_text(table, valid ? "YES" : "NO"); /* as scripts expect */
    tool_table_mark(table, valid ? TOOL_GOOD : TOOL_BAD);
    index_row_time(table, scr_index_time(index, d, SCR_INDEX_FLUSHED));
    if (all)
        index_row_switch(table, known, current);
    else
        tool_table_text(table, current ? "*" : NULL);
    tool_table_text(table, d->name);
    if (!all) return;
    tool_table_number(table, d->ckpt);
    tool_table_switch(table, d->output);
    tool_table_switch(table, state.complete == 1);
    index_row_switch(table, known, state.deleting);
    tool_table_number(table, state.attempts);
    index_row_time(table, scr_index_time(index, d, SCR_INDEX_FETCHED));
    index_row_time(table, scr_index_time(index, d, SCR_INDEX_FAILED));
    tool_table_text(table, scr_index_time(index, d, SCR_INDEX_REASON));
    index_row_description(table, d);
}
