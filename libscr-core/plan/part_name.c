/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of parts of files; see plan/part_name.h. */
#include "plan/part_name.h"

#include "plan/dataset.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_MARK ".scr-part."

int scr_part_name(const char *file, uint64_t offset, size_t size, char *name)
{
    int n = snprintf(name, size, "%s" PART_MARK "%" PRIu64, file, offset);
    return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* Accepts only digits that scr_part_name writes: no leading zeros, nothing above
 * INT64_MAX. */
size_t scr_part_parse(const char *name, uint64_t *offset)
{
    const char *mark = NULL;
    for (const char *next = strstr(name, PART_MARK); next;
         next = strstr(next + 1, PART_MARK))
        mark = next;
    const char *digits = mark ? mark + strlen(PART_MARK) : "";
    const size_t n = strspn(digits, "0123456789");
    if (!mark || mark == name || mark[-1] == '/' || n == 0 || n > 19 || digits[n])
        return 0;
    if (digits[0] == '0' && n > 1) return 0;
    *offset = strtoull(digits, NULL, 10);
    return *offset > INT64_MAX ? 0 : (size_t)(mark - name);
}

bool scr_part_name_is_reserved(const char *name)
{
    uint64_t offset;
    return scr_name_is_reserved(name) || scr_part_parse(name, &offset) > 0;
}

bool scr_part_is(const filo_file *file)
{
    uint64_t offset;
    const size_t n =
        file->packed && file->segments == 1 ? scr_part_parse(file->name, &offset) : 0;
    return n > 0 && file->segment->offset == offset &&
           strlen(file->segment->container) == n &&
           strncmp(file->segment->container, file->name, n) == 0;
}

int scr_part_place(filo_file *file)
{
    uint64_t offset;
    const size_t n = scr_part_parse(file->name, &offset);
    if (n == 0) return 0;
    file->packed = 1;
    file->segment = calloc(1, sizeof *file->segment);
    if (!file->segment) return -ENOMEM;
    file->segments = 1;
    *file->segment = (filo_segment){strndup(file->name, n), offset, file->size};
    return file->segment->container ? 0 : -ENOMEM;
}

static bool part_is_shared(const filo_file *file)
{
    return file->shared != 0;
}

/* Frees the files that satisfy `is`, and removes them from the list. */
static int part_drop(int count, filo_file *files, bool is(const filo_file *))
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        filo_file f = files[i];
        if (!is(&f)) {
            files[kept++] = f;
            continue;
        }
        for (int s = 0; s < f.segments; s++)
            free(f.segment[s].container);
        free(f.segment);
        free(f.name);
        free(f.local);
    }
    return kept;
}

int scr_part_drop_shared(int count, filo_file *files)
{
    return part_drop(count, files, part_is_shared);
}

int scr_part_drop_parts(int count, filo_file *files)
{
    return part_drop(count, files, scr_part_is);
}
