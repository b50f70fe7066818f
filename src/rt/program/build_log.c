/* rt/program/build_log.c - the message for a kernel source that does not build: the offending line and the compiler's
 * message. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "rt/device/driver_cache.h"
#include "rt/device/lost.h"
#include "rt/program/program.h"
#include "rt/program/user_source.h"

/* A place in a source, as `#line` directives name it. */
typedef struct place {
    char file[128];
    int line;
} place;

/* Compilers write `file:4:12:` (clang, NVIDIA), `"file", line 4:` (older AMD and Intel) or `file(4)`. */
static bool read_line_number(const char *at, int *line)
{
    at += *at == '"';
    at += strspn(at, ":(, ");
    if (strncmp(at, "line ", 5) == 0)
        at += 5;
    char *end;
    long number = strtol(at, &end, 10);
    if (end == at || number < 1 || number > 1000000)
        return false;
    *line = (int)number;
    return true;
}

static const char *line_end(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end : line + strlen(line);
}

/* Is `file` mentioned between line and end, as a whole word, with a line number? */
static bool find_mention(place *found, const char *file, const char *line, const char *end)
{
    for (const char *at = line; (at = strstr(at, file)) && at < end; at++) {
        bool inside = at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (!inside && read_line_number(at + strlen(file), &found->line)) {
            snprintf(found->file, sizeof found->file, "%s", file);
            return true;
        }
    }
    return false;
}

/* Does the log line [line, end) mention a place in one of the files that `text` names? */
static bool find_place(place *found, const char *line, const char *end, const char *text)
{
    char file[128];
    int first;
    for (const char *at = text; (at = strstr(at, "#line ")); at++)
        if (sscanf(at, "#line %d \"%127[^\"]\"", &first, file) == 2 && find_mention(found, file, line, end))
            return true;
    return false;
}

/* The text of line `wanted->line` of file `wanted->file` inside `text`; its length in *length; NULL if there is
 * none. */
static const char *source_line(const char *text, const place *wanted, size_t *length)
{
    place here = {.file = "", .line = 1};
    for (const char *line = text; *line; line = *line_end(line) ? line_end(line) + 1 : line_end(line)) {
        if (*line == '#' && sscanf(line, "#line %d \"%127[^\"]\"", &here.line, here.file) == 2)
            continue;
        if (here.line == wanted->line && strcmp(here.file, wanted->file) == 0) {
            line += strspn(line, " \t");
            *length = (size_t)(line_end(line) - line);
            while (*length > 0 && isspace((unsigned char)line[*length - 1])) /* the \r of a text from Windows */
                --*length;
            return line;
        }
        here.line++;
    }
    return NULL;
}

/* "error: ", "Error: ", "fatal error: ": not the name of a file, such as `mirror` in "mirror:3:1: warning: ...". */
static bool is_error_line(const char *line, const char *end)
{
    for (const char *at = line; (at = strstr(at, "rror")) && at < end; at++)
        if (at > line && (at[-1] == 'e' || at[-1] == 'E') && (at - 1 == line || !isalnum((unsigned char)at[-2])) &&
            at[4] == ':' && !isdigit((unsigned char)at[5]))
            return true;
    return false;
}

/* The log from its first error on, if it has one: hundreds of warnings may come before. */
static const char *from_first_error(const char *log)
{
    for (const char *line = log; *line; line = *line_end(line) ? line_end(line) + 1 : line_end(line))
        if (is_error_line(line, line_end(line)))
            return line;
    return log;
}

/* "line 3 of `gelu`, `return x * bogus;`; " for the first error that names a line; "" if none does. */
static void describe_line(char *buffer, size_t size, const char *log, const char *text)
{
    buffer[0] = '\0';
    for (const char *line = log; *line; line = *line_end(line) ? line_end(line) + 1 : line_end(line)) {
        const char *end = line_end(line);
        place p;
        size_t length = 0;
        if (!is_error_line(line, end) || !find_place(&p, line, end, text))
            continue;
        const char *quoted = source_line(text, &p, &length);
        if (quoted)
            snprintf(buffer, size, "line %d of `%s` is `%.*s`; ", p.line, p.file, (int)(length < 200 ? length : 200),
                     quoted);
        return;
    }
}

static char *read_log(kn_device *device, cl_program handle)
{
    size_t size = 0;
    clGetProgramBuildInfo(handle, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = kn_calloc(1, size + 1);
    if (log && size)
        clGetProgramBuildInfo(handle, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    return log;
}

/* Errors not caused by the source: the driver ran out of resources, or cannot write its files. KN_OK: the source is at
 * fault. */
static kn_status fail_driver(kn_device *device, const char *source, cl_int error)
{
    if (error != CL_BUILD_PROGRAM_FAILURE)
        return kn_cl_fail(error, device, "building kernel source %s", source);
    char *folder = device->quirks.caches_programs ? kn_driver_cache_folder() : NULL;
    kn_status status = KN_OK;
    if (folder && !kn_driver_cache_is_usable(folder))
        status =
            kn_fail(KN_ERR_IO,
                    "kernel source %s cannot be built on %s: its driver cannot write to '%s'; make it writable, or "
                    "set POCL_CACHE_DIR to a folder that is",
                    source, device->label, folder);
    kn_free(folder);
    return status;
}

kn_status kn_fail_build(kn_device *device, const kn_program *program, cl_program handle, cl_int error, const char *text)
{
    KN_TRY(fail_driver(device, program->source, error));
    char *log = read_log(device, handle);
    /* https://github.com/apptainer/apptainer/issues/1752: a container without libnvidia-nvvm.so.4 */
    const char *silent = "nothing: a library of its own may be missing, as in containers; `koine doctor` looks for it";
    const char *said = log && *log ? log : silent, *name = strrchr(program->source, '/');
    char line[400];
    describe_line(line, sizeof line, said, text);
    char title[256];
    snprintf(title, sizeof title, "build log of %s [%s]", program->source, program->options);
    if (*said)
        kn_log_lines(KN_LOG_DEBUG, title, said);
    name = kn_user_source_is(program->source) && name ? name + 1 : program->source;
    kn_status status = kn_fail(
        KN_ERR_DEVICE, "kernel source %s does not build on %s (%s, options `%s`): %s; %sthe compiler says: ", name,
        device->label, device->properties.name, program->options, kn_cl_error_name(error), line);
    kn_error_append_lines(from_first_error(said));
    kn_free(log);
    return status;
}
