/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CONFIG_FILE_H
#define SCR_CONFIG_FILE_H

/* Configuration files, in two forms that are distinguished by their content:
 *
 *     SCR_FLUSH: 5                         YAML, see config/config_yaml.c
 *     CKPT:
 *       0: {INTERVAL: 1, TYPE: XOR}
 *
 *     SCR_FLUSH=5                          lines, see config/config_lines.c
 *     CKPT=0 INTERVAL=1 TYPE=XOR
 *
 * The text of SCR_Config is one line of the second form. */

#include "config/desc.h"
#include "config/parameters.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>

/* Largest size of a configuration file, in bytes. */
#define SCR_CONFIG_FILE_MAX (1 << 20)

/* Reads a file into layer, which is empty. A missing file gives -ENOENT and is no
 * problem. All mistakes are added to problems; the valid entries are stored in layer. A
 * file of neither form, larger than SCR_CONFIG_FILE_MAX, or not a regular file also gives
 * a negative error. */
int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems);

/* Does the same for a text in memory; messages call it path. */
int scr_config_text_read(const char *path, const char *text, size_t size, kvtree *layer,
                         scr_problems *problems);

/* Reads the system file, or scr.conf beside it, into its layer if one of them exists.
 * Then reads the user's file: $SCR_CONF_FILE, which must exist; otherwise scr.yaml or
 * .scrconf in the prefix directory. Having both is a mistake. */
void scr_config_read_files(scr_config *config, const char *system_file,
                           scr_problems *problems);

/* ---- SCR_Config ---- */

/* Whether the text is a query: "SCR_FLUSH", "CKPT", "CKPT=0 TYPE"; but not "SCR_FLUSH 5",
 * which lacks its "=". */
bool scr_config_is_question(const char *text);

/* Applies any other text: "SCR_FLUSH=5", "SCR_FLUSH=" (unset), "CKPT=0 TYPE=XOR", "CKPT=0
 * TYPE=" (unsets the field), "CKPT=" (unsets all). Variables in values are expanded.
 * Returns 0; or, with nothing changed, 1 and a text for a name of an earlier version that
 * has no meaning now (config/former.h), -EINVAL and a text for a mistake, or -ENOMEM. */
int scr_config_set(scr_config *config, const char *text, kvtree_error *err);

/* Parses a query about descriptors. key and field are empty if the query has none.
 * Returns 0; -ENOENT for an invalid key or field; -EINVAL if the text is not such a
 * query; -ENOMEM. */
typedef struct scr_question {
    scr_desc_kind kind;
    char key[SCR_DESC_PATH_SIZE], field[SCR_DESC_NAME_SIZE];
} scr_question;
int scr_config_question(const char *text, scr_question *question);

#endif
