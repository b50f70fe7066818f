/* base/intern.h - interned strings: each is stored once, so pointers can be kept and compared. Not thread-safe. */
#pragma once

#include "base/name_index.h"

/* Start with `kn_intern_table table = {0}`. */
typedef struct kn_intern_table {
    char **names;
    int count, capacity;
    kn_name_index index;
} kn_intern_table;

/* The table's copy of `text`, valid until kn_intern_free; NULL if out of memory. */
const char *kn_intern(kn_intern_table *table, const char *text);
void kn_intern_free(kn_intern_table *table);
