/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_TESTS_FORGE_MAP_H
#define FILO_TESTS_FORGE_MAP_H

/* Forged and damaged maps, for all tests of reading maps: the maps of
 * tests/support/forge_gather.h, of eight ranks with one file each, and maps whose damage
 * only libfilo can detect. */

#include "forge_gather.h"

#include <filo/filo.h>

static const char *const forge_map_names[FORGE_FILES] = {
    FILO_MAP, ".scr/rank2file.1.0.scr", ".scr/rank2file.0.0.scr",
    ".scr/rank2file.0.4.scr"};

/* rank_<r>.ckpt of r bytes. */
static inline void forge_map_fill(kvtree *tree, int rank)
{
    char name[32];
    snprintf(name, sizeof name, "rank_%d.ckpt", rank);
    kvtree *file = kvtree_set_kv(tree, "FILE", name);
    kvtree_util_set_bytecount(file, "SIZE", (unsigned long)rank);
    kvtree_util_set_crc32(file, "CRC", 0x1234);
}

/* The files of rank 5, and its only file. */
static inline kvtree *forge_map_files(const forged *f)
{
    return kvtree_getf(f->tree[FORGE_HIGH], "RANK2FILE RANK %d FILE", 5);
}

static inline kvtree *forge_map_file(const forged *f)
{
    return kvtree_get(forge_map_files(f), "rank_5.ckpt");
}

/* ---- one change each ---- */

static inline void forge_map_add(forged *f, const char *name)
{
    kvtree_util_set_bytecount(kvtree_set(forge_map_files(f), name, NULL), "SIZE", 1);
}

static inline void forge_map_leads_out(forged *f)
{
    forge_map_add(f, "../../etc/passwd");
}

static inline void forge_map_absolute(forged *f)
{
    forge_map_add(f, "/etc/passwd");
}

static inline void forge_map_size_missing(forged *f)
{
    kvtree_unset(forge_map_file(f), "SIZE");
}

static inline void forge_map_size_negative(forged *f)
{
    kvtree_util_set_str(forge_map_file(f), "SIZE", "-5");
}

static inline void forge_map_crc_no_number(forged *f)
{
    kvtree_util_set_str(forge_map_file(f), "CRC", "0x1g");
}

static inline void forge_map_time_no_number(forged *f)
{
    kvtree_util_set_str(forge_map_file(f), "MTIME", "1.5");
}

static inline void forge_map_others_negative(forged *f)
{
    kvtree_util_set_str(forge_map_file(f), "OTHERS", "-1");
}

static inline void forge_map_others_none(forged *f)
{
    kvtree_set(forge_map_file(f), "OTHERS", NULL);
}

static inline void forge_map_segment(forged *f, const char *container, const char *offset,
                                     const char *length)
{
    kvtree *segment = kvtree_set_kv_int(forge_map_file(f), "SEG", 0);
    kvtree_util_set_str(segment, "FILE", container);
    kvtree_util_set_str(segment, "OFFSET", offset);
    kvtree_util_set_str(segment, "LENGTH", length);
}

static inline void forge_map_container_leads_out(forged *f)
{
    forge_map_segment(f, "../ctr.0.scr", "0", "5");
}

static inline void forge_map_segment_too_far(forged *f)
{
    forge_map_segment(f, "ctr.0.scr", "9223372036854775803", "5");
}

static inline void forge_map_segment_too_short(forged *f)
{
    forge_map_segment(f, "ctr.0.scr", "0", "4");
}

static const struct forge_case forge_map_only[] = {
    {forge_map_leads_out, ".scr: rank 5: file name \"../../etc/passwd\""},
    {forge_map_absolute, ".scr: rank 5: file name \"/etc/passwd\""},
    {forge_map_size_missing, ".scr: rank 5: file \"rank_5.ckpt\" has no valid SIZE"},
    {forge_map_size_negative, ".scr: rank 5: file \"rank_5.ckpt\" has no valid SIZE"},
    {forge_map_crc_no_number, ".scr: rank 5: file \"rank_5.ckpt\" has no valid CRC"},
    {forge_map_time_no_number, ".scr: rank 5: file \"rank_5.ckpt\" has no valid MTIME"},
    {forge_map_others_negative, ".scr: rank 5: file \"rank_5.ckpt\" has no valid OTHERS"},
    {forge_map_others_none, ".scr: rank 5: file \"rank_5.ckpt\" has no valid OTHERS"},
    {forge_map_container_leads_out, "rank 5: file \"rank_5.ckpt\" has no valid SEG 0"},
    {forge_map_segment_too_far, "rank 5: file \"rank_5.ckpt\" has no valid SEG 0"},
    {forge_map_segment_too_short, "the segments of file \"rank_5.ckpt\" do not add up"},
};

enum { FORGE_MAP_CASES = FORGE_CASES + sizeof forge_map_only / sizeof *forge_map_only };

/* Returns the change of case i, and the text that a reader must report. */
static inline void (*forge_map_case(int i, char text[256]))(forged *)
{
    const forged f = {.stem = ".scr/rank2file"};
    const struct forge_case *c =
        i < FORGE_CASES ? &forge_cases[i] : &forge_map_only[i - FORGE_CASES];
    forge_text(&f, c->text, text);
    return c->change;
}

/* ---- files ---- */

static inline int forge_map_open(const char *prefix)
{
    int dir = open(prefix, O_RDONLY | O_DIRECTORY);
    forge_must(dir >= 0, prefix);
    return dir;
}

/* Creates the directory prefix with a valid map in which one thing is changed. */
static inline void forge_map(const char *prefix, void (*change)(forged *))
{
    forged f;
    forge_must(mkdir(prefix, 0700) == 0, prefix);
    int dir = forge_map_open(prefix);
    forge_must(mkdirat(dir, ".scr", 0700) == 0, ".scr");
    forge(&f, ".scr/rank2file", "RANK2FILE", forge_map_fill);
    if (change) change(&f);
    forge_write(&f, dir);
    close(dir);
}

static inline void forge_map_harm(const char *prefix, const char *file, int how)
{
    int dir = forge_map_open(prefix);
    forge_harm(dir, file, how);
    close(dir);
}

#endif
