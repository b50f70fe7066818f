/* support/fail_cl.h - every OpenCL call can fail, by its name and number: an OpenCL layer (OPENCL_LAYERS=FAIL_LAYER)
 * that stands between a program and the driver, CLBlast's calls included. A call that creates or asks does not reach
 * the driver then; one that releases does, for it to be no leak.
 *
 * A program under test is told by FAIL_CL=NAME:N:ERROR[:on] (`on`: that call and every later one of the name), and
 * writes how often it called what to the file FAIL_CL_COUNTS when it ends. A test that has the layer in its own process
 * uses the functions below, found with fail_cl_open. */
#ifndef SUPPORT_FAIL_CL_H
#define SUPPORT_FAIL_CL_H

#include <stdbool.h>

#define FAIL_CL_NAMES 128

typedef struct fail_cl {
    /* The n-th call from now of that name fails with `error`; 0: none does. Sets the counts to 0. */
    void (*plan)(int name, long nth, int error);
    bool (*has_failed)(void); /* since `plan` */
    long (*count)(int name);
    const char *(*name)(int name); /* NULL beyond the last */
} fail_cl;

/* The layer's functions; false where the process runs without it. */
bool fail_cl_open(fail_cl *layer, const char *path);

/* The number to try after n of `count`: all of them, or the first ones, some between and the last. */
static inline long fail_cl_next(long n, long count, bool all)
{
    long step = all || n < 3 ? 1 : (count + 5) / 6;
    return n < count && n + step > count ? count : n + step;
}

#endif
