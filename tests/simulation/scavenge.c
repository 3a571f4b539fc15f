/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of scr_copy and scr_index --add; see scavenge.h. This file is linked into the
 * product's object, so that the simulator also handles its system calls. */
#include "scavenge.h"

#include "scavenge/commit_scavenged.h"
#include "scavenge/copy.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PREFIX "/prefix"

enum { WIDTH = 4 }; /* the default of both commands */

static int play_open_prefix(int *prefix, kvtree_error *err)
{
    *prefix = open(PREFIX, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *prefix < 0 ? err_sys(err, -errno, "open " PREFIX) : 0;
}

static int play_copy(const scavenge_node *node, const scavenge_wish *wish,
                     kvtree_error *err)
{
    scavenge_copied copied;
    int prefix, rc = play_open_prefix(&prefix, err);
    if (rc) return rc;
    rc = scavenge_copy(node, prefix, wish, &copied, err);
    close(prefix);
    if (rc || !copied.failed) return rc;
    *err = copied.why;
    return copied.code;
}

int scavenge_play_copy(const char *control, int id, bool redundancy, char *text)
{
    kvtree_error err = {""};
    scavenge_node node;
    const scavenge_wish wish = {
        .dset = id, .files = !redundancy, .redundancy = redundancy, .width = WIDTH};
    int rc = scavenge_node_open(control, PREFIX, &node, &err);
    if (!rc) {
        rc = play_copy(&node, &wish, &err);
        scavenge_node_close(&node);
    }
    snprintf(text, SCAVENGE_TEXT, "%s", err.text);
    return rc;
}

int scavenge_play_add(const char *name, bool *complete, char *text)
{
    kvtree_error err = {""};
    scavenge_key key;
    scavenge_commit_result result = {.complete = false};
    scavenge_prefix prefix = {PREFIX, -1, WIDTH, 0};
    int rc = play_open_prefix(&prefix.dir, &err);
    if (!rc) rc = scavenge_find(prefix.dir, name, &key, &err);
    if (!rc) rc = scavenge_commit(&prefix, &key, &result, &err);
    if (prefix.dir >= 0) close(prefix.dir);
    *complete = !rc && result.complete;
    snprintf(text, SCAVENGE_TEXT, "%s", rc ? err.text : result.why.text);
    free(result.rebuilt);
    return rc;
}
