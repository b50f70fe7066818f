/* support/odd_driver/programs.c - what compilers accept, and what they say. */
#include "support/odd_driver/odd.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_TEXTS 16
#define WARNINGS 300

/* In front of each source. */
static const char *preamble(void)
{
    return odd[ODD_BARE].is_on ? "#undef cl_khr_fp64\n"
                                 "#undef cl_khr_int64_base_atomics\n"
                                 "#undef cl_khr_int64_extended_atomics\n"
                                 "#define double this_device_has_no_double\n"
                                 "#line 1\n"
                               : "";
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *error)
{
    const char *all[MAX_TEXTS] = {preamble()};
    size_t all_lengths[MAX_TEXTS] = {0}; /* 0: up to its end */
    if (!*all[0] || count >= MAX_TEXTS)
        return below->clCreateProgramWithSource(context, count, texts, lengths, error);
    for (cl_uint i = 0; i < count; i++) {
        all[i + 1] = texts[i];
        all_lengths[i + 1] = lengths ? lengths[i] : 0;
    }
    return below->clCreateProgramWithSource(context, count + 1, all, all_lengths, error);
}

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                                void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    char all[8192];
    if (odd[ODD_SILENT].is_on)
        return CL_BUILD_PROGRAM_FAILURE;
    if (!odd[ODD_INEXACT].is_on)
        return below->clBuildProgram(program, count, devices, options, notify, user);
    if (options && strstr(options, "-cl-fp32-correctly-rounded-divide-sqrt"))
        return odd_refuse(CL_INVALID_BUILD_OPTIONS, "correctly rounded division");
    /* PoCL's cache tells programs apart by their options. */
    snprintf(all, sizeof all, "%s -cl-denorms-are-zero -DODD_INEXACT", options ? options : "");
    return below->clBuildProgram(program, count, devices, all, notify, user);
}

/* The actual log after many warnings, some of which look like errors. */
static cl_int warn(cl_program program, cl_device_id device, size_t size, void *to, size_t *size_ret)
{
    static const char warning[] = "common/koine.clh:1:1: warning: unused variable 'error'\n";
    size_t real = 0;
    below->clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &real);
    const size_t each = sizeof warning - 1;
    char *log = calloc(1, WARNINGS * each + real + 1);
    if (!log)
        return CL_OUT_OF_HOST_MEMORY;
    for (int i = 0; i < WARNINGS; i++)
        memcpy(log + (size_t)i * each, warning, each);
    below->clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, real, log + WARNINGS * each, NULL);
    cl_int error = answer_text(log, size, to, size_ret);
    free(log);
    return error;
}

static cl_int CL_API_CALL get_build_info(cl_program program, cl_device_id device, cl_program_build_info what,
                                         size_t size, void *to, size_t *size_ret)
{
    if (what == CL_PROGRAM_BUILD_LOG && odd[ODD_SILENT].is_on)
        return answer_text("", size, to, size_ret);
    if (what == CL_PROGRAM_BUILD_LOG && odd[ODD_WARNINGS].is_on)
        return warn(program, device, size, to, size_ret);
    return below->clGetProgramBuildInfo(program, device, what, size, to, size_ret);
}

static cl_int CL_API_CALL get_program_info(cl_program program, cl_program_info what, size_t size, void *to,
                                           size_t *size_ret)
{
    const size_t none = 0;
    if (what == CL_PROGRAM_BINARY_SIZES && odd[ODD_NO_BINARY].is_on)
        return answer(&none, sizeof none, size, to, size_ret);
    return below->clGetProgramInfo(program, what, size, to, size_ret);
}

void odd_install_programs(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    if (odd[ODD_INEXACT].is_on && !(preloaded && strstr(preloaded, "inexact_kernels"))) {
        fprintf(stderr, "odd_driver: `inexact` needs LD_PRELOAD=libinexact_kernels.so\n");
        abort();
    }
    ours.clCreateProgramWithSource = create_program;
    ours.clBuildProgram = build;
    ours.clGetProgramBuildInfo = get_build_info;
    ours.clGetProgramInfo = get_program_info;
}
