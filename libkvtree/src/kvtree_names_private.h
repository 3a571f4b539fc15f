/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_NAMES_PRIVATE_H
#define KVTREE_NAMES_PRIVATE_H

/* What functions are called that only other parts of this library may call; see
 * kvtree_names.h. */

#define kvtree_fprint_inset scr_kvtree_fprint_inset
#define kvtree_fprint_key scr_kvtree_fprint_key
#define kvtree_packer_next scr_kvtree_packer_next
#define kvtree_read_whole scr_kvtree_read_whole
#define kvtree_unpack_merge scr_kvtree_unpack_merge

#endif
