/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as the header of a redundancy file: a line for each key, indented by its depth
 * in blanks, so that every text is some tree, and small changes of the text are small
 * changes of the tree. In a real file the header ends with a checksum that would reject
 * every change.
 *
 * A header is accepted exactly if a reader that was written from docs/formats/redset.md
 * accepts it, with the same contents. An accepted header can be used: for a manifest,
 * streams, a header that is accepted again, and a file. */
#include "fuzz.h"
#include "fuzz_lines.h"
#include "src/files/streams.h"
#include "src/set/plan.h"

#include "common/beneath.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_MOST ((uint64_t)1 << 40) /* bytes of redundancy data in a (sparse) file */

/* Parsing may allocate this number of bytes in total per byte of a packed header, plus a
 * constant. The worst case is entries of files: 6 bytes packed, 32 in a list. */
#define PARSE_BYTES_PER_BYTE 8
#define PARSE_BYTES_MORE 1024

/* ---- the independent reader ---- */

typedef struct told_file {
    const char *name;
    uint64_t size, crc;
} told_file;

/* The contents of a header. */
typedef struct told {
    const kvtree *header;
    redset_place place;
    int ranks, *rank;
    uint64_t chunk, crc, data, encode;
    uint64_t *size; /* of each list */
    bool unchecked;
    char name[64];
} told;

static bool tell_failures(told *t)
{
    redset_place *p = &t->place;
    p->failures = p->scheme == REDSET_XOR;
    if (p->scheme == REDSET_SINGLE) return p->members == 1;
    if (p->scheme == REDSET_XOR) return p->members >= 2;
    if (p->scheme == REDSET_RS && p->members > 255) return false;
    return fuzz_integer(t->header, "FAILURES", 1, p->members - 1, &p->failures);
}

static bool tell_place(told *t)
{
    static const char *const names[] = {"SINGLE", "PARTNER", "XOR", "RS"};
    const kvtree *header = t->header, *group = kvtree_get(header, "GROUP");
    const char *type = fuzz_value(header, "TYPE");
    redset_place *p = &t->place;
    for (int i = 0; i < 4; i++)
        if (type && strcasecmp(type, names[i]) == 0) p->scheme = (redset_scheme)(i + 1);
    if (p->scheme == 0 || !fuzz_integer(header, "RANKS", 1, INT_MAX, &t->ranks) ||
        !fuzz_integer(group, "RANKS", 1, t->ranks, &p->members) ||
        !fuzz_integer(group, "ID", 0, t->ranks - 1, &p->id) ||
        !fuzz_integer(group, "GROUPS", 1, t->ranks, &p->sets) ||
        !fuzz_integer(group, "INDEX", 0, p->sets - 1, &p->set) || kvtree_size(group) != 5)
        return false;
    /* INDEX, INDEX + GROUPS, INDEX + 2 GROUPS, ... below RANKS */
    return p->members == (t->ranks - 1 - p->set) / p->sets + 1 && tell_failures(t);
}

static bool tell_members(told *t)
{
    const kvtree *ranks = kvtree_get(kvtree_get(t->header, "GROUP"), "RANK");
    int members = t->place.members, lowest = INT_MAX;
    if (kvtree_size(ranks) != members) return false;
    t->rank = calloc((size_t)members, sizeof *t->rank);
    REQUIRE(t->rank != NULL);
    for (int i = 0; i < members; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        if (!fuzz_integer(ranks, key, 0, t->ranks - 1, &t->rank[i])) return false;
        for (int j = 0; j < i; j++)
            if (t->rank[j] == t->rank[i]) return false;
        if (t->rank[i] < lowest) lowest = t->rank[i];
    }
    return lowest == t->place.id;
}

static const kvtree *list_of(const kvtree *header, int distance)
{
    if (distance == 0) return kvtree_get(header, "CURRENT");
    if (distance == 1) return kvtree_get(header, "PARTNER");
    return kvtree_getf(header, "PARTNERS %d", distance);
}

static bool tell_mode(const kvtree *entry)
{
    const char *mode = fuzz_value(entry, "MODE");
    if (!kvtree_get(entry, "MODE")) return true;
    return mode && strlen(mode) == 4 && mode[0] == '0' && strspn(mode, "01234567") == 4;
}

static bool tell_file(const told *t, const kvtree *list, int i, told_file *file)
{
    const kvtree *entry = kvtree_getf(list, "FILE %d", i);
    file->crc = 0;
    file->name = fuzz_value(entry, "FILE");
    return file->name && beneath_check_name(file->name, NULL) == 0 &&
           fuzz_number(entry, "SIZE", FUZZ_DIGITS, INT64_MAX, &file->size) &&
           tell_mode(entry) &&
           (t->unchecked
                ? !kvtree_get(entry, "CRC")
                : fuzz_number(entry, "CRC", FUZZ_CHECKSUM, UINT32_MAX, &file->crc));
}

static bool tell_files(told *t, int distance)
{
    told_file file;
    int files;
    const kvtree *list = list_of(t->header, distance);
    uint64_t *size = &t->size[distance];
    if (!fuzz_integer(list, "FILES", 0, INT_MAX, &files) ||
        kvtree_size(kvtree_get(list, "FILE")) != files ||
        kvtree_size(list) != (files ? 3 : 2))
        return false;
    for (int i = 0; i < files; i++) {
        if (!tell_file(t, list, i, &file) || file.size > INT64_MAX - *size) return false;
        if (distance == 0 && strcmp(file.name, t->name) == 0) return false;
        told_file other = {0};
        for (int j = 0; j < i; j++)
            if (tell_file(t, list, j, &other) && !strcmp(other.name, file.name))
                return false;
        *size += file.size;
    }
    return true;
}

/* The list of a member's own files determines which member the header is of. */
static bool tell_rank(told *t, int distance)
{
    int rank;
    redset_place *p = &t->place;
    static const char *const suffix[] = {"", "single", "partner", "xor", "rs"};
    if (!fuzz_integer(list_of(t->header, distance), "RANK", 0, INT_MAX, &rank))
        return false;
    if (distance > 0)
        return rank == t->rank[(p->member + p->members - distance) % p->members];
    for (p->member = 0; p->member < p->members; p->member++)
        if (t->rank[p->member] == rank) break;
    snprintf(t->name, sizeof t->name, "%d_of_%d_in_%d.%s", p->member + 1, p->members,
             p->id, suffix[p->scheme]);
    return p->member < p->members;
}

static bool is_coded(const told *t)
{
    return t->place.scheme == REDSET_XOR || t->place.scheme == REDSET_RS;
}

static bool tell_lists(told *t)
{
    int failures = t->place.failures;
    uint64_t chunks = (uint64_t)(t->place.members - failures);
    t->size = calloc((size_t)failures + 1, sizeof *t->size);
    REQUIRE(t->size != NULL);
    for (int d = 0; d <= failures; d++) {
        if (!tell_rank(t, d) || !tell_files(t, d)) return false;
        uint64_t size = t->size[d], part = d == 0 ? 0 : is_coded(t) ? t->chunk : size;
        if (is_coded(t) && size / chunks + (size % chunks != 0) > t->chunk) return false;
        if (part > INT64_MAX - t->data) return false;
        t->data += part;
    }
    return true;
}

/* ENCODE is sixteen lower-case hexadecimal digits. */
static bool tell_encode(told *t)
{
    const char *text = fuzz_value(t->header, "ENCODE");
    if (!text || strlen(text) != 16) return false;
    for (t->encode = 0; *text; text++) {
        int digit = fuzz_digit(*text, 16);
        if (digit == 16 || isupper((unsigned char)*text)) return false;
        t->encode = t->encode * 16 + (uint64_t)digit;
    }
    return true;
}

/* Either CRC, the checksum of the redundancy data, or CHECKSUMS 0: then files have none
 * either. */
static bool tell_checksum(told *t)
{
    int none;
    if (kvtree_get(t->header, "CRC"))
        return fuzz_number(t->header, "CRC", FUZZ_CHECKSUM, UINT32_MAX, &t->crc);
    t->unchecked = true;
    return fuzz_integer(t->header, "CHECKSUMS", 0, 0, &none);
}

/* Whether t->header is a valid header; fills in its contents. */
static bool tell(told *t)
{
    const kvtree *h = t->header;
    if (!tell_place(t) || !tell_members(t) || !kvtree_get(h, "DSET") ||
        !fuzz_number(h, "CHUNK", FUZZ_DIGITS, is_coded(t) ? INT64_MAX : 0, &t->chunk) ||
        !tell_checksum(t) || !tell_encode(t) || !tell_lists(t))
        return false;
    int f = t->place.failures, keys = 8 + (f > 0) + (f > 1);
    if (f > 0 && t->place.scheme != REDSET_XOR) keys++;
    return kvtree_size(h) == keys &&
           (f < 2 || kvtree_size(kvtree_get(h, "PARTNERS")) == f - 1);
}

/* ---- the library's reader ---- */

static void require_files(const told *t, const redset_header *h, int distance)
{
    told_file file;
    const redset_list *list = &h->list[distance];
    const kvtree *tree = list_of(t->header, distance);
    REQUIRE(list->count == kvtree_size(kvtree_get(tree, "FILE")));
    REQUIRE(list->size == t->size[distance]);
    for (int i = 0; i < list->count; i++) {
        REQUIRE(tell_file(t, tree, i, &file));
        REQUIRE(strcmp(list->files[i].name, file.name) == 0);
        REQUIRE(list->files[i].size == file.size && list->files[i].crc == file.crc);
    }
}

static void require_told(const told *t, const redset_header *h)
{
    const redset_place *p = &t->place;
    char name[REDSET_NAME_SIZE];
    REQUIRE(memcmp(&h->layout.place, p, sizeof *p) == 0 && h->layout.ranks == t->ranks);
    REQUIRE(!memcmp(h->layout.members, t->rank, (size_t)p->members * sizeof *t->rank));
    REQUIRE(h->shape.scheme == p->scheme && h->shape.members == p->members);
    REQUIRE(h->shape.failures == p->failures && redset_shape_check(&h->shape) == 0);
    REQUIRE(h->chunk == t->chunk && h->crc == t->crc && h->data == t->data);
    REQUIRE(h->encode == t->encode && h->layout.unchecked == t->unchecked);
    REQUIRE(redset_file_name(&h->layout.place, name) == 0 && !strcmp(name, t->name));
    for (int d = 0; d <= p->failures; d++) {
        REQUIRE(h->list[d].rank == t->rank[(p->member + p->members - d) % p->members]);
        require_files(t, h, d);
    }
}

/* ---- using a header ---- */

static void require_manifest(const told *t, const redset_manifest *m)
{
    told_file file;
    REQUIRE(m && m->rank == t->rank[t->place.member] && m->ranks == t->ranks);
    REQUIRE(memcmp(&m->place, &t->place, sizeof m->place) == 0);
    REQUIRE(strcmp(m->file, t->name) == 0 && m->file_crc == t->crc);
    REQUIRE(m->checksums == !t->unchecked);
    REQUIRE(fuzz_tree_same(m->about, kvtree_get(t->header, "DSET")));
    REQUIRE(m->count == kvtree_size(kvtree_getf(t->header, "CURRENT FILE")));
    for (int i = 0; i < m->count; i++) {
        const kvtree *meta = m->files[i].meta;
        REQUIRE(tell_file(t, list_of(t->header, 0), i, &file));
        REQUIRE(strcmp(m->files[i].name, file.name) == 0);
        REQUIRE(m->files[i].size == file.size && m->files[i].crc == file.crc);
        REQUIRE(redset_file_check(&m->files[i], NULL) == 0);
        REQUIRE(kvtree_size(meta) + (t->unchecked ? 2 : 3) ==
                kvtree_size(kvtree_getf(t->header, "CURRENT FILE %d", i)));
    }
}

static void make_manifest(const told *t, const redset_header *h, uint32_t hash)
{
    fuzz_memory_begin(SIZE_MAX);
    redset_manifest *m = redset_manifest_new(h);
    struct fuzz_memory memory = fuzz_memory_end();
    require_manifest(t, m);
    REQUIRE(m->file_size == 0); /* h was not read from a file */
    redset_manifest_free(m);
    fuzz_memory_begin(hash % memory.calls);
    m = redset_manifest_new(h);
    fuzz_memory_end();
    redset_manifest_free(m);
}

/* Builds a header from the lists of h, or from the lists in its tree. */
static kvtree *build(const redset_header *h, bool from_tree)
{
    int lists = h->shape.failures + 1;
    kvtree **list = calloc((size_t)lists, sizeof *list);
    REQUIRE(list != NULL);
    for (int d = 0; d < lists; d++) {
        list[d] = from_tree ? fuzz_tree_copy(redset_header_list(h->tree, d))
                            : redset_list_to_tree(&h->list[d]);
        REQUIRE(list[d] != NULL);
    }
    const kvtree *about = kvtree_get(h->tree, "DSET");
    kvtree *tree = redset_header_build(&h->layout, h->chunk, h->encode, about, list);
    REQUIRE(tree != NULL);
    if (!h->layout.unchecked) kvtree_util_set_crc32(tree, "CRC", h->crc);
    for (int d = 0; d < lists; d++)
        kvtree_delete(&list[d]);
    free(list);
    return tree;
}

/* Checks that a header built from h has the same contents, and is always the same. */
static void build_again(const told *t, const redset_header *h)
{
    redset_error err;
    redset_header *other = NULL;
    size_t size = redset_state_size(&h->shape);
    redset_state *a = malloc(size), *b = malloc(size);
    REQUIRE(a && b && redset_header_parse(build(h, false), &other, &err) == 0);
    require_told(t, other);
    for (int i = 0; i < 2; i++) {
        kvtree *again = build(other, i != 0);
        REQUIRE(fuzz_tree_same(again, other->tree));
        kvtree_delete(&again);
    }
    REQUIRE(redset_state_set(a, h) == 0 && redset_state_set(b, other) == 0);
    REQUIRE(a->lost == 0 && b->lost == 0);
    if (fuzz_tree_same(h->tree, other->tree)) REQUIRE(memcmp(a, b, size) == 0);
    for (int d = 0; d <= h->shape.failures; d++)
        if (fuzz_tree_same(list_of(h->tree, d), list_of(other->tree, d)))
            REQUIRE(a->list[d] == b->list[d]);
    redset_header_free(other);
    free(a);
    free(b);
}

/* The chunks hold all files, each byte once. */
static void require_cut(const redset_file_stream *logical, uint64_t chunk)
{
    uint64_t sum = 0;
    size_t next = 0;
    for (int i = 0; i < logical->chunk_count; i++) {
        const redset_chunk *at = &logical->chunks[i];
        uint64_t inside = 0;
        if (at->end == 0) continue; /* after the files */
        REQUIRE(at->next == next && at->end > next);
        for (; next < at->end; next++) {
            const redset_segment *s = &logical->segments[next];
            uint64_t size = logical->list->files[s->file].size;
            REQUIRE(s->length > 0 && s->offset < size && s->length <= size - s->offset);
            inside += s->length;
        }
        REQUIRE(inside <= chunk);
        sum += inside;
    }
    REQUIRE(next == logical->segment_count && sum == logical->list->size);
}

static void make_streams(const told *t, const redset_header *h)
{
    redset_streams s;
    const redset_place *p = &t->place;
    uint64_t sum = 0, *length = calloc((size_t)p->members, sizeof *length);
    REQUIRE(length && redset_streams_init(h, &s, NULL) == 0);
    REQUIRE(s.parts == p->failures);
    for (int i = 0; i < s.parts; sum += s.part[i++].length)
        REQUIRE(s.part[i].offset == sum);
    REQUIRE(sum == t->data);
    int rc = redset_file_stream_open(-1, &h->list[0], s.data, s.chunk, &s.files, NULL);
    REQUIRE(rc == 0);
    require_cut(s.files, s.chunk);
    redset_streams_done(&s);
    redset_header_lengths(h, length);
    for (int i = 0; i < p->members; i++) {
        int distance = (p->member + p->members - i) % p->members;
        uint64_t copied = distance <= p->failures ? t->size[distance] : 0;
        if (p->scheme != REDSET_PARTNER) copied = t->chunk;
        REQUIRE(length[i] == copied);
    }
    free(length);
}

/* ---- in a file ---- */

static int read_file(const char *name, redset_manifest **manifest)
{
    redset_error err = {""};
    int rc = redset_read_header(AT_FDCWD, fuzz_folder(), name, manifest, &err);
    REQUIRE(rc == 0 || (rc == -EBADMSG && strstr(err.text, name)));
    return rc;
}

/* Checks that a file is read under its name and with its length, and refused with another
 * name or length. */
static void put_into_file(const told *t)
{
    static int folder = -1;
    static const char other[] = "other.xor";
    redset_manifest *m = NULL;
    if (folder < 0) folder = open(fuzz_folder(), O_RDONLY | O_DIRECTORY);
    int fd = openat(folder, t->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    off_t size = kvtree_fd_write(fd, KVTREE_ANY_SIZE, t->header, NULL),
          whole = size + (off_t)t->data;
    REQUIRE(size > 0 && ftruncate(fd, whole + 1) == 0);
    REQUIRE(read_file(t->name, &m) == -EBADMSG);
    REQUIRE(ftruncate(fd, whole) == 0 && read_file(t->name, &m) == 0);
    require_manifest(t, m);
    REQUIRE(m->file_size == (uint64_t)whole);
    m = redset_manifest_free(m);
    REQUIRE(renameat(folder, t->name, folder, other) == 0);
    REQUIRE(read_file(other, &m) == -EBADMSG);
    REQUIRE(renameat(folder, other, folder, t->name) == 0);
    REQUIRE(ftruncate(fd, whole - 1) == 0 && read_file(t->name, &m) == -EBADMSG);
    REQUIRE(m == NULL && unlinkat(folder, t->name, 0) == 0 && close(fd) == 0);
}

/* ---- */

static void without_memory(const kvtree *tree, uint32_t hash, int expected, size_t calls)
{
    redset_error err = {""};
    redset_header *h = NULL;
    kvtree *copy = fuzz_tree_copy(tree);
    fuzz_memory_begin(hash % calls);
    int rc = redset_header_parse(copy, &h, &err);
    fuzz_memory_end();
    REQUIRE(rc == -ENOMEM || rc == expected);
    REQUIRE(rc == 0 ? h != NULL : !h && err.text[0]);
    redset_header_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    redset_error err = {""};
    uint32_t hash = fuzz_hash(data, size);
    kvtree *tree = fuzz_tree(text, size), *copy = fuzz_tree_copy(tree);
    told t = {.header = tree};
    redset_header *h = NULL;
    bool good = tell(&t);
    fuzz_memory_begin(SIZE_MAX);
    int rc = redset_header_parse(copy, &h, &err);
    struct fuzz_memory memory = fuzz_memory_end();
    REQUIRE(memory.bytes <=
            PARSE_BYTES_PER_BYTE * kvtree_pack_size(tree) + PARSE_BYTES_MORE);
    if (good) {
        REQUIRE(rc == 0 && err.text[0] == 0);
        require_told(&t, h);
        make_manifest(&t, h, hash);
        build_again(&t, h);
        make_streams(&t, h);
        if (t.data < FILE_MOST) put_into_file(&t);
    } else {
        REQUIRE(rc == -EBADMSG && h == NULL);
        REQUIRE(err.text[0] && strnlen(err.text, sizeof err.text) < sizeof err.text);
    }
    without_memory(tree, hash, rc, memory.calls);
    redset_header_free(h);
    kvtree_delete(&tree);
    free(t.rank);
    free(t.size);
    free(text);
    return 0;
}
