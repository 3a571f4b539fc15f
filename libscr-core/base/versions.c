/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions of records; see base/versions.h. */
#include "base/versions.h"

#include "common/errtext.h"
#include "common/record_size.h"
#include <kvtree/kvtree_util.h>

int scr_version_check(const kvtree *tree, int wanted, const char *name, kvtree_error *err)
{
    int version;
    if (kvtree_util_get_int(tree, "VERSION", &version) != 0)
        return err_set(err, -EBADMSG, "%s has no version", name);
    if (version == wanted) return 0;
    return err_set(err, SCR_OTHER_VERSION,
                   "%s is of version %d; this program knows version %d: use the SCR that "
                   "wrote it, or another prefix directory",
                   name, version, wanted);
}

int scr_versions_check(int prefix, kvtree_error *err)
{
    static const char *const names[] = {SCR_FLUSH_FILE_NAME, SCR_HALT_NAME,
                                        SCR_NODES_NAME};
    kvtree *tree = kvtree_new();
    int rc =
        tree ? kvtree_file_read(prefix, SCR_INDEX_NAME, RECORD_SIZE_INDEX, tree, err) : 0;
    if (tree && !rc && kvtree_size(tree))
        rc = scr_version_check(tree, SCR_INDEX_VERSION, SCR_INDEX_NAME, err);
    for (size_t i = 0; tree && rc != SCR_OTHER_VERSION && i < 3; i++)
        rc = kvtree_file_read(prefix, names[i], RECORD_SIZE_SMALL, tree, err);
    kvtree_delete(&tree);
    return rc == SCR_OTHER_VERSION ? rc : 0;
}
