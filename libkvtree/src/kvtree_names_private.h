/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_NAMES_PRIVATE_H
#define KVTREE_NAMES_PRIVATE_H

/* Names of functions that only other parts of this library call; see kvtree_names.h. */

#define kvtree_fprint_at scr_kvtree_fprint_at
#define kvtree_fprint_key scr_kvtree_fprint_key
#define kvtree_measure scr_kvtree_measure
#define kvtree_packer_next scr_kvtree_packer_next
#define kvtree_read_whole scr_kvtree_read_whole
#define kvtree_replace scr_kvtree_replace
#define kvtree_unpack_merge scr_kvtree_unpack_merge
#define kvtree_write_packed scr_kvtree_write_packed

#endif
