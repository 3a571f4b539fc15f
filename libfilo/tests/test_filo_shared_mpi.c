/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks write together: a flush copies the parts of all ranks to their
 * offsets, a fetch restores the parts, and invalid parts are refused. */
#include "lists.h"

#include <inttypes.h>

static char folder[64], prefix[128];
static filo_error err;

#define SHARED "out/state of all.dat"

enum {
    FILES = 5, /* per rank: three files of its own, and two of parts */
    OWN = 3,
    UNIT = 1000,
    GAP = 77 /* bytes between the parts of two rounds that no rank has */
};

/* Parts lie in rounds: every rank has one part in each round, the highest rank the first.
 */
static uint64_t part_length(int rank, int round)
{
    return (uint64_t)(UNIT * (1 + (rank + round) % 3) + rank);
}

static uint64_t part_offset(int rank, int round)
{
    uint64_t at = 0;
    for (int n = 0; n <= round; n++) {
        if (n > 0) at += GAP;
        for (int r = check_ranks - 1; r >= 0 && (n < round || r > rank); r--)
            at += part_length(r, n);
    }
    return at;
}

static uint64_t shared_size(void)
{
    return part_offset(0, 1) + part_length(0, 1);
}

typedef struct shared_list {
    list l;
    filo_segment segment[FILES];
    char container[FILES][64];
} shared_list;

static void write_part(const char *path, int rank, int round)
{
    uint64_t length = part_length(rank, round);
    unsigned char *bytes = malloc(length);
    for (uint64_t i = 0; bytes && i < length; i++)
        bytes[i] = list_byte(rank, OWN + round, i);
    list_write(path, bytes, length);
    free(bytes);
}

static void begin(shared_list *s, const char *name)
{
    list *l = &s->l;
    err.text[0] = 0;
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    list_create(l, folder, check_rank, FILES);
    for (int f = OWN; f < FILES; f++) {
        int round = f - OWN;
        strcpy(s->container[f], SHARED);
        s->segment[f] = (filo_segment){s->container[f], part_offset(check_rank, round),
                                       part_length(check_rank, round)};
        snprintf(l->name[f], sizeof l->name[f], "part %d of %d", round, check_rank);
        l->files[f].size = part_length(check_rank, round);
        l->files[f].packed = 1;
        l->files[f].segments = 1;
        l->files[f].segment = &s->segment[f];
        write_part(l->local[f], check_rank, round);
    }
}

static int is_culprit(void)
{
    return check_rank == check_ranks - 1;
}

static int part_is_good(const char *path, uint64_t at, int rank, int round)
{
    uint64_t length = part_length(rank, round), i = 0;
    FILE *stream = fopen(path, "rb");
    if (!stream) return 0;
    int bad = fseek(stream, (long)at, SEEK_SET);
    for (; i < length && !bad; i++)
        bad = fgetc(stream) != list_byte(rank, OWN + round, i);
    if (at == 0 && !bad) bad = fgetc(stream) != EOF;
    fclose(stream);
    return !bad;
}

/* ---- round trips ---- */

static void expect_shared(void)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/" SHARED, prefix);
    CHECK(stat(path, &st) == 0 && (uint64_t)st.st_size == shared_size());
    CHECK_INT(st.st_mode & 0777, check_ranks > 1 ? 0640 : 0644);
    for (int round = 0; round < FILES - OWN; round++)
        for (int r = 0; r < check_ranks; r++) {
            uint64_t at = part_offset(r, round);
            unsigned char *bytes = malloc(part_length(r, round));
            FILE *stream = fopen(path, "rb");
            CHECK(stream && bytes && fseek(stream, (long)at, SEEK_SET) == 0);
            if (!stream || !bytes) continue;
            CHECK_INT(fread(bytes, 1, part_length(r, round), stream),
                      part_length(r, round));
            int bad = 0;
            for (uint64_t i = 0; i < part_length(r, round); i++)
                bad |= bytes[i] != list_byte(r, OWN + round, i);
            CHECK(!bad);
            fclose(stream);
            free(bytes);
        }
}

/* The rank with the first bytes of the shared file also has an entry of this file. */
static void expect_map(const shared_list *s, int count, filo_file *files)
{
    int own = 0, shared = 0;
    for (int i = 0; i < count; i++) {
        if (!files[i].shared) {
            CHECK_STR(files[i].name, s->l.name[own]);
            CHECK_INT(files[i].size, s->l.files[own].size);
            files[i].local = strdup(s->l.local[own++]);
            continue;
        }
        shared++;
        CHECK_STR(files[i].name, SHARED);
        CHECK_INT(files[i].size, shared_size());
        CHECK(!files[i].packed && !files[i].has_crc);
    }
    CHECK_INT(own, FILES);
    CHECK_INT(shared, is_culprit());
}

static void expect_local(const shared_list *s)
{
    for (int f = 0; f < OWN; f++)
        CHECK(list_file_is_good(s->l.local[f], check_rank, f));
    for (int f = OWN; f < FILES; f++)
        CHECK(part_is_good(s->l.local[f], 0, check_rank, f - OWN));
}

/* Each file of the map is whole, also for tools. */
static void expect_verified(int count, const filo_file *files)
{
    int dir = open(prefix, O_RDONLY | O_DIRECTORY);
    CHECK(dir >= 0);
    for (int i = 0; i < count; i++)
        CHECK_INT(filo_extract(dir, &files[i], NULL, &err), 0);
    close(dir);
}

static void round_trip(const char *name, uint64_t container, int width)
{
    shared_list s;
    int ranks, count;
    filo_file *files;
    const filo_options options = {.checksum = 1, .container = container, .width = width};
    begin(&s, name);
    if (check_rank == 0 && check_ranks > 1) CHECK(chmod(s.l.local[OWN], 0640) == 0);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, s.l.files, &options, &err),
              0);
    CHECK_STR(err.text, "");
    CHECK(!list_exists(prefix, s.l.name[OWN]));
    if (check_rank == 0) CHECK(!list_exists(prefix, FILO_STAGE));
    CHECK_INT(list_exists(prefix, s.l.name[2]), container == 0);
    if (check_rank == 0) expect_shared();
    list_unlink(&s.l);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    expect_map(&s, count, files);
    expect_verified(count, files);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &options, &err), 0);
    expect_local(&s);
    filo_files_free(count, files);
    list_unlink(&s.l);
}

static void test_round_trips(void)
{
    round_trip("files", 0, 0);
    round_trip("one at a time", 0, 1);
    round_trip("containers", 123457, 2);
}

/* Flushes the same data again, over the shared file: names stay, bytes are new. */
static void test_again(void)
{
    shared_list s;
    for (int i = 0; i < 2; i++) {
        begin(&s, "again");
        CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, s.l.files, NULL, &err),
                  0);
    }
    CHECK(list_exists(prefix, SHARED));
    list_unlink(&s.l);
}

/* A rank with only an empty part, and a rank with several parts in one file of its own.
 */
static void test_shapes(void)
{
    char name[] = "wide", path[256];
    filo_segment pieces[2] = {{name, (uint64_t)check_rank * 10, 4},
                              {name, (uint64_t)check_rank * 10 + 6, 4}};
    filo_file file = {.local = path, .name = path, .size = 8, .packed = 1};
    const int empty = check_ranks > 1 && is_culprit();
    snprintf(prefix, sizeof prefix, "%s/shapes", folder);
    snprintf(path, sizeof path, "%s/piece.%d", folder, check_rank);
    list_write(path, "12345678", empty ? 0 : 8);
    file.name = strrchr(path, '/') + 1;
    file.size = empty ? 0 : 8;
    file.segments = empty ? 0 : 2;
    file.segment = pieces;
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, 1, &file, NULL, &err), 0);
    CHECK_STR(err.text, "");
    char text[11] = "", all[256];
    snprintf(all, sizeof all, "%s/%s", prefix, name);
    FILE *stream = fopen(all, "rb");
    CHECK(stream && fread(text, 1, 10, stream) == 10);
    CHECK(memcmp(text,
                 "1234\0\0"
                 "5678",
                 10) == 0);
    if (stream) fclose(stream);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(path);
}

/* An empty part begins where that of the next rank does; the ranks copy, or a leader. */
static void test_empty_parts(void)
{
    char name[] = "wide", path[256], part[32];
    const int empty = check_rank % 2 == 0 && check_rank + 1 < check_ranks;
    filo_segment segment = {name, (uint64_t)(check_rank / 2) * 8, empty ? 0 : 8};
    filo_file file = {.local = path,
                      .name = part,
                      .size = segment.length,
                      .packed = 1,
                      .segments = 1,
                      .segment = &segment};
    snprintf(path, sizeof path, "%s/piece.%d", folder, check_rank);
    snprintf(part, sizeof part, "part.%d", check_rank);
    list_write(path, "12345678", empty ? 0 : 8);
    for (int leads = 0; leads < 2; leads++) {
        const filo_options options = {.checksum = 1, .align = leads ? 512 : 0};
        char all[256];
        struct stat st;
        snprintf(prefix, sizeof prefix, "%s/empty %d", folder, leads);
        snprintf(all, sizeof all, "%s/%s", prefix, name);
        CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, 1, &file, &options, &err), 0);
        CHECK_STR(err.text, "");
        CHECK(stat(all, &st) == 0 && st.st_size == 8 * ((check_ranks + 1) / 2));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(path);
}

/* No rank has a byte of a shared file, and each has files of its own behind its part. */
static void test_no_bytes(void)
{
    list l;
    snprintf(prefix, sizeof prefix, "%s/no bytes", folder);
    list_create(&l, folder, check_rank, FILES);
    list_write(l.local[0], "", 0);
    l.files[0].size = 0;
    l.files[0].packed = 1;
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, l.files, NULL, &err), 0);
    CHECK(!list_exists(prefix, l.name[0]));
    for (int f = 1; f < FILES; f++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", prefix, l.name[f]);
        CHECK(list_file_is_good(path, check_rank, f));
    }
    list_unlink(&l);
}

/* ---- refused ---- */

static void refuse(shared_list *s, int code, const char *part)
{
    uint64_t before = list_folder_sum(prefix);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, s->l.files, NULL, &err),
              code);
    list_expect_text(err.text, part);
    CHECK(list_folder_sum(prefix) == before && list_temporaries == 0);
}

static void test_refused(void)
{
    shared_list s;
    char text[128];
    begin(&s, "refused");
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, FILES, s.l.files, &err), 0);
    /* the last byte of one part is the first byte of another */
    snprintf(text, sizeof text, " both have byte %" PRIu64 " of file \"" SHARED "\"",
             part_offset(check_ranks - 1, 1) - 1);
    s.segment[4].offset -= is_culprit() ? GAP + 1 : 0;
    snprintf(text, sizeof text, "of file \"" SHARED "\"");
    refuse(&s, -EEXIST, text);
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, FILES, s.l.files, &err), -EEXIST);
    list_expect_text(err.text, text);
    /* a file has the name */
    begin(&s, "refused");
    if (is_culprit()) strcpy(s.l.name[0], SHARED);
    refuse(&s, -EEXIST, "file name \"" SHARED "\" is listed ");
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, FILES, s.l.files, &err), -EEXIST);
    /* shorter than the file, or beyond the limit */
    begin(&s, "refused");
    s.segment[3].length -= is_culprit();
    refuse(&s, -EINVAL, "the parts of file \"part 0 of ");
    begin(&s, "refused");
    s.segment[3].length += is_culprit();
    refuse(&s, -EINVAL, "the parts of file \"part 0 of ");
    begin(&s, "refused");
    if (is_culprit()) s.segment[3].offset = INT64_MAX;
    refuse(&s, -EINVAL, "the parts of file \"part 0 of ");
    /* names */
    begin(&s, "refused");
    if (is_culprit()) strcpy(s.container[3], "../x");
    refuse(&s, -EINVAL, "../x");
    CHECK_INT(filo_check_names(MPI_COMM_WORLD, FILES, s.l.files, &err), -EINVAL);
    begin(&s, "refused");
    if (is_culprit()) strcpy(s.container[3], FILO_MAP);
    refuse(&s, -EINVAL, "belongs to the map");
    list_unlink(&s.l);
}

/* A part is truncated after the call began, as on a failing rank: the earlier dataset
 * stays. */
static void test_failure_keeps_earlier(void)
{
    shared_list s;
    begin(&s, "earlier");
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, s.l.files, NULL, &err), 0);
    begin(&s, "earlier");
    s.l.files[3].has_crc = 1;
    s.l.files[3].crc = 12345;
    refuse(&s, -EIO, "was altered: CRC32 ");
    list_unlink(&s.l);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_round_trips();
    test_again();
    test_shapes();
    test_empty_parts();
    test_no_bytes();
    test_refused();
    test_failure_keeps_earlier();
    check_remove(folder);
    return check_end();
}
