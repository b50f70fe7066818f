/* profiler/training.h - steps of the examples' network, for tests of the profiler. */
#pragma once

#include <koine/koine.h>

typedef struct training {
    kn_module *net;
    kn_optim *optim;
    kn_tensor *x, *y;
} training;

void training_open(training *t, int64_t batch);
void training_close(training *t);
void training_step(training *t); /* forward, backward and update, in ranges of these names */

/* The row of this name; fails the test if there is none. */
const kn_profiler_row *find_row(const kn_profiler_row *rows, int count, const char *name, bool on_device);
bool has_row(const kn_profiler_row *rows, int count, const char *name);

/* The whole file, to be freed with free. */
char *read_text(const char *path);

/* The tear-down of a group of tests. */
int close_profiler(void **state);
