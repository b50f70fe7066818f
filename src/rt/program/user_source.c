/* rt/program/user_source.c - the registry of user-defined kernel sources. */
#include "rt/program/user_source.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"

#define PREFIX "user/"
#define WRITTEN "written/" /* by the library alone */
#define NAME_LENGTH 60

typedef struct entry {
    char *text;
    char path[sizeof WRITTEN + KN_HASH_TEXT + NAME_LENGTH + 2]; /* its end is the name */
    const char *name;
    struct entry *next;
} entry;

/* There are few such texts, and they are rarely looked up: a list is enough. */
static struct {
    kn_mutex lock;
    entry *first;
} registry = {.lock = KN_MUTEX_INIT};

static entry *find(const char *path)
{
    entry *e = registry.first;
    while (e && strcmp(e->path, path) != 0)
        e = e->next;
    return e;
}

static entry *new_entry(const char *path, const char *text)
{
    entry *e = kn_calloc(1, sizeof *e);
    char *copy = e ? kn_strdup(text) : NULL;
    if (!copy) {
        kn_free(e);
        return NULL;
    }
    e->text = copy;
    snprintf(e->path, sizeof e->path, "%s", path);
    e->name = strrchr(e->path, '/') + 1;
    return e;
}

kn_status kn_user_source_add(kn_user_source *source, const char *name, const char *text, bool has_user_code)
{
    char hash[KN_HASH_TEXT], path[sizeof((entry *)0)->path];
    snprintf(path, sizeof path, "%s%s/%.*s", has_user_code ? PREFIX : WRITTEN, kn_hash_format(hash, kn_hash_text(text)),
             NAME_LENGTH, name);
    kn_lock(&registry.lock);
    entry *e = find(path);
    if (e && strcmp(e->text, text) != 0) { /* the hash is not cryptographic */
        kn_unlock(&registry.lock);
        return kn_fail(KN_ERR_STATE, "another source has the same hash as `%s`: add a space to it", name);
    }
    if (!e && (e = new_entry(path, text))) {
        e->next = registry.first;
        registry.first = e;
    }
    kn_unlock(&registry.lock);
    if (!e)
        return KN_ERR_MEMORY;
    *source = (kn_user_source){.path = e->path, .name = e->name};
    return KN_OK;
}

bool kn_user_source_has_user_code(const char *path) { return strncmp(path, PREFIX, sizeof PREFIX - 1) == 0; }

bool kn_user_source_is(const char *path)
{
    return kn_user_source_has_user_code(path) || strncmp(path, WRITTEN, sizeof WRITTEN - 1) == 0;
}

kn_status kn_user_source_append(kn_text *text, const char *path)
{
    kn_lock(&registry.lock);
    const entry *e = find(path);
    kn_unlock(&registry.lock); /* entries are never changed or removed */
    if (!e)
        return kn_fail(KN_ERR_INTERNAL, "there is no kernel source `%s`", path);
    kn_text_append(text, e->text);
    return KN_OK;
}
