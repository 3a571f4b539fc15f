/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of files. */
#include <filo/filo.h>

#include <stdlib.h>

static void list_free_file(filo_file *file)
{
    free(file->local);
    free(file->name);
    for (int i = 0; i < file->segments; i++)
        free(file->segment[i].container);
    free(file->segment);
}

filo_file *filo_files_free(int count, filo_file *files)
{
    for (int i = 0; files && i < count; i++)
        list_free_file(&files[i]);
    free(files);
    return NULL;
}
