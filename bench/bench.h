/* bench.h - a benchmark: what it sets up, what one repetition does, how much work that is. */
#ifndef KOINE_BENCH_H
#define KOINE_BENCH_H

#include <koine/koine.h>

typedef struct bench_case bench_case;

/* What a set-up benchmark holds; freed by its `teardown`. */
typedef struct bench_state {
    kn_device *device;
    void *data;
} bench_state;

struct bench_case {
    const char *name;  /* "gemm/1024" */
    const char *shape; /* "1024x1024x1024" */
    kn_dtype dtype;
    double flops, bytes; /* of one repetition; 0: not counted */
    kn_status (*setup)(const bench_case *self, bench_state *state);
    kn_status (*run)(const bench_case *self,
                     bench_state *state); /* one repetition; the harness waits for the device after it */
    void (*teardown)(bench_state *state);
    int64_t size[4]; /* the case's own numbers */
};

typedef struct bench_list {
    const bench_case *cases;
    int count;
} bench_list;

/* The families, in the order in which they run. */
extern const bench_list bench_seeds, bench_gemm, bench_conv;

/* Limits of the device, measured: fused multiply-adds a second as flops, bytes a second of a plain copy (read and
 * written). */
kn_status bench_peak_flops(kn_device *device, kn_dtype dtype, double *flops_per_second);
kn_status bench_peak_bytes(kn_device *device, double *bytes_per_second);

double bench_now(void); /* seconds */

#endif
