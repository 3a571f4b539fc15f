/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a redundancy file. */
#include "src/header/header.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/record_size.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

/* Returns the path of a list: CURRENT, PARTNER, and PARTNERS <distance> from 2 on. */
static const char *header_list_path(int distance, char path[32])
{
    if (distance < 2) return distance ? "PARTNER" : "CURRENT";
    snprintf(path, 32, "PARTNERS %d", distance);
    return path;
}

kvtree *redset_header_list(const kvtree *header, int distance)
{
    if (distance > 1) return redset_tree_at(kvtree_get(header, "PARTNERS"), distance);
    return kvtree_get(header, distance ? "PARTNER" : "CURRENT");
}

/* Stores a copy of source (may be NULL) under a path. */
static int header_set_copy(kvtree *tree, const char *path, const kvtree *source)
{
    kvtree *copy = kvtree_setf(tree, NULL, path);
    return copy ? kvtree_merge(copy, source) : -ENOMEM;
}

int redset_encode_to_tree(uint64_t encode, kvtree *tree)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)encode);
    return kvtree_util_set_str(tree, "ENCODE", text);
}

int redset_encode_from_tree(const kvtree *tree, uint64_t *encode, redset_error *err)
{
    char *text;
    if (kvtree_util_get_str(tree, "ENCODE", &text) != 0 ||
        strspn(text, "0123456789abcdef") != 16 || text[16])
        return err_set(err, -EBADMSG, "no valid ENCODE");
    *encode = strtoull(text, NULL, 16);
    return 0;
}

kvtree *redset_header_build(const redset_layout *layout, uint64_t chunk, uint64_t encode,
                            const kvtree *about, kvtree *const lists[])
{
    char path[32];
    kvtree *tree = kvtree_new();
    int rc = tree ? header_set_copy(tree, "DSET", about) : -ENOMEM;
    if (!rc) rc = redset_layout_to_tree(layout, tree);
    if (!rc) rc = kvtree_util_set_bytecount(tree, "CHUNK", chunk);
    for (int d = 0; !rc && d <= layout->place.failures; d++)
        rc = header_set_copy(tree, header_list_path(d, path), lists[d]);
    /* ENCODE and CRC come last, so that setting the real values does not change the order
     * of keys */
    if (!rc) rc = redset_encode_to_tree(encode, tree);
    if (!rc && !layout->unchecked) rc = kvtree_util_set_crc32(tree, "CRC", 0);
    if (rc) kvtree_delete(&tree);
    return tree;
}

/* ---- checks ---- */

/* Parses the list of the process (distance 0) or of a neighbor, whose files must fit into
 * the chunks of the set. */
static int header_parse_list(const redset_header *header, int distance, redset_error *err)
{
    char path[32];
    const char *name = header_list_path(distance, path);
    redset_list *list = &header->list[distance];
    int rc = redset_list_from_tree(redset_header_list(header->tree, distance),
                                   header->layout.unchecked, list, err);
    if (rc) return err_wrap(err, rc, "%s", name);
    if (redset_shape_chunk(&header->shape, list->size) > header->chunk)
        return err_set(err, -EBADMSG, "%s has more bytes than %d chunks of %llu", name,
                       redset_shape_data_streams(&header->shape),
                       (unsigned long long)header->chunk);
    if (distance == 0) return 0;
    int rank = redset_layout_neighbor(&header->layout, -distance);
    if (list->rank == rank) return 0;
    return err_set(err, -EBADMSG, "%s is of rank %d, not %d", name, list->rank, rank);
}

/* No protected file may have the name of the redundancy file. */
static int header_check_names(const redset_header *header, redset_error *err)
{
    char name[REDSET_NAME_SIZE];
    redset_file_name(&header->layout.place, name);
    for (int i = 0; i < header->list[0].count; i++)
        if (strcmp(header->list[0].files[i].name, name) == 0)
            return err_set(err, -EBADMSG, "%s lists itself", name);
    return 0;
}

static int header_parse_lists(redset_header *header, redset_error *err)
{
    int failures = header->shape.failures, rc = 0;
    int more = kvtree_size(kvtree_get(header->tree, "PARTNERS"));
    if (failures == 0 && kvtree_get(header->tree, "PARTNER"))
        return err_set(err, -EBADMSG, "PARTNER in a set without redundancy");
    if (more != (failures > 1 ? failures - 1 : 0))
        return err_set(err, -EBADMSG, "PARTNERS has %d lists for %d failures", more,
                       failures);
    for (int d = 0; !rc && d <= failures; d++) {
        rc = header_parse_list(header, d, err);
        if (!rc && d == 0 && redset_layout_find(&header->layout, header->list[0].rank))
            rc = err_set(err, -EBADMSG, "CURRENT is of rank %d, which is not in GROUP",
                         header->list[0].rank);
    }
    return rc ? rc : header_check_names(header, err);
}

/* Refuses unknown keys, which might change the meaning of the others. */
static int header_check_keys(const redset_header *header, redset_error *err)
{
    int failures = header->shape.failures, keys = 8; /* with CRC or CHECKSUMS */
    if (failures > 0) keys += header->shape.scheme == REDSET_XOR ? 1 : 2;
    if (failures > 1) keys++;
    return redset_tree_check_size(header->tree, keys, err);
}

uint64_t redset_header_part(const redset_header *header, int part)
{
    return redset_shape_is_coded(&header->shape) ? header->chunk
                                                 : header->list[part + 1].size;
}

static int header_sum_data(redset_header *header, redset_error *err)
{
    for (int i = 0; i < header->shape.failures; i++) {
        uint64_t part = redset_header_part(header, i);
        if (part > INT64_MAX - header->data)
            return err_set(err, -EBADMSG, "redundancy data of more than 2^63 bytes");
        header->data += part;
    }
    return 0;
}

static int header_parse_numbers(redset_header *header, redset_error *err)
{
    unsigned long chunk, crc = 0;
    if (kvtree_util_get_bytecount(header->tree, "CHUNK", &chunk) != 0 ||
        chunk > INT64_MAX || (chunk > 0 && !redset_shape_is_coded(&header->shape)))
        return err_set(err, -EBADMSG, "no valid CHUNK");
    if (!header->layout.unchecked &&
        (kvtree_util_get_crc32(header->tree, "CRC", &crc) != 0 || crc > UINT32_MAX))
        return err_set(err, -EBADMSG, "no valid CRC");
    header->chunk = chunk;
    header->crc = (uint32_t)crc;
    return redset_encode_from_tree(header->tree, &header->encode, err);
}

static int header_parse_all(redset_header *header, redset_error *err)
{
    if (!kvtree_get(header->tree, "DSET")) return err_set(err, -EBADMSG, "no DSET");
    int rc = redset_layout_from_tree(header->tree, &header->layout, err);
    if (rc) return rc;
    header->shape = redset_place_shape(&header->layout.place);
    header->list = calloc((size_t)header->shape.failures + 1, sizeof *header->list);
    if (!header->list) return err_sys(err, -ENOMEM, "lists of files");
    rc = header_parse_numbers(header, err);
    if (!rc) rc = header_parse_lists(header, err);
    if (!rc) rc = header_check_keys(header, err);
    return rc ? rc : header_sum_data(header, err);
}

int redset_header_parse(kvtree *tree, redset_header **header, redset_error *err)
{
    redset_header *h = calloc(1, sizeof *h);
    if (!h) {
        kvtree_delete(&tree);
        return err_sys(err, -ENOMEM, "header");
    }
    h->tree = tree;
    int rc = header_parse_all(h, err);
    if (rc) {
        redset_header_free(h);
        return rc;
    }
    *header = h;
    return 0;
}

/* ---- in a file ---- */

/* Checks that the file has the name that its header implies, and ends where its data
 * ends. */
static int header_check_file(const redset_header *header, int fd, const char *name,
                             redset_error *err)
{
    char expected[REDSET_NAME_SIZE];
    const char *slash = strrchr(name, '/');
    redset_file_name(&header->layout.place, expected);
    if (strcmp(slash ? slash + 1 : name, expected) != 0)
        return err_set(err, -EBADMSG, "the header is that of %s", expected);
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat");
    if ((uint64_t)st.st_size - header->size != header->data)
        return err_set(err, -EBADMSG, "%llu bytes where %llu + %llu should be",
                       (unsigned long long)st.st_size, (unsigned long long)header->size,
                       (unsigned long long)header->data);
    return 0;
}

static int header_read_open(int fd, const char *name, redset_header **header,
                            redset_error *err)
{
    redset_header *h;
    kvtree *tree = kvtree_new();
    if (!tree) return err_sys(err, -ENOMEM, "header");
    ssize_t size = kvtree_fd_read(fd, RECORD_SIZE_FILES, tree, err);
    if (size < 0) {
        kvtree_delete(&tree);
        return (int)size;
    }
    int rc = redset_header_parse(tree, &h, err);
    if (rc) return rc;
    h->size = (uint64_t)size;
    rc = header_check_file(h, fd, name, err);
    if (rc)
        redset_header_free(h);
    else
        *header = h;
    return rc;
}

int redset_header_read(int dir, const char *name, redset_header **header,
                       redset_error *err)
{
    int fd, rc = beneath_open(dir, name, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = header_read_open(fd, name, header, err);
    io_close(&fd);
    return rc ? err_wrap(err, rc, "read %s", name) : 0;
}

void redset_header_lengths(const redset_header *header, uint64_t length[])
{
    const redset_shape *shape = &header->shape;
    int member = header->layout.place.member;
    bool copies = shape->scheme == REDSET_PARTNER;
    for (int i = 0; i < shape->members && !copies; i++)
        length[i] = header->chunk;
    for (int d = 0; d <= shape->failures && copies; d++)
        length[redset_shape_member(shape, member, -d)] = header->list[d].size;
}

redset_header *redset_header_free(redset_header *header)
{
    if (!header) return NULL;
    kvtree_delete(&header->tree);
    redset_layout_done(&header->layout);
    for (int d = 0; header->list && d <= header->shape.failures; d++)
        redset_list_done(&header->list[d]);
    free(header->list);
    free(header);
    return NULL;
}
