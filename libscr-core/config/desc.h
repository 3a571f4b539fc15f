/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_DESC_H
#define SCR_DESC_H

/* Descriptors as they stand in configuration files: a kind, a key, and fields,
 *
 *     GROUPS=zin1 POWER=psu1 SWITCH=0
 *     STORE=/ssd GROUP=NODE COUNT=3
 *     CKPT=0 INTERVAL=1 STORE=/ssd TYPE=XOR
 *
 * (SCR Developer Guide 1.2, sections 2.7.3, 2.8.3 and 2.9.4). What they mean is in
 * config/group.h, config/store.h and config/reddesc.h. */

#include "config/parameters.h"
#include <kvtree/kvtree.h>

typedef enum scr_desc_kind {
    SCR_DESC_GROUPS, /* key: name of a node; fields: any group and its value */
    SCR_DESC_STORE,  /* key: absolute path */
    SCR_DESC_CKPT,   /* key: number from 0 */
    SCR_DESC_KINDS
} scr_desc_kind;

typedef struct scr_desc_field {
    scr_desc_kind kind;
    const char *name;
    scr_param_type type;
    const char *value; /* default, or the parameter whose value is the default; or NULL */
    const char *help;  /* one line */
} scr_desc_field;

/* The fields of STORE and CKPT, ended by an entry without a name. */
extern const scr_desc_field scr_desc_field_table[];

/* Of nodes, groups and their values, with the NUL. */
#define SCR_DESC_NAME_SIZE 256
/* Of stores. */
#define SCR_DESC_PATH_SIZE 1024
/* Numbers of redundancy descriptors are below this. */
#define SCR_DESC_CKPT_MAX 1000

const char *scr_desc_kind_name(scr_desc_kind kind);

/* The kind of that name; SCR_DESC_KINDS: there is none. STORES is STORE. */
scr_desc_kind scr_desc_kind_find(const char *name);

/* The name in the table of a kind's field; another name of the same, as it stands there.
 * Those of groups may be any name but NODE and WORLD, which are built in. NULL: there is
 * none. */
const char *scr_desc_field_find(scr_desc_kind kind, const char *name);
const char *scr_desc_field_nearest(scr_desc_kind kind, const char *name);

/* What may stand on the left in a file and is most like name: a parameter, a kind, or
 * SCR_LOCKED. */
const char *scr_desc_nearest(const char *name);

/* The one form of a key ("/tmp" for "/tmp/", "1" for "01"), to be freed. NULL: there is
 * no such key; scr_desc_key_rule tells what is one. */
char *scr_desc_key(scr_desc_kind kind, const char *text);
const char *scr_desc_key_rule(scr_desc_kind kind);

/* 1 for what can be the name of a node or group, or its value: of a length that is not 0,
 * below SCR_DESC_NAME_SIZE, and without control characters. */
int scr_desc_is_name(const char *text);

/* ---- in a layer: <kind>/<key>/{SOURCE/<where>, FIELD/<field>/{VALUE/.., SOURCE/..}}
 * ---- */

/* A descriptor of a layer; NULL if there is none. Added: the one that is there, or a new
 * one; NULL without memory. */
kvtree *scr_desc_get(const kvtree *layer, scr_desc_kind kind, const char *key);
kvtree *scr_desc_add(kvtree *layer, scr_desc_kind kind, const char *key,
                     const char *source);
int scr_desc_set(kvtree *desc, const char *field, const char *value, const char *source);
int scr_desc_has(const kvtree *desc, const char *field);

/* The descriptors of a kind that are in force, <key>/{SOURCE, FIELD/...}, a new tree.
 * GROUPS and STORE: each field comes from the first layer that has it. CKPT: all come
 * from the first layer that has any. NULL without memory. */
kvtree *scr_config_descs(const scr_config *config, scr_desc_kind kind);

/* A field of one of these; its text is NULL if the field is not there. name gets what the
 * value is called in messages. */
#define SCR_DESC_LABEL_SIZE 256
scr_value scr_desc_value(const kvtree_elem *desc, scr_desc_kind kind, const char *field,
                         char name[SCR_DESC_LABEL_SIZE]);

#endif
