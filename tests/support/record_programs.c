/* support/record_programs.c - an OpenCL layer (OPENCL_LAYERS) that writes every program that is built to the folder
 * RECORD_PROGRAMS, for tools/gpu-code.py: its source as it would go to a driver that needs no help with its header, and
 * its options as a comment in front. A program that is built twice is one file. */
#include "support/layer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PROGRAMS = 4096 };

static struct {
    cl_program program;
    char *text;
} created[MOST_PROGRAMS]; /* and not yet built */
static int num_created;

/* What the library puts in front for drivers whose own header or vloads are long (rt/program/builtins.c), one part for
 * each, and an option. */
#define DECLARATIONS "#line 1 \"builtins\"\n"
#define INSTEAD_OF_HEADER " -D_OPENCL_H_"

static const char *without_declarations(const char *text)
{
    const char *start = text;
    while (start && strncmp(start, DECLARATIONS, strlen(DECLARATIONS)) == 0)
        start = strstr(start + strlen(DECLARATIONS), "#line 1 \"");
    return start ? start : text;
}

static char *copy(const char *text)
{
    char *to = malloc(strlen(text) + 1);
    return to ? strcpy(to, text) : NULL;
}

static unsigned long long hash(const char *text, unsigned long long seed)
{
    for (; *text; text++)
        seed = (seed ^ (unsigned char)*text) * 1099511628211ULL;
    return seed;
}

static void record(const char *text, const char *options)
{
    const char *folder = getenv("RECORD_PROGRAMS"), *extra;
    char path[1024], wanted[1024];
    snprintf(wanted, sizeof wanted, "%s", options ? options : "");
    if ((extra = strstr(wanted, INSTEAD_OF_HEADER))) {
        const char *rest = extra + strlen(INSTEAD_OF_HEADER);
        memmove(wanted + (extra - wanted), rest, strlen(rest) + 1);
    }
    text = without_declarations(text);
    snprintf(path, sizeof path, "%s/%016llx.cl", folder ? folder : ".",
             hash(wanted, hash(text, 14695981039346656037ULL)));
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "// %s\n%s", wanted, text);
    fclose(file);
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *error)
{
    cl_program program = below->clCreateProgramWithSource(context, count, texts, lengths, error);
    const bool whole = count == 1 && (!lengths || lengths[0] == 0); /* CLBlast's are not ours */
    char *text = program && whole && num_created < MOST_PROGRAMS ? copy(texts[0]) : NULL;
    if (text) {
        created[num_created].program = program;
        created[num_created++].text = text;
    }
    return program;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint num_devices, const cl_device_id *devices,
                                        const char *options, void(CL_CALLBACK *done)(cl_program, void *), void *data)
{
    for (int i = 0; i < num_created; i++)
        if (created[i].program == program) {
            record(created[i].text, options);
            free(created[i].text);
            created[i] = created[--num_created];
            break;
        }
    return below->clBuildProgram(program, num_devices, devices, options, done, data);
}

static void install(void)
{
    ours.clCreateProgramWithSource = create_program;
    ours.clBuildProgram = build_program;
}

LAYER("record_programs", install)
