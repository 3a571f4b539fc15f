/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of bytes in containers; see filo_layout.h. */
#include "src/filo_layout.h"

#include "src/filo_private.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "ctr."
#define SUFFIX ".scr"

int filo_container_name(const char *map, uint64_t container, char name[BENEATH_NAME_MAX])
{
    int n = snprintf(name, BENEATH_NAME_MAX, "%.*s" PREFIX "%" PRIu64 SUFFIX,
                     (int)beneath_folder_length(map), map, container);
    return n < BENEATH_NAME_MAX ? 0 : -ENAMETOOLONG;
}

int filo_container_owns(const char *map, const char *name)
{
    size_t folder = beneath_folder_length(map), prefix = strlen(PREFIX);
    if (strncmp(name, map, folder) != 0) return 0;
    name += folder;
    if (strncmp(name, PREFIX, prefix) != 0) return 0;
    name += prefix;
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, SUFFIX) == 0;
}

/* Number of containers that begin before offset. */
static uint64_t layout_begun(const filo_layout *layout, uint64_t offset)
{
    return offset / layout->limit + (offset % layout->limit != 0);
}

uint64_t filo_layout_containers(const filo_layout *layout)
{
    return layout_begun(layout, layout->total);
}

uint64_t filo_layout_size(const filo_layout *layout, uint64_t container)
{
    uint64_t left = layout->total - container * layout->limit;
    return left < layout->limit ? left : layout->limit;
}

void filo_layout_begins(const filo_layout *layout, uint64_t offset, uint64_t length,
                        uint64_t *first, uint64_t *end)
{
    *first = layout_begun(layout, offset);
    *end = layout_begun(layout, offset + length);
}

static int layout_add_segment(const filo_layout *layout, uint64_t at, uint64_t left,
                              filo_file *file)
{
    char name[BENEATH_NAME_MAX];
    filo_segment *s = &file->segment[file->segments];
    s->offset = at % layout->limit;
    s->length = layout->limit - s->offset;
    if (s->length > left) s->length = left;
    int rc = filo_container_name(layout->map, at / layout->limit, name);
    if (rc) return rc;
    s->container = strdup(name);
    if (!s->container) return -ENOMEM;
    file->segments++;
    return 0;
}

int filo_layout_pack(const filo_layout *layout, uint64_t offset, filo_file *file)
{
    uint64_t end = offset + file->size;
    uint64_t most =
        file->size ? (end - 1) / layout->limit - offset / layout->limit + 1 : 0;
    if (most > INT_MAX) return -EFBIG;
    file->packed = 1;
    file->segment = calloc((size_t)most + 1, sizeof *file->segment);
    if (!file->segment) return -ENOMEM;
    int rc = 0;
    while (offset < end && !rc) {
        rc = layout_add_segment(layout, offset, end - offset, file);
        if (!rc) offset += file->segment[file->segments - 1].length;
    }
    return rc;
}

int filo_layout_align(uint64_t align, int count, const uint64_t sizes[],
                      uint64_t offsets[], uint64_t *end)
{
    uint64_t at = 0;
    for (int i = 0; i < count; i++) {
        uint64_t over = at % align, start = over ? at + (align - over) : at;
        offsets[i] = at;
        if (sizes[i] == 0) continue;
        if (start > INT64_MAX || sizes[i] > INT64_MAX - start) return -EFBIG;
        offsets[i] = start;
        at = start + sizes[i];
    }
    *end = at;
    return 0;
}

int filo_layout_place(const char *map, uint64_t container, uint64_t offset,
                      filo_file *file)
{
    char name[BENEATH_NAME_MAX];
    file->packed = 1;
    file->segment = calloc(1, sizeof *file->segment);
    if (!file->segment) return -ENOMEM;
    if (file->size == 0) return 0;
    int rc = filo_container_name(map, container, name);
    if (rc) return rc;
    *file->segment = (filo_segment){strdup(name), offset, file->size};
    if (!file->segment->container) return -ENOMEM;
    file->segments = 1;
    return 0;
}
