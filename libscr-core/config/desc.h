/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DESC_H
#define SCR_DESC_H

/* Descriptors as they stand in configuration files: a kind, a key, and fields,
 *
 *     GROUPS=zin1 POWER=psu1 SWITCH=0
 *     STORE=/ssd GROUP=NODE COUNT=3
 *     CKPT=0 INTERVAL=1 STORE=/ssd TYPE=XOR
 *     LAUNCHER=palsrun RUN="mpiexec -n {ranks} --hosts {hosts}"
 *
 * (SCR Developer Guide 1.2, sections 2.7.3, 2.8.3 and 2.9.4). Their meaning is defined in
 * config/group.h, config/store.h and config/reddesc.h; the commands in tools/ define the
 * meaning of LAUNCHER. */

#include "config/parameters.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum scr_desc_kind {
    SCR_DESC_GROUPS,   /* key: name of a node; fields: any group and its value */
    SCR_DESC_STORE,    /* key: absolute path */
    SCR_DESC_CKPT,     /* key: number from 0 */
    SCR_DESC_LAUNCHER, /* key: its name; for commands (tools/run/launcher.h) */
    SCR_DESC_KINDS
} scr_desc_kind;

typedef struct scr_desc_field {
    scr_desc_kind kind;
    const char *name;
    scr_param_type type;
    const char *value; /* default, or the name of the parameter that gives it; or NULL */
    const char *help;  /* one line */
} scr_desc_field;

/* The fields of STORE, CKPT and LAUNCHER. An entry without a name ends the table. */
extern const scr_desc_field scr_desc_field_table[];

/* Size of a name of a node or group, and of a value in GROUPS, with the NUL. */
#define SCR_DESC_NAME_SIZE 256
/* Size of a path of a store, with the NUL. */
#define SCR_DESC_PATH_SIZE 1024
/* The numbers of redundancy descriptors are below this limit. */
#define SCR_DESC_CKPT_MAX 1000

const char *scr_desc_kind_name(scr_desc_kind kind);

/* Returns the kind of that name ("STORES" also means STORE); SCR_DESC_KINDS: none. */
scr_desc_kind scr_desc_kind_find(const char *name);

/* Returns the name of a field as in the table; for an alias, the name of its field. A
 * field of GROUPS may have any name except NODE and WORLD, which are built in. NULL:
 * none. */
const char *scr_desc_field_find(scr_desc_kind kind, const char *name);
const char *scr_desc_field_nearest(scr_desc_kind kind, const char *name);

/* Returns the valid name most similar to name, of all that may begin a line: parameters,
 * kinds, SCR_LOCKED. */
const char *scr_desc_nearest(const char *name);

/* Returns the canonical form of a key ("/tmp" for "/tmp/", "1" for "01"), which the
 * caller frees. NULL: no memory, or an invalid key (scr_desc_key_rule describes valid
 * keys). */
char *scr_desc_key(scr_desc_kind kind, const char *text);
const char *scr_desc_key_rule(scr_desc_kind kind);

/* Whether text is valid as the name or value of a node or group: not empty, shorter than
 * SCR_DESC_NAME_SIZE, and without control characters. */
bool scr_desc_is_name(const char *text);

/* ---- in a layer: <kind>/<key>/{SOURCE/<where>, FIELD/<field>/{VALUE/.., SOURCE/..}}
 * ---- */

/* scr_desc_get returns a descriptor of a layer; NULL: none. scr_desc_add returns the
 * existing descriptor, or a new one; NULL without memory. */
kvtree *scr_desc_get(const kvtree *layer, scr_desc_kind kind, const char *key);
kvtree *scr_desc_add(kvtree *layer, scr_desc_kind kind, const char *key,
                     const char *source);
int scr_desc_set(kvtree *desc, const char *field, const char *value, const char *source);
bool scr_desc_has(const kvtree *desc, const char *field);

/* Returns the effective descriptors of a kind, <key>/{SOURCE, FIELD/...}, as a new tree.
 * GROUPS and STORE: each field comes from the first layer that has it. CKPT: all
 * descriptors come from the first layer that has any. NULL without memory. */
kvtree *scr_config_descs(const scr_config *config, scr_desc_kind kind);

/* Returns a field of an effective descriptor; its text is NULL if the field is missing.
 * name receives the name of the value for messages. */
#define SCR_DESC_LABEL_SIZE 256
scr_value scr_desc_value(const kvtree_elem *desc, scr_desc_kind kind, const char *field,
                         char name[SCR_DESC_LABEL_SIZE]);

/* ---- descriptors as structs ---- */

/* A field that is a member of a struct. scr_desc_field_table gives its type. */
typedef struct scr_desc_member {
    const char *name; /* NULL ends a table */
    size_t offset;
    int least;                /* lower limit of a number */
    const char *const *words; /* possible values of a text; NULL: the caller reads it */
} scr_desc_member;

/* Stores the fields of a descriptor in their members. If a field is missing or invalid,
 * its member keeps its value. */
void scr_desc_read_members(const kvtree_elem *desc, scr_desc_kind kind,
                           const scr_desc_member *members, void *object,
                           scr_problems *problems);

/* Returns a member as text, which the caller frees; NULL if there is no such field, or no
 * memory. */
char *scr_desc_member_text(scr_desc_kind kind, const scr_desc_member *members,
                           const void *object, const char *field);

#endif
