/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RECORDS_H
#define RECORDS_H

/* What the tests of SCR's records share: a directory of their own, files with any bytes
 * in it, and trees as text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include <cmocka.h>
#include <fcntl.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
    char path[64];
    int dir;
    kvtree_error err; /* empty before each test */
};

/* cmocka's setup and teardown of a test: *state is a struct scratch, whose directory has
 * a directory ".scr" as a prefix directory has. */
static inline int scratch_make(void **state)
{
    struct scratch *s = calloc(1, sizeof *s);
    strcpy(s->path, "/tmp/scr-test-XXXXXX");
    if (!mkdtemp(s->path)) return -1;
    s->dir = open(s->path, O_RDONLY | O_DIRECTORY);
    *state = s;
    return s->dir < 0 ? -1 : mkdirat(s->dir, ".scr", 0700);
}

static inline int scratch_remove(void **state)
{
    struct scratch *s = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", s->path);
    close(s->dir);
    free(s);
    return system(command);
}

#define scratch_test(function)                                                           \
    cmocka_unit_test_setup_teardown(function, scratch_make, scratch_remove)

/* Makes the file name of size bytes. */
static inline void scratch_put(const struct scratch *s, const char *name,
                               const void *bytes, size_t size)
{
    int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(close(fd), 0);
}

/* Changes one byte of the file. */
static inline void scratch_flip(const struct scratch *s, const char *name, off_t offset)
{
    unsigned char byte;
    int fd = openat(s->dir, name, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    assert_int_equal(close(fd), 0);
}

/* The tree as kvtree_print prints it; to be freed. */
static inline char *tree_text(const kvtree *tree)
{
    char path[] = "/tmp/scr-test-XXXXXX";
    fflush(stdout);
    int file = mkstemp(path), kept = dup(STDOUT_FILENO);
    assert_true(file >= 0 && kept >= 0);
    assert_int_equal(unlink(path), 0);
    dup2(file, STDOUT_FILENO);
    kvtree_fprint(stdout, tree, KVTREE_FORM_TREE, 0);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    off_t size = lseek(file, 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1);
    assert_int_equal(pread(file, text, (size_t)size, 0), size);
    close(file);
    return text;
}

/* A tree from such text. Keys must not begin with a blank. */
static inline kvtree *text_tree(const char *text)
{
    kvtree *level[32] = {kvtree_new()};
    while (*text) {
        size_t blanks = strspn(text, " "), length = strcspn(text + blanks, "\n");
        char *key = strndup(text + blanks, length);
        assert_true(blanks % 2 == 0 && blanks / 2 < 31 && level[blanks / 2]);
        level[blanks / 2 + 1] = kvtree_set(level[blanks / 2], key, NULL);
        free(key);
        text += blanks + length;
        text += *text == '\n';
    }
    return level[0];
}

static inline void assert_tree(const kvtree *tree, const char *text)
{
    char *is = tree_text(tree);
    assert_string_equal(is, text);
    free(is);
}

/* The text says this, somewhere. */
#define assert_says(text, what)                                                          \
    do {                                                                                 \
        if (!strstr(text, what)) fail_msg("\"%s\" does not say \"%s\"", text, what);     \
    } while (0)

#endif
