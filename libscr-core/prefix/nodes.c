/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes file; see prefix/nodes.h. */
#include "prefix/nodes.h"

#include "common/errtext.h"
#include "common/record_size.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>

#define KEY_NODES "NODES"

int scr_nodes_read(int prefix, int *nodes, kvtree_error *err)
{
    int number = 0;
    kvtree *tree = kvtree_new();
    int rc = tree ? kvtree_file_read(prefix, SCR_NODES_NAME, RECORD_SIZE_SMALL, tree, err)
                  : err_set(err, -ENOMEM, "no memory");
    if (!rc && (kvtree_util_get_int(tree, KEY_NODES, &number) != 0 || number < 1))
        rc = err_set(err, -EBADMSG, "%s does not tell the number of nodes",
                     SCR_NODES_NAME);
    kvtree_delete(&tree);
    if (!rc) *nodes = number;
    return rc;
}

int scr_nodes_write(int prefix, int nodes, kvtree_error *err)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? kvtree_util_set_int(tree, KEY_NODES, nodes) : -ENOMEM;
    rc = rc ? err_set(err, rc, "no memory")
            : kvtree_file_write(prefix, SCR_NODES_NAME, RECORD_SIZE_SMALL, tree, err);
    kvtree_delete(&tree);
    return rc;
}
