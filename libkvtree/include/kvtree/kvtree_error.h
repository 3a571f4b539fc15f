/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_ERROR_H
#define KVTREE_KVTREE_ERROR_H

/* The text of a failure.
 *
 * A function that can fail in more than one way has a `kvtree_error *err` among its
 * parameters: NULL, or the address of a variable of this type. A function that fails
 * stores one readable line there, with the operation, the path and the reason; otherwise
 * the variable is unchanged:
 *
 *     kvtree_error err = {""};
 *     rc = kvtree_file_read(AT_FDCWD, "map.scr", KVTREE_ANY_SIZE, tree, &err);
 *     if (rc) fprintf(stderr, "%s\n", err.text);
 *
 * libaxl-lite, libredset and libfilo name the same type axl_error, redset_error and
 * filo_error, so one variable serves all libraries. Nothing has to be freed. This header
 * declares no function. */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvtree_error {
    char text[512]; /* ends with NUL; a longer text is truncated */
} kvtree_error;

#ifdef __cplusplus
}
#endif

#endif
