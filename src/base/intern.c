/* base/intern.c - see base/intern.h. */
#include "base/intern.h"

#include "base/memory.h"

static const char *name_at(const void *table, int position)
{
    return ((const kn_intern_table *)table)->names[position];
}

const char *kn_intern(kn_intern_table *table, const char *text)
{
    const int found = kn_name_index_find(&table->index, text, name_at, table);
    if (found >= 0)
        return table->names[found];
    char *copy = kn_strdup(text);
    if (!copy || KN_GROW(table->names, table->count, table->capacity) != KN_OK ||
        kn_name_index_add(&table->index, copy, table->count) != KN_OK) {
        kn_free(copy);
        return NULL;
    }
    return table->names[table->count++] = copy;
}

void kn_intern_free(kn_intern_table *table)
{
    for (int i = 0; i < table->count; i++)
        kn_free(table->names[i]);
    kn_free(table->names);
    kn_name_index_free(&table->index);
    *table = (kn_intern_table){0};
}
