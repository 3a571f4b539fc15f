/* SPDX-License-Identifier: BSD-3-Clause */
/* Records which rank wrote which file, stores that in a file, and reads it back. */
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    kvtree *map = kvtree_new(), *back = kvtree_new();
    kvtree *rank = kvtree_set_kv_int(map, "RANK", 0);
    kvtree *file = kvtree_set_kv(rank, "FILE", "rank_0.ckpt");
    int failed = kvtree_util_set_bytecount(file, "SIZE", 524294) ||
                 kvtree_write_file("example_map.kvt", map) ||
                 kvtree_read_file("example_map.kvt", back);

    unsigned long size = 0;
    file = kvtree_getf(back, "RANK %d FILE %s", 0, "rank_0.ckpt");
    failed = failed || kvtree_util_get_bytecount(file, "SIZE", &size) || size != 524294;
    kvtree_print(back, 0);
    unlink("example_map.kvt");
    kvtree_delete(&map);
    kvtree_delete(&back);
    return failed;
}
