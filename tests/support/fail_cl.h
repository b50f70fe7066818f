/* support/fail_cl.h - makes any OpenCL call fail, by name and number: an OpenCL layer (OPENCL_LAYERS=FAIL_LAYER)
 * between a program and the driver, including CLBlast's calls. A failing call that creates or queries does not reach
 * the driver; one that releases does, to avoid leaks.
 *
 * A program under test is controlled by FAIL_CL=NAME:N:ERROR[:on] (`on`: that call and all later ones of the name), and
 * writes its call counts to the file FAIL_CL_COUNTS at exit. A test with the layer in its own process uses the
 * functions below, found with fail_cl_open. */
#pragma once

#include <stdbool.h>

#define FAIL_CL_NAMES 128

typedef struct fail_cl {
    /* The n-th call of that name from now fails with `error`; 0: none. Resets the counts. */
    void (*plan)(int name, long nth, int error);
    bool (*has_failed)(void); /* since `plan` */
    long (*count)(int name);
    const char *(*name)(int name); /* NULL past the last */
} fail_cl;

/* The layer's functions; false if the process runs without it. */
bool fail_cl_open(fail_cl *layer, const char *path);

/* The next number to try after n of `count`: all, or the first ones, some in between and the last. */
static inline long fail_cl_next(long n, long count, bool all)
{
    long step = all || n < 3 ? 1 : (count + 5) / 6;
    return n < count && n + step > count ? count : n + step;
}
