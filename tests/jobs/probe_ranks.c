/* SPDX-License-Identifier: BSD-3-Clause */
/* Restart with another number of ranks: each rank takes the files of its share of the
 * writers. */
#include "probe.h"

#include <scr.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };

/* Names of files, and the ranks that wrote them. */
struct list {
    int count, writer[MOST];
    char *name[MOST];
};

static void fail(struct result *r, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct result *r, int code, const char *format, ...)
{
    va_list args;
    if (r->code) return;
    va_start(args, format);
    vsnprintf(r->text, sizeof r->text, format, args);
    va_end(args);
    r->code = code;
    r->has_text = 1;
}

static void list_files(struct result *r, int writer, struct list *list)
{
    int files = 0, code = SCR_Dataset_files(writer, &files);
    if (code) fail(r, code, "SCR_Dataset_files(%d)", writer);
    for (int i = 0; i < files && !r->code && list->count < MOST; i++) {
        char name[SCR_MAX_FILENAME];
        uint64_t size;
        code = SCR_Dataset_file(writer, i, name, &size);
        if (code) fail(r, code, "SCR_Dataset_file(%d, %d)", writer, i);
        list->writer[list->count] = writer;
        list->name[list->count++] = strdup(name);
    }
}

/* The name that the program gave at output, in the current directory. */
static const char *given(const char *name)
{
    char cwd[PROBE_TEXT];
    size_t n = getcwd(cwd, sizeof cwd) ? strlen(cwd) : 0;
    return n && strncmp(name, cwd, n) == 0 && name[n] == '/' ? name + n + 1 : name;
}

static void compare_one(const struct probe *p, struct result *r, int writer,
                        const char *name, long size)
{
    struct probe as = *p;
    char text[PROBE_TEXT] = "";
    int code = SCR_Route_file(name, as.path);
    as.rank = writer;
    snprintf(as.file, sizeof as.file, "%s", given(name));
    if (code) fail(r, code, "SCR_Route_file(%s)", name);
    if (!code && probe_compare(&as, size, text)) fail(r, SCR_FAILURE, "%s", text);
}

void probe_take(struct probe *p, const char *arg, struct result *r)
{
    static struct list list;
    int ranks = 0, code = SCR_Dataset_ranks(&ranks);
    list.count = 0;
    if (code) fail(r, code, "SCR_Dataset_ranks");
    for (int w = p->rank; w < ranks && !r->code; w += p->ranks)
        list_files(r, w, &list);
    code = SCR_Fetch_files(list.count, (const char *const *)list.name);
    if (code) fail(r, code, "SCR_Fetch_files");
    for (int i = 0; i < list.count; i++) {
        if (!r->code) compare_one(p, r, list.writer[i], list.name[i], atol(arg));
        free(list.name[i]);
    }
    r->has_flag = 1;
    r->flag = ranks;
}

void probe_take_file(struct probe *p, const char *arg, struct result *r)
{
    int writer = 0;
    long size = 0;
    char name[SCR_MAX_FILENAME] = "";
    sscanf(arg, "%1023[^:]:%d:%ld", name, &writer, &size);
    const char *const names[] = {name};
    int code = SCR_Fetch_files(1, names);
    if (code)
        fail(r, code, "SCR_Fetch_files");
    else
        compare_one(p, r, writer, name, size);
}

void probe_fetch_files(struct probe *p, const char *arg, struct result *r)
{
    const char *const names[] = {arg};
    (void)p;
    r->code = SCR_Fetch_files(arg[0] == 0 ? 0 : arg[0] == '-' ? -1 : 1, names);
}

void probe_dataset_file(struct probe *p, const char *arg, struct result *r)
{
    int rank = 0, number = 0;
    char name[SCR_MAX_FILENAME] = "";
    uint64_t size = 0;
    (void)p;
    sscanf(arg, "%d:%d", &rank, &number);
    r->code = SCR_Dataset_file(rank, number, name, &size);
    r->has_text = 1;
    snprintf(r->text, sizeof r->text, "%s:%llu", given(name), (unsigned long long)size);
}
