/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_RECORD_SIZE_H
#define COMMON_RECORD_SIZE_H

/* Maximum size of a record, by its content. Others may have put a file under the name of
 * a record (docs/security.md), even a sparse file of any size, and a record is read as a
 * whole: without a limit such a file exhausts the memory of rank 0 or of a command. A
 * larger file counts as a damaged record, and no writer creates one.
 *
 * Each limit is a multiple of the largest use that docs/security.md measures. It is not
 * larger, because a tree of short keys takes 13 times its file size in memory. */

#include <stdint.h>

/* Records about one dataset, run or place, or about the datasets in the cache: halt,
 * flush and nodes file, summary, records of a stage, of saved files and of a control
 * directory. */
#define RECORD_SIZE_SMALL ((uint64_t)1 << 20)

/* Lists of the datasets of a prefix directory, with 410 to 710 bytes each. */
#define RECORD_SIZE_INDEX ((uint64_t)1 << 27)

/* Lists of the files of a rank or process, with 110 to 370 bytes each: filemaps, transfer
 * files, headers of redundancy files, and files with trees of ranks (kvtree_gather.h). */
#define RECORD_SIZE_FILES ((uint64_t)1 << 28)

#endif
