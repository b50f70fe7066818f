/* rt/program/source_text.c - the text of a kernel source, with its includes. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/system.h"
#include "base/text.h"
#include "rt/program/kernel_sources.h"
#include "rt/program/program.h"
#include "rt/program/user_source.h"

#define MAX_SOURCE_BYTES ((size_t)16 << 20)
#define MAX_INCLUDES 64

static kn_status read_source(kn_text *text, const char *path)
{
    if (kn_user_source_is(path))
        return kn_user_source_append(text, path);
    const char *folder = kn_trusted_environment("KOINE_KERNEL_DIR");
    if (folder && *folder) {
        char *full = kn_path_join(folder, path);
        if (!full)
            return KN_ERR_MEMORY;
        char *data = NULL;
        size_t size = 0;
        bool there = kn_file_exists(full);
        kn_status status = there ? kn_file_read_all(&data, &size, full, MAX_SOURCE_BYTES) : KN_OK;
        kn_free(full);
        if (there && status == KN_OK)
            kn_text_append_bytes(text, data, size);
        kn_free(data);
        if (there)
            return status;
    }
    for (const kn_kernel_source *source = kn_kernel_sources; source->path; source++) {
        if (strcmp(source->path, path) != 0)
            continue;
        for (const char *const *line = source->lines; *line; line++)
            kn_text_append(text, *line);
        return KN_OK;
    }
    return kn_fail(KN_ERR_INTERNAL, "there is no kernel source `%s`", path);
}

typedef struct include_list {
    char paths[MAX_INCLUDES][128];
    int count;
} include_list;

static bool included_before(include_list *seen, const char *path, size_t length)
{
    for (int i = 0; i < seen->count; i++)
        if (strlen(seen->paths[i]) == length && memcmp(seen->paths[i], path, length) == 0)
            return true;
    if (seen->count < MAX_INCLUDES && length < sizeof seen->paths[0]) {
        memcpy(seen->paths[seen->count], path, length);
        seen->paths[seen->count++][length] = '\0';
    }
    return false;
}

/* Does the line end inside a multi-line comment? `inside`: it starts inside one. */
static bool ends_in_comment(const char *line, size_t length, bool inside)
{
    char quote = 0;
    for (size_t i = 0; i + 1 < length; i++) {
        if (inside) {
            inside = !(line[i] == '*' && line[i + 1] == '/');
            i += !inside;
        } else if (quote) {
            if (line[i] == quote)
                quote = 0;
            i += line[i] == '\\';
        } else if (line[i] == '"' || line[i] == '\'') {
            quote = line[i];
        } else if (line[i] == '/' && line[i + 1] == '/') {
            return false;
        } else if (line[i] == '/' && line[i + 1] == '*') {
            inside = true;
            i++;
        }
    }
    return inside;
}

/* Replaces each `#include "path"` by the file's text, once per path. Done here so that the driver needs no -I, and the
 * cache's key covers everything that is compiled. Lines are counted from the source's last `#line`, if it has one
 * (rt/program/user_source.h). */
static kn_status expand(kn_text *out, const char *path, include_list *seen)
{
    kn_text raw = {0};
    kn_status status = read_source(&raw, path);
    if (status == KN_OK && raw.failed)
        status = KN_ERR_MEMORY; /* what was read is cut short */
    kn_text_format(out, "#line 1 \"%s\"\n", path);
    char name[128];
    snprintf(name, sizeof name, "%s", path);
    int line_number = 1;
    bool in_comment = false;
    for (const char *line = raw.data; status == KN_OK && line && *line; line_number++) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) + 1 : strlen(line);
        bool directive = *line == '#' && !in_comment; /* sscanf would read the text to its end, however long it is */
        char included[128];
        in_comment = ends_in_comment(line, length, in_comment);
        if (directive && sscanf(line, "#include \"%127[^\"]\"", included) == 1) {
            if (!included_before(seen, included, strlen(included)))
                status = expand(out, included, seen);
            if (status == KN_ERR_INTERNAL && kn_user_source_is(path)) /* the user's mistake, not ours */
                status =
                    kn_fail(KN_ERR_ARGUMENT, "line %d of `%s` includes \"%s\", which is not a header of the library",
                            line_number, name, included);
            kn_text_format(out, "#line %d \"%s\"\n", line_number + 1, name);
        } else if (directive && strncmp(line, "#pragma once", 12) == 0) {
            kn_text_append_bytes(out, "\n", 1); /* true of every file; compilers warn of it outside of headers */
        } else {
            if (directive && sscanf(line, "#line %d \"%127[^\"]\"", &line_number, name) == 2)
                line_number--;
            kn_text_append_bytes(out, line, length);
        }
        line += length;
    }
    kn_text_free(&raw);
    return status;
}

kn_status kn_kernel_source_text(char **text, const char *path)
{
    kn_text whole = {0};
    include_list seen = {.count = 0};
    kn_status status = expand(&whole, path, &seen);
    if (status != KN_OK) {
        kn_text_free(&whole);
        return status;
    }
    *text = kn_text_finish(&whole);
    return *text ? KN_OK : KN_ERR_MEMORY;
}
