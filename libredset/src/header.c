/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a redundancy file: built, checked, read (docs/formats/redset.md; SCR
 * Developer Guide 1.2, section 2.11.2). */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts a copy of source (which may be NULL) into tree. */
static int set_copy(kvtree *tree, const char *key, const kvtree *source)
{
    kvtree *copy = kvtree_set(tree, key, NULL);
    return copy ? kvtree_merge(copy, source) : -ENOMEM;
}

/* CURRENT, PARTNER, and PARTNERS / <distance> from 2 on. */
kvtree *redset_header_list(const kvtree *header, int distance)
{
    char key[16];
    if (distance < 2) return kvtree_get(header, distance ? "PARTNER" : "CURRENT");
    snprintf(key, sizeof key, "%d", distance);
    return kvtree_get(kvtree_get(header, "PARTNERS"), key);
}

static int set_lists(kvtree *tree, int failures, kvtree *const lists[])
{
    int rc = set_copy(tree, "CURRENT", lists[0]);
    if (!rc && failures > 0) rc = set_copy(tree, "PARTNER", lists[1]);
    kvtree *more = !rc && failures > 1 ? kvtree_set(tree, "PARTNERS", NULL) : NULL;
    for (int d = 2; !rc && d <= failures; d++) {
        char key[16];
        snprintf(key, sizeof key, "%d", d);
        rc = more ? set_copy(more, key, lists[d]) : -ENOMEM;
    }
    return rc;
}

int redset_encode_to_tree(uint64_t encode, kvtree *tree)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)encode);
    return kvtree_util_set_str(tree, "ENCODE", text);
}

int redset_encode_from_tree(const kvtree *tree, uint64_t *encode, char *err)
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
    kvtree *tree = kvtree_new();
    int rc = tree ? set_copy(tree, "DSET", about) : -ENOMEM;
    if (!rc) rc = redset_layout_to_tree(layout, tree);
    if (!rc) rc = kvtree_util_set_bytecount(tree, "CHUNK", chunk);
    if (!rc) rc = set_lists(tree, layout->place.failures, lists);
    /* last, so that filling in the real values does not change the order of keys */
    if (!rc) rc = redset_encode_to_tree(encode, tree);
    if (!rc && !layout->unchecked) rc = kvtree_util_set_crc32(tree, "CRC", 0);
    if (rc) kvtree_delete(&tree);
    return tree;
}

/* One list: it fits into the chunks of its set. */
static int parse_list(const redset_header *header, int distance, const char *name,
                      char *err)
{
    redset_list *list = &header->list[distance];
    const kvtree *tree = redset_header_list(header->tree, distance);
    int rc = redset_list_from_tree(tree, header->layout.unchecked, list, err);
    if (rc) return err_wrap(err, rc, "%s", name);
    if (redset_chunk_size(&header->shape, list->size) > header->chunk)
        return err_set(err, -EBADMSG, "%s has more bytes than %d chunks of %llu", name,
                       redset_data_streams(&header->shape),
                       (unsigned long long)header->chunk);
    return 0;
}

static int parse_neighbour(const redset_header *header, int distance, char *err)
{
    char name[32] = "PARTNER";
    int rank = redset_layout_neighbour(&header->layout, -distance);
    if (distance > 1) snprintf(name, sizeof name, "PARTNERS %d", distance);
    int rc = parse_list(header, distance, name, err);
    if (rc || header->list[distance].rank == rank) return rc;
    return err_set(err, -EBADMSG, "%s is of rank %d, not %d", name,
                   header->list[distance].rank, rank);
}

/* No protected file may have the name of the redundancy file. */
static int check_names(const redset_header *header, char *err)
{
    char name[REDSET_NAME_SIZE];
    redset_file_name(&header->layout.place, name);
    for (int i = 0; i < header->list[0].count; i++)
        if (strcmp(header->list[0].files[i].name, name) == 0)
            return err_set(err, -EBADMSG, "%s lists itself", name);
    return 0;
}

/* Nothing is there for which nobody has room. */
static int check_lists(const redset_header *header, char *err)
{
    int failures = header->shape.failures;
    int more = kvtree_size(kvtree_get(header->tree, "PARTNERS"));
    if (failures == 0 && kvtree_get(header->tree, "PARTNER"))
        return err_set(err, -EBADMSG, "PARTNER in a set without redundancy");
    if (more == (failures > 1 ? failures - 1 : 0)) return 0;
    return err_set(err, -EBADMSG, "PARTNERS has %d lists for %d that may be lost", more,
                   failures);
}

static int parse_lists(redset_header *header, char *err)
{
    int rc = check_lists(header, err);
    if (!rc) rc = parse_list(header, 0, "CURRENT", err);
    if (rc) return rc;
    if (redset_layout_find(&header->layout, header->list[0].rank) != 0)
        return err_set(err, -EBADMSG, "CURRENT is of rank %d, which is not in GROUP",
                       header->list[0].rank);
    for (int d = 1; !rc && d <= header->shape.failures; d++)
        rc = parse_neighbour(header, d, err);
    return rc ? rc : check_names(header, err);
}

/* A key that nobody knows may change what the others mean. CRC is there, or CHECKSUMS. */
static int check_keys(const redset_header *header, char *err)
{
    int failures = header->shape.failures, keys = 8;
    if (failures > 0) keys += header->shape.scheme == REDSET_XOR ? 1 : 2;
    if (failures > 1) keys++;
    return redset_keys_check(header->tree, keys, err);
}

uint64_t redset_part_length(const redset_header *header, int part)
{
    return redset_is_coded(&header->shape) ? header->chunk : header->list[part + 1].size;
}

/* Sums up the redundancy data. */
static int measure(redset_header *header, char *err)
{
    for (int i = 0; i < header->shape.failures; i++) {
        uint64_t part = redset_part_length(header, i);
        if (part > INT64_MAX - header->data)
            return err_set(err, -EBADMSG, "redundancy data of more than 2^63 bytes");
        header->data += part;
    }
    return 0;
}

static int parse_all(redset_header *header, char *err)
{
    unsigned long chunk, crc = 0;
    if (!kvtree_get(header->tree, "DSET")) return err_set(err, -EBADMSG, "no DSET");
    int rc = redset_layout_from_tree(header->tree, &header->layout, err);
    if (rc) return rc;
    header->shape = redset_shape_of(&header->layout.place);
    header->list = calloc((size_t)header->shape.failures + 1, sizeof *header->list);
    if (!header->list) return err_sys(err, -ENOMEM, "lists of files");
    if (kvtree_util_get_bytecount(header->tree, "CHUNK", &chunk) != 0 ||
        chunk > INT64_MAX || (chunk > 0 && !redset_is_coded(&header->shape)))
        return err_set(err, -EBADMSG, "no valid CHUNK");
    if (!header->layout.unchecked &&
        (kvtree_util_get_crc32(header->tree, "CRC", &crc) != 0 || crc > UINT32_MAX))
        return err_set(err, -EBADMSG, "no valid CRC");
    header->chunk = chunk;
    header->crc = (uint32_t)crc;
    rc = redset_encode_from_tree(header->tree, &header->encode, err);
    if (!rc) rc = parse_lists(header, err);
    if (!rc) rc = check_keys(header, err);
    return rc ? rc : measure(header, err);
}

int redset_header_parse(kvtree *tree, redset_header **header, char *err)
{
    redset_header *h = calloc(1, sizeof *h);
    if (!h) {
        kvtree_delete(&tree);
        return err_sys(err, -ENOMEM, "header");
    }
    h->tree = tree;
    int rc = parse_all(h, err);
    if (rc) {
        redset_header_free(h);
        return rc;
    }
    *header = h;
    return 0;
}

int redset_header_inherit(kvtree *tree, int rank, redset_header **header, char *err)
{
    redset_header *h;
    int rc = redset_header_parse(tree, &h, err);
    if (rc) return err_wrap(err, rc, "header from the neighbours");
    if (h->list[0].rank != rank) {
        rc = err_set(err, -EBADMSG, "neighbours of rank %d kept the list of rank %d",
                     rank, h->list[0].rank);
        redset_header_free(h);
        return rc;
    }
    *header = h;
    return 0;
}

/* The file has the name that its header says, and ends where its data ends. */
static int check_file(const redset_header *header, int fd, const char *name, char *err)
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

static int read_open(int fd, const char *name, redset_header **header, char *err)
{
    redset_header *h;
    kvtree *tree = kvtree_new();
    if (!tree) return err_sys(err, -ENOMEM, "header");
    ssize_t size = kvtree_read_fd(fd, tree, err);
    if (size < 0) {
        kvtree_delete(&tree);
        return (int)size;
    }
    int rc = redset_header_parse(tree, &h, err);
    if (rc) return rc;
    h->size = (uint64_t)size;
    rc = check_file(h, fd, name, err);
    if (rc) {
        redset_header_free(h);
        return rc;
    }
    *header = h;
    return 0;
}

int redset_header_read(int dir, const char *name, redset_header **header, char *err)
{
    int fd, rc = beneath_open(dir, name, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = read_open(fd, name, header, err);
    io_close(&fd);
    return rc ? err_wrap(err, rc, "read %s", name) : 0;
}

int redset_header_state(const redset_header *header, redset_state *state)
{
    static const char *const common[] = {"DSET",  "TYPE",  "FAILURES", "CHECKSUMS",
                                         "RANKS", "GROUP", "CHUNK",    "ENCODE"};
    int rc = 0;
    memset(state, 0, redset_state_size(&header->shape));
    for (size_t i = 0; !rc && i < sizeof common / sizeof common[0]; i++)
        rc = redset_tree_crc(kvtree_get(header->tree, common[i]), &state->layout);
    for (int d = 0; !rc && d <= header->shape.failures; d++)
        rc = redset_tree_crc(redset_header_list(header->tree, d), &state->list[d]);
    return rc;
}

void redset_header_lengths(const redset_header *header, uint64_t length[])
{
    int members = header->shape.members, member = header->layout.place.member;
    bool copies = header->shape.scheme == REDSET_PARTNER;
    for (int i = 0; i < members; i++)
        length[i] = copies ? 0 : header->chunk;
    for (int d = 0; copies && d <= header->shape.failures; d++)
        length[(member + members - d) % members] = header->list[d].size;
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
