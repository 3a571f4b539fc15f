/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_TESTS_ALONE_H
#define REDSET_TESTS_ALONE_H

/* One set in one directory, encoded by this process, and its remains after damage: for
 * tests without MPI. */

#include "scratch.h"
#include "src/header/header.h"
#include <kvtree/kvtree_util.h>
#include <zlib.h>

enum { ALONE_MOST = 8, ALONE_FILES = 2, ALONE_NAMES = ALONE_MOST * (ALONE_FILES + 1) };

/* Member m has "m/a" of 100 * (m + 1) bytes and "m/b", which is empty. */
typedef struct alone {
    char folder[64];
    redset_shape shape;
    redset_layout layout;
    int ranks[ALONE_MOST];
    int count; /* number of files, including redundancy files; the files of each member
                  are consecutive */
    char names[ALONE_NAMES][REDSET_NAME_SIZE];
    unsigned char *bytes[ALONE_NAMES]; /* as they were after the encode */
    size_t sizes[ALONE_NAMES];
} alone;

static inline uint64_t alone_size(int member)
{
    return 100 * ((uint64_t)member + 1);
}

static inline kvtree *alone_list(const alone *a, int member)
{
    char names[ALONE_FILES][16];
    size_t size;
    redset_file files[ALONE_FILES];
    memset(files, 0, sizeof files);
    for (int i = 0; i < ALONE_FILES; i++) {
        snprintf(names[i], sizeof names[i], "%d/%c", member, "ab"[i]);
        unsigned char *data = scratch_read(a->folder, names[i], &size);
        files[i].name = names[i];
        files[i].size = size;
        files[i].crc = (uint32_t)crc32_z(0, data, size);
        free(data);
    }
    redset_list list = {.rank = member, .count = ALONE_FILES, .files = files};
    return redset_list_to_tree(&list);
}

/* Computes the redundancy data of all members, by the flows. */
static inline void alone_encode(const alone *a, uint64_t chunk, unsigned char **data,
                                unsigned char **parity)
{
    int streams = redset_shape_data_streams(&a->shape);
    redset_flow *flow = redset_flow_new(&a->shape);
    for (int i = 0; i < a->shape.members; i++) {
        redset_flow_plan(flow, NULL, i);
        for (int t = 0; t < flow->targets; t++)
            for (int s = 0; s < flow->sources; s++)
                for (uint64_t at = 0; at < chunk; at++) {
                    const redset_flow_end *from = &flow->source[s],
                                          *to = &flow->target[t];
                    uint8_t byte = data[from->member][from->stream * chunk + at];
                    parity[to->member][(to->stream - streams) * chunk + at] ^=
                        redset_gf_multiply(redset_flow_coef(flow, t, s), byte);
                }
    }
    redset_flow_free(flow);
}

static inline void alone_remember(alone *a, const char *name)
{
    strcpy(a->names[a->count], name);
    a->bytes[a->count] = scratch_read(a->folder, name, &a->sizes[a->count]);
    a->count++;
}

static inline void alone_write(alone *a, int member, kvtree *tree, const void *parity,
                               size_t size)
{
    char name[REDSET_NAME_SIZE], path[1200];
    redset_error err;
    redset_place place = a->layout.place;
    place.member = member;
    redset_file_name(&place, name);
    scratch_path(path, a->folder, name);
    kvtree_util_set_crc32(tree, "CRC", crc32_z(0, parity, size));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (kvtree_fd_write(fd, KVTREE_ANY_SIZE, tree, &err) < 0 ||
        write(fd, parity, size) != (ssize_t)size)
        abort();
    close(fd);
    for (int i = 0; i < ALONE_FILES; i++) {
        char file[16];
        snprintf(file, sizeof file, "%d/%c", member, "ab"[i]);
        alone_remember(a, file);
    }
    alone_remember(a, name);
}

/* Fills a new directory with a set that is coded. */
static inline void alone_begin(alone *a, redset_scheme scheme, int members, int failures)
{
    unsigned char *data[ALONE_MOST], *parity[ALONE_MOST];
    kvtree *lists[ALONE_MOST] = {0};
    memset(a, 0, sizeof *a);
    a->shape = (redset_shape){scheme, members, failures};
    a->layout = (redset_layout){
        members, {scheme, 1, 0, 0, members, -1, failures}, a->ranks, false};
    scratch_make(a->folder);
    uint64_t chunk = redset_shape_chunk(&a->shape, alone_size(members - 1));
    size_t room = (size_t)(chunk * (uint64_t)members);
    for (int m = 0; m < members; m++) {
        char name[16];
        a->ranks[m] = m;
        snprintf(name, sizeof name, "%d/a", m);
        scratch_write(a->folder, name, alone_size(m), (unsigned)m);
        snprintf(name, sizeof name, "%d/b", m);
        scratch_write(a->folder, name, 0, 0);
        data[m] = calloc(room, 1);
        parity[m] = calloc(room, 1);
        scratch_bytes(data[m], alone_size(m), (unsigned)m);
    }
    alone_encode(a, chunk, data, parity);
    uint64_t number = 0;
    for (int m = 0; m < members; m++) {
        uint32_t crc = 0;
        lists[0] = alone_list(a, m);
        redset_tree_crc(lists[0], &crc);
        kvtree_delete(&lists[0]);
        number += crc;
    }
    for (int m = 0; m < members; m++) {
        for (int d = 0; d <= failures; d++)
            lists[d] = alone_list(a, (m + members - d) % members);
        kvtree *tree = redset_header_build(&a->layout, chunk, number, NULL, lists);
        alone_write(a, m, tree, parity[m], (size_t)(chunk * (uint64_t)failures));
        kvtree_delete(&tree);
        for (int d = 0; d <= failures; d++)
            kvtree_delete(&lists[d]);
    }
    for (int m = 0; m < members; m++) {
        free(data[m]);
        free(parity[m]);
    }
}

/* Restores file number i. */
static inline void alone_put(const alone *a, int i)
{
    char path[1200];
    scratch_path(path, a->folder, a->names[i]);
    unlink(path);
    scratch_put(path, a->bytes[i], a->sizes[i]);
}

/* 1 when file number i has the bytes that it had after the encode. */
static inline int alone_same(const alone *a, int i)
{
    size_t size;
    unsigned char *bytes = scratch_read(a->folder, a->names[i], &size);
    int same = bytes && size == a->sizes[i] && memcmp(bytes, a->bytes[i], size) == 0;
    free(bytes);
    return same;
}

static inline void alone_unlink(const alone *a, int i)
{
    char path[1200];
    scratch_path(path, a->folder, a->names[i]);
    unlink(path);
}

static inline void alone_end(alone *a)
{
    for (int i = 0; i < a->count; i++)
        free(a->bytes[i]);
    scratch_remove(a->folder);
}

#endif
