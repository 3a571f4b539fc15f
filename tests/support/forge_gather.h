/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FORGE_GATHER_H
#define TESTS_FORGE_GATHER_H

/* Forged and broken sets of gathered trees (docs/formats/gather.md), for tests of all
 * readers of such sets. Each case starts from a good set of eight ranks in two files,
 *
 *     STEM.scr          LEVEL 2   reader 0
 *     STEM.1.0.scr      LEVEL 1   readers 0, 4
 *     STEM.0.0.scr      LEVEL 0   ranks 0 to 3
 *     STEM.0.4.scr      LEVEL 0   ranks 4 to 7
 *
 * and changes one thing in the trees before they are written, or in the files:
 *
 *     forged f;
 *     forge(&f, "set", "TOP", fill);            fill makes the tree of a rank
 *     forge_cases[i].change(&f);
 *     forge_write(&f, dir);                     the reader must refuse the set, with
 *     forge_text(&f, forge_cases[i].text, text)        this in the text */

#include <fcntl.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORGE_ROOT, FORGE_MIDDLE, FORGE_LOW, FORGE_HIGH, FORGE_FILES };
enum { FORGE_RANKS = 8, FORGE_NAME = 64 };

typedef struct forged {
    const char *stem, *top;
    char name[FORGE_FILES][FORGE_NAME];
    kvtree *tree[FORGE_FILES];
} forged;

/* Ends the program if the setup of a test fails. */
static inline void forge_must(int done, const char *what)
{
    if (done) return;
    perror(what);
    abort();
}

/* ---- a good set ---- */

static inline void forge_pointer(kvtree *tree, int reader, const char *name)
{
    kvtree *pointer = kvtree_set_kv_int(tree, "RANK", reader);
    kvtree_util_set_int(pointer, "OFFSET", 0);
    kvtree_util_set_str(pointer, "FILE", name);
}

static inline kvtree *forge_upper(int level, int ranks)
{
    kvtree *tree = kvtree_new();
    kvtree_util_set_int(tree, "LEVEL", level);
    kvtree_util_set_int(tree, "RANKS", ranks);
    return tree;
}

/* Makes a file of four ranks, the first of which is given. */
static inline kvtree *forge_lower(const char *top, int first,
                                  void (*fill)(kvtree *tree, int rank))
{
    kvtree *tree = kvtree_new(), *body = kvtree_set(tree, top, NULL);
    kvtree_util_set_int(body, "LEVEL", 0);
    kvtree_util_set_int(body, "RANKS", 4);
    for (int rank = first; rank < first + 4; rank++)
        fill(kvtree_set_kv_int(body, "RANK", rank), rank);
    return tree;
}

static inline void forge(forged *f, const char *stem, const char *top,
                         void (*fill)(kvtree *tree, int rank))
{
    static const char *const ends[] = {".scr", ".1.0.scr", ".0.0.scr", ".0.4.scr"};
    f->stem = stem;
    f->top = top;
    for (int i = 0; i < FORGE_FILES; i++)
        snprintf(f->name[i], FORGE_NAME, "%s%s", stem, ends[i]);
    f->tree[FORGE_ROOT] = forge_upper(2, FORGE_RANKS);
    forge_pointer(f->tree[FORGE_ROOT], 0, f->name[FORGE_MIDDLE]);
    f->tree[FORGE_MIDDLE] = forge_upper(1, FORGE_RANKS);
    forge_pointer(f->tree[FORGE_MIDDLE], 0, f->name[FORGE_LOW]);
    forge_pointer(f->tree[FORGE_MIDDLE], 4, f->name[FORGE_HIGH]);
    f->tree[FORGE_LOW] = forge_lower(top, 0, fill);
    f->tree[FORGE_HIGH] = forge_lower(top, 4, fill);
}

/* Writes and frees a tree, if there is one. */
static inline void forge_write_tree(int dir, const char *name, kvtree **tree)
{
    if (*tree)
        forge_must(kvtree_file_write(dir, name, KVTREE_ANY_SIZE, *tree, NULL) == 0, name);
    kvtree_delete(tree);
}

/* Writes the set, and a directory "folder" beside it. */
static inline void forge_write(forged *f, int dir)
{
    forge_must(mkdirat(dir, "folder", 0700) == 0, "folder");
    for (int i = 0; i < FORGE_FILES; i++)
        forge_write_tree(dir, f->name[i], &f->tree[i]);
}

/* Writes a root at the given level, and one file for each lower level down to level 0,
 * which has four ranks. The reader of each level is another rank than that of the level
 * above. */
static inline void forge_chain(int dir, int levels, const char *root, const char *top,
                               void (*fill)(kvtree *tree, int rank))
{
    char name[32], lower[32];
    for (int level = 0; level <= levels; level++) {
        kvtree *tree = level ? forge_upper(level, 4) : forge_lower(top, 0, fill);
        snprintf(name, sizeof name, "chain.%d", level);
        snprintf(lower, sizeof lower, "chain.%d", level - 1);
        if (level) forge_pointer(tree, level % 4, lower);
        forge_write_tree(dir, level == levels ? root : name, &tree);
    }
}

/* ---- places for changes ---- */

static inline kvtree *forge_body(const forged *f, int file)
{
    return file >= FORGE_LOW ? kvtree_get(f->tree[file], f->top) : f->tree[file];
}

/* Returns the only pointer of the root, or the first one of the middle file. */
static inline kvtree *forge_first(const forged *f, int file)
{
    return kvtree_get_kv_int(f->tree[file], "RANK", 0);
}

/* Replaces a rank by another one. */
static inline void forge_rank(const forged *f, int file, int rank, const char *other)
{
    kvtree *body = forge_body(f, file);
    kvtree_unset_kv_int(body, "RANK", rank);
    kvtree_set_kv(body, "RANK", other);
}

static inline void forge_point(const forged *f, int file, const char *name)
{
    kvtree_util_set_str(forge_first(f, file), "FILE", name);
}

/* ---- one change each ---- */

static inline void forge_cycle_to_root(forged *f)
{
    forge_point(f, FORGE_MIDDLE, f->name[FORGE_ROOT]);
}

static inline void forge_cycle_to_itself(forged *f)
{
    forge_point(f, FORGE_ROOT, f->name[FORGE_ROOT]);
}

static inline void forge_level_skipped(forged *f)
{
    forge_point(f, FORGE_ROOT, f->name[FORGE_LOW]);
}

static inline void forge_level_huge(forged *f)
{
    kvtree_util_set_int(f->tree[FORGE_ROOT], "LEVEL", 2000000000);
}

static inline void forge_level_of_root_zero(forged *f)
{
    kvtree_util_set_int(f->tree[FORGE_ROOT], "LEVEL", 0);
}

static inline void forge_level_negative(forged *f)
{
    kvtree_util_set_int(f->tree[FORGE_ROOT], "LEVEL", -1);
}

static inline void forge_level_missing(forged *f)
{
    kvtree_unset(f->tree[FORGE_MIDDLE], "LEVEL");
}

static inline void forge_level_no_number(forged *f)
{
    kvtree_util_set_str(forge_body(f, FORGE_HIGH), "LEVEL", "zero");
}

static inline void forge_pointer_leads_out(forged *f)
{
    forge_point(f, FORGE_MIDDLE, "../x.scr");
}

static inline void forge_pointer_absolute(forged *f)
{
    forge_point(f, FORGE_ROOT, "/tmp/x.1.0.scr");
}

static inline void forge_pointer_empty(forged *f)
{
    forge_point(f, FORGE_ROOT, "");
}

static inline void forge_pointer_to_folder(forged *f)
{
    forge_point(f, FORGE_ROOT, "folder");
}

static inline void forge_pointer_without_file(forged *f)
{
    kvtree_unset(forge_first(f, FORGE_MIDDLE), "FILE");
}

static inline void forge_offset_beyond(forged *f)
{
    kvtree_util_set_bytecount(forge_first(f, FORGE_MIDDLE), "OFFSET", 1ul << 40);
}

static inline void forge_offset_negative(forged *f)
{
    kvtree_util_set_int(forge_first(f, FORGE_ROOT), "OFFSET", -1);
}

static inline void forge_offset_missing(forged *f)
{
    kvtree_unset(forge_first(f, FORGE_ROOT), "OFFSET");
}

/* Puts rank 2 into both lower files, in place of rank 7, so that all counts are right. */
static inline void forge_rank_twice(forged *f)
{
    forge_rank(f, FORGE_HIGH, 7, "2");
}

static inline void forge_rank_twice_spelled_apart(forged *f)
{
    forge_rank(f, FORGE_HIGH, 7, "06");
}

static inline void forge_file_named_twice(forged *f)
{
    forge_point(f, FORGE_MIDDLE, f->name[FORGE_HIGH]);
}

static inline void forge_rank_beyond(forged *f)
{
    forge_rank(f, FORGE_HIGH, 7, "8");
}

static inline void forge_rank_negative(forged *f)
{
    forge_rank(f, FORGE_LOW, 3, "-3");
}

static inline void forge_rank_no_number(forged *f)
{
    forge_rank(f, FORGE_LOW, 3, "three");
}

static inline void forge_reader_beyond(forged *f)
{
    forge_pointer(f->tree[FORGE_MIDDLE], 99999999, f->name[FORGE_LOW]);
}

static inline void forge_lower_missing(forged *f)
{
    kvtree_delete(&f->tree[FORGE_HIGH]);
}

static inline void forge_middle_missing(forged *f)
{
    kvtree_delete(&f->tree[FORGE_MIDDLE]);
}

static inline void forge_ranks_of_root_wrong(forged *f)
{
    kvtree_util_set_int(f->tree[FORGE_ROOT], "RANKS", 9);
}

static inline void forge_ranks_of_all_huge(forged *f)
{
    kvtree_util_set_int(f->tree[FORGE_ROOT], "RANKS", 2147483647);
}

static inline void forge_ranks_beyond_int(forged *f)
{
    kvtree_util_set_str(f->tree[FORGE_ROOT], "RANKS", "99999999999999999999");
}

static inline void forge_ranks_missing(forged *f)
{
    kvtree_unset(f->tree[FORGE_ROOT], "RANKS");
}

static inline void forge_no_items(forged *f)
{
    kvtree_unset(f->tree[FORGE_ROOT], "RANK");
}

static inline void forge_no_top_key(forged *f)
{
    kvtree *body = kvtree_extract(f->tree[FORGE_LOW], f->top);
    kvtree_delete(&f->tree[FORGE_LOW]);
    f->tree[FORGE_LOW] = body;
}

/* A change, and the expected text of a reader; a text that begins with a dot follows the
 * stem of the set. */
static const struct forge_case {
    void (*change)(forged *f);
    const char *text;
} forge_cases[] = {
    {forge_cycle_to_root, ".scr: no valid LEVEL"},
    {forge_cycle_to_itself, ".scr: LEVEL is 2, not 1"},
    {forge_level_skipped, ".0.0.scr: no valid LEVEL"},
    {forge_level_huge, ".scr: LEVEL 2000000000 cannot be that of a root"},
    {forge_level_of_root_zero, ".scr: LEVEL 0 cannot be that of a root"},
    {forge_level_negative, ".scr: LEVEL -1 cannot be"},
    {forge_level_missing, ".1.0.scr: no valid LEVEL"},
    {forge_level_no_number, ".0.4.scr: no valid LEVEL"},
    {forge_pointer_leads_out, ".1.0.scr: reader 0: file name \"../x.scr\""},
    {forge_pointer_absolute, ".scr: reader 0: file name \"/tmp/x.1.0.scr\" is not"},
    {forge_pointer_empty, ".scr: reader 0: empty file name"},
    {forge_pointer_to_folder, "read folder: folder is not a regular file"},
    {forge_pointer_without_file, ".1.0.scr: reader 0 has no FILE"},
    {forge_offset_beyond, ".1.0.scr: the OFFSET of reader 0 is not 0"},
    {forge_offset_negative, ".scr: the OFFSET of reader 0 is not 0"},
    {forge_offset_missing, ".scr: the OFFSET of reader 0 is not 0"},
    {forge_rank_twice, "scr: rank 2 is listed twice"},
    {forge_rank_twice_spelled_apart, ".0.4.scr: \"06\" is no rank"},
    {forge_file_named_twice, "."},
    {forge_file_named_twice, "is listed twice"},
    {forge_rank_beyond, ".0.4.scr: rank 8 of only 8 is listed"},
    {forge_rank_negative, ".0.0.scr: \"-3\" is no rank"},
    {forge_rank_no_number, ".0.0.scr: \"three\" is no rank"},
    {forge_reader_beyond, ".1.0.scr: rank 99999999 of only 8 is listed"},
    {forge_lower_missing, ".0.4.scr is missing"},
    {forge_middle_missing, ".1.0.scr is missing"},
    {forge_ranks_of_root_wrong, ".scr is of 9 ranks, but its files list 8"},
    {forge_ranks_of_all_huge, "is of 2147483647 ranks, but its files list 8"},
    {forge_ranks_beyond_int, ".scr: no valid RANKS"},
    {forge_ranks_missing, ".scr: no valid RANKS"},
    {forge_no_items, ".scr: nothing under RANK"},
    {forge_no_top_key, ".0.0.scr: no valid LEVEL"},
};

enum { FORGE_CASES = sizeof forge_cases / sizeof *forge_cases };

static inline void forge_text(const forged *f, const char *text, char out[256])
{
    snprintf(out, 256, "%s%s", *text == '.' ? f->stem : "", text);
}

/* ---- the bytes of a file ---- */

enum { FORGE_HARMS = 7 };

/* Harms a file: it is truncated, altered, replaced by something else or by a link, far
 * too long, or empty; or its size field is 1 TB and it has that number of bytes, as a
 * hole. */
static inline void forge_harm(int dir, const char *name, int how)
{
    static const char size[8] = {0, 0, 1, 0, 0, 0, 0, 0};
    char away[FORGE_NAME + 8];
    int fd = openat(dir, name, O_RDWR), done = fd >= 0;
    snprintf(away, sizeof away, "%s.away", name);
    if (how == 0) done &= ftruncate(fd, 30) == 0;
    if (how == 1) done &= pwrite(fd, "\xff", 1, 50) == 1;
    if (how == 2) done &= pwrite(fd, "not a tree", 10, 0) == 10;
    if (how == 3)
        done &=
            renameat(dir, name, dir, away) == 0 &&
            symlinkat(strrchr(away, '/') ? strrchr(away, '/') + 1 : away, dir, name) == 0;
    if (how == 4) done &= ftruncate(fd, (off_t)1 << 40) == 0;
    if (how == 5) done &= ftruncate(fd, 0) == 0;
    if (how == 6)
        done &= pwrite(fd, size, sizeof size, 8) == sizeof size &&
                ftruncate(fd, (off_t)1 << 40) == 0;
    forge_must(done && close(fd) == 0, name);
}

#endif
