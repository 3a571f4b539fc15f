/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of files: checked, and converted to and from trees. */
#include "src/header/list.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const list_reserved_keys[] = {"FILE", "SIZE", "MODE", "CRC"};

int redset_file_check(const redset_file *file, redset_error *err)
{
    int rc = beneath_check_name(file->name, err);
    if (rc) return rc;
    for (size_t i = 0; i < sizeof list_reserved_keys / sizeof list_reserved_keys[0]; i++)
        if (kvtree_get(file->meta, list_reserved_keys[i]))
            return err_set(err, -EINVAL, "meta data of %s has the reserved key %s",
                           file->name, list_reserved_keys[i]);
    return 0;
}

int redset_list_sum(redset_list *list, redset_error *err)
{
    uint64_t sum = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->files[i].size > (uint64_t)INT64_MAX - sum)
            return err_set(err, -EOVERFLOW, "files of rank %d are too large together",
                           list->rank);
        sum += list->files[i].size;
    }
    list->size = sum;
    return 0;
}

static int list_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int redset_list_check(const redset_list *list, redset_error *err)
{
    size_t count = (size_t)list->count;
    const char **names = malloc((count + 1) * sizeof *names);
    int rc = names ? 0 : err_sys(err, -ENOMEM, "names of %zu files", count);
    for (size_t i = 0; i < count && !rc; i++)
        names[i] = list->files[i].name;
    if (!rc) qsort(names, count, sizeof *names, list_compare_names);
    for (size_t i = 1; i < count && !rc; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            rc = err_set(err, -EINVAL, "%s is listed twice", names[i]);
    free(names);
    return rc;
}

/* Always four octal digits, because the length of the header is fixed before all values
 * are known. */
static int list_add_mode(kvtree *entry, unsigned mode)
{
    char text[8];
    snprintf(text, sizeof text, "%04o", mode & 0777);
    return kvtree_util_set_str(entry, "MODE", text);
}

/* 0600 without MODE: headers of earlier versions have no modes. */
static int list_get_mode(const kvtree *entry, unsigned *mode)
{
    char *text;
    *mode = 0600;
    if (!kvtree_get(entry, "MODE")) return 0;
    if (kvtree_util_get_str(entry, "MODE", &text) != 0 || strlen(text) != 4 ||
        text[0] != '0' || strspn(text, "01234567") != 4)
        return -EBADMSG;
    *mode = (unsigned)strtoul(text, NULL, 8);
    return 0;
}

static int list_add_file(kvtree *files, int index, const redset_file *file,
                         bool unchecked)
{
    kvtree *entry = kvtree_set_kv_int(files, "FILE", index);
    if (!entry) return -ENOMEM;
    int rc = kvtree_merge(entry, file->meta);
    if (!rc) rc = kvtree_util_set_str(entry, "FILE", file->name);
    if (!rc) rc = kvtree_util_set_bytecount(entry, "SIZE", file->size);
    if (!rc) rc = list_add_mode(entry, file->mode);
    if (!rc && !unchecked) rc = kvtree_util_set_crc32(entry, "CRC", file->crc);
    return rc;
}

kvtree *redset_list_to_tree(const redset_list *list)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? kvtree_util_set_int(tree, "RANK", list->rank) : -ENOMEM;
    if (!rc) rc = kvtree_util_set_int(tree, "FILES", list->count);
    for (int i = 0; !rc && i < list->count; i++)
        rc = list_add_file(tree, i, &list->files[i], list->unchecked);
    if (rc) kvtree_delete(&tree);
    return tree;
}

int redset_tree_check_size(const kvtree *tree, int keys, redset_error *err)
{
    if (kvtree_size(tree) == keys) return 0;
    return err_set(err, -EBADMSG, "%d keys where %d should be", kvtree_size(tree), keys);
}

static int list_read_file(const kvtree *entry, bool unchecked, redset_file *file,
                          redset_error *err)
{
    char *name;
    redset_error why;
    unsigned long size, crc = 0;
    unsigned mode;
    if (kvtree_util_get_str(entry, "FILE", &name) != 0)
        return err_set(err, -EBADMSG, "no FILE");
    if (beneath_check_name(name, &why) != 0)
        return err_set(err, -EBADMSG, "%s", why.text);
    if (kvtree_util_get_bytecount(entry, "SIZE", &size) != 0 || size > INT64_MAX)
        return err_set(err, -EBADMSG, "no valid SIZE");
    if (unchecked ? kvtree_get(entry, "CRC") != NULL
                  : kvtree_util_get_crc32(entry, "CRC", &crc) != 0 || crc > UINT32_MAX)
        return err_set(err, -EBADMSG, unchecked ? "an unexpected CRC" : "no valid CRC");
    if (list_get_mode(entry, &mode) != 0) return err_set(err, -EBADMSG, "no valid MODE");
    *file = (redset_file){
        .name = name, .meta = entry, .size = size, .crc = (uint32_t)crc, .mode = mode};
    return 0;
}

static int list_read_files(const kvtree *entries, redset_list *list, redset_error *err)
{
    for (int i = 0; i < list->count; i++) {
        const kvtree *entry = redset_tree_at(entries, i);
        if (!entry) return err_set(err, -EBADMSG, "FILE %d is missing", i);
        int rc = list_read_file(entry, list->unchecked, &list->files[i], err);
        if (rc) return err_wrap(err, rc, "FILE %d", i);
    }
    int rc = redset_list_sum(list, err);
    if (!rc) rc = redset_list_check(list, err);
    return rc == 0 || rc == -ENOMEM ? rc : -EBADMSG;
}

int redset_list_from_tree(const kvtree *tree, bool unchecked, redset_list *list,
                          redset_error *err)
{
    redset_list read = {.unchecked = unchecked};
    if (kvtree_util_get_int(tree, "RANK", &read.rank) != 0 || read.rank < 0)
        return err_set(err, -EBADMSG, "no valid RANK");
    if (kvtree_util_get_int(tree, "FILES", &read.count) != 0 || read.count < 0)
        return err_set(err, -EBADMSG, "no valid FILES");
    const kvtree *entries = kvtree_get(tree, "FILE");
    /* checked before FILES determines the size of an allocation */
    if (kvtree_size(entries) != read.count)
        return err_set(err, -EBADMSG, "FILES says %d, but there are %d", read.count,
                       kvtree_size(entries));
    read.files = calloc((size_t)read.count + 1, sizeof *read.files);
    if (!read.files) return err_sys(err, -ENOMEM, "list of %d files", read.count);
    int rc = list_read_files(entries, &read, err);
    if (!rc) rc = redset_tree_check_size(tree, read.count > 0 ? 3 : 2, err);
    if (rc) {
        redset_list_done(&read);
        return rc;
    }
    *list = read;
    return 0;
}

void redset_list_done(redset_list *list)
{
    free(list->files);
    list->files = NULL;
}

kvtree *redset_tree_at(const kvtree *tree, int number)
{
    char key[16];
    snprintf(key, sizeof key, "%d", number);
    return kvtree_get(tree, key);
}

int redset_tree_crc(const kvtree *tree, uint32_t *crc)
{
    size_t size = kvtree_pack_size(tree);
    char *packed = malloc(size);
    if (!packed) return -ENOMEM;
    kvtree_pack(packed, tree);
    *crc = crc32_add(*crc, packed, size);
    free(packed);
    return 0;
}
