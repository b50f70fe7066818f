/* tests/cli/run_program.c - runs a command line and keeps what it printed. */
#include "run_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE 4096

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot read %s", path);
    char *text = calloc(1, 1 << 20);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    text[length] = '\0';
    fclose(file);
    unlink(path);
    return text;
}

run_result run_shell(const char *format, ...)
{
    char command[2 * PATH_SIZE], line[3 * PATH_SIZE], output[PATH_SIZE], errors[PATH_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(output, sizeof output, "%s/tests/run-%ld.out", KOINE_BINARY_DIR, (long)getpid());
    snprintf(errors, sizeof errors, "%s/tests/run-%ld.err", KOINE_BINARY_DIR, (long)getpid());
    if (snprintf(line, sizeof line, "{ %s ; } >'%s' 2>'%s'", command, output, errors) >= (int)sizeof line)
        fail_msg("the command line is too long");
    int status = system(line);
    return (run_result){.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                        .output = read_file(output),
                        .errors = read_file(errors)};
}

void run_free(run_result *result)
{
    free(result->output);
    free(result->errors);
}

const char *fresh_folder(const char *name)
{
    static char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/tests/folders/%s", KOINE_BINARY_DIR, name);
    run_result result = run_shell("rm -rf '%s' && mkdir -p '%s'", path, path);
    assert_status(result, 0);
    run_free(&result);
    return path;
}

void put_file(const char *folder, const char *path, const char *text)
{
    char full[PATH_SIZE];
    if (snprintf(full, sizeof full, "%s/%s", folder, path) >= PATH_SIZE)
        fail_msg("the path is too long");
    run_result result = run_shell("mkdir -p \"$(dirname '%s')\"", full);
    assert_status(result, 0);
    run_free(&result);
    FILE *file = fopen(full, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        fail_msg("cannot write %s", full);
}

const char *first_device_name(void) { return kn_device_count() > 0 ? kn_device_string(kn_device_at(0)) : "none"; }

bool pocl_makes_two(const char *program)
{
    run_result r = run_shell("POCL_DEVICES='pthread pthread' '%s' devices", program);
    const bool two = strstr(r.output, " cpu:1 ") && !strstr(r.output, " gpu:") && !strstr(r.output, " cpu:2 ");
    run_free(&r);
    return two;
}

int longest_line(const char *text)
{
    int longest = 0, length = 0;
    for (; *text; text++) {
        if (*text == '\033')
            text += strcspn(text, "m");
        else if (*text == '\n' || *text == '\r')
            length = 0;
        else if (((unsigned char)*text & 0xC0) != 0x80)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

bool has_script(void)
{
    run_result r = run_shell("script -qec true /dev/null </dev/null");
    bool there = r.status == 0;
    run_free(&r);
    return there;
}
