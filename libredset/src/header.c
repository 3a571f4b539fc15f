/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a redundancy file: built, checked, read (docs/formats/redset.md; SCR
 * Developer Guide 1.2, section 2.11.2). */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

/* Puts a copy of source (which may be NULL) into tree. */
static int set_copy(kvtree *tree, const char *key, const kvtree *source)
{
    kvtree *copy = kvtree_set(tree, key, NULL);
    return copy ? kvtree_merge(copy, source) : -ENOMEM;
}

kvtree *redset_header_build(const redset_layout *layout, uint64_t chunk,
                            const kvtree *about, const kvtree *current,
                            const kvtree *partner)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? set_copy(tree, "DSET", about) : -ENOMEM;
    if (!rc) rc = redset_layout_to_tree(layout, tree);
    if (!rc) rc = kvtree_util_set_bytecount(tree, "CHUNK", chunk);
    if (!rc) rc = set_copy(tree, "CURRENT", current);
    if (!rc && partner) rc = set_copy(tree, "PARTNER", partner);
    /* last, so that filling in the real value does not change the order of keys */
    if (!rc) rc = kvtree_util_set_crc32(tree, "CRC", 0);
    if (rc) kvtree_delete(&tree);
    return tree;
}

/* One list: it is that of rank, and fits into the chunks of its set. */
static int parse_list(const redset_header *header, const char *key, int rank,
                      redset_list *list, char *err)
{
    const kvtree *tree = kvtree_get(header->tree, key);
    redset_shape shape = redset_shape_of(&header->layout.place);
    int rc = redset_list_from_tree(tree, list, err);
    if (rc) return err_wrap(err, rc, "%s", key);
    if (rank >= 0 && list->rank != rank)
        return err_set(err, -EBADMSG, "%s is of rank %d, not %d", key, list->rank, rank);
    if (redset_chunk_size(&shape, list->size) > header->chunk)
        return err_set(err, -EBADMSG, "%s has more bytes than %d chunks of %llu", key,
                       redset_data_streams(&shape), (unsigned long long)header->chunk);
    return 0;
}

/* No protected file may have the name of the redundancy file. */
static int check_names(const redset_header *header, char *err)
{
    char name[REDSET_NAME_SIZE];
    redset_file_name(&header->layout.place, name);
    for (int i = 0; i < header->current.count; i++)
        if (strcmp(header->current.files[i].name, name) == 0)
            return err_set(err, -EBADMSG, "%s lists itself", name);
    return 0;
}

static int parse_lists(redset_header *header, char *err)
{
    redset_layout *layout = &header->layout;
    int rc = parse_list(header, "CURRENT", -1, &header->current, err);
    if (rc) return rc;
    if (redset_layout_find(layout, header->current.rank) != 0)
        return err_set(err, -EBADMSG, "CURRENT is of rank %d, which is not in GROUP",
                       header->current.rank);
    int members = layout->place.members, member = layout->place.member;
    if (members == 1) {
        if (kvtree_get(header->tree, "PARTNER"))
            return err_set(err, -EBADMSG, "PARTNER in a set of one");
        return check_names(header, err);
    }
    int left = layout->members[(member + members - 1) % members];
    rc = parse_list(header, "PARTNER", left, &header->partner, err);
    return rc ? rc : check_names(header, err);
}

static int parse_all(redset_header *header, char *err)
{
    unsigned long chunk, crc;
    if (!kvtree_get(header->tree, "DSET")) return err_set(err, -EBADMSG, "no DSET");
    int rc = redset_layout_from_tree(header->tree, &header->layout, err);
    if (rc) return rc;
    if (kvtree_util_get_bytecount(header->tree, "CHUNK", &chunk) != 0 ||
        chunk > INT64_MAX || (chunk > 0 && header->layout.place.members == 1))
        return err_set(err, -EBADMSG, "no valid CHUNK");
    if (kvtree_util_get_crc32(header->tree, "CRC", &crc) != 0 || crc > UINT32_MAX)
        return err_set(err, -EBADMSG, "no valid CRC");
    header->chunk = chunk;
    header->crc = (uint32_t)crc;
    return parse_lists(header, err);
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
    if ((uint64_t)st.st_size - header->size != header->chunk)
        return err_set(err, -EBADMSG, "%llu bytes where %llu + %llu should be",
                       (unsigned long long)st.st_size, (unsigned long long)header->size,
                       (unsigned long long)header->chunk);
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

/* Continues crc over the packed bytes of tree. */
static int add_crc(const kvtree *tree, uint32_t *crc)
{
    size_t size = kvtree_pack_size(tree);
    char *packed = malloc(size);
    if (!packed) return -ENOMEM;
    kvtree_pack(packed, tree);
    *crc = crc32_add(*crc, packed, size);
    free(packed);
    return 0;
}

int redset_header_state(const redset_header *header, redset_state *state)
{
    static const char *const common[] = {"DSET", "TYPE", "RANKS", "GROUP", "CHUNK"};
    redset_state made = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof common / sizeof common[0]; i++)
        rc = add_crc(kvtree_get(header->tree, common[i]), &made.layout);
    if (!rc) rc = add_crc(kvtree_get(header->tree, "CURRENT"), &made.current);
    if (!rc) rc = add_crc(kvtree_get(header->tree, "PARTNER"), &made.partner);
    if (rc) return rc;
    *state = made;
    return 0;
}

redset_header *redset_header_free(redset_header *header)
{
    if (!header) return NULL;
    kvtree_delete(&header->tree);
    redset_layout_done(&header->layout);
    redset_list_done(&header->current);
    redset_list_done(&header->partner);
    free(header);
    return NULL;
}
