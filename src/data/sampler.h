/* data/sampler.h - internals of samplers. */
#pragma once

#include <koine/sampler.h>

struct kn_sampler {
    kn_sampler_functions functions;
    void *self;
    int64_t length;
    bool is_part;          /* of one program of several: not to be divided again */
    char description[128]; /* its kind and parameters, for comparing those of a resumed run */
};

/* Like kn_sampler_new, with a status; `self`, from kn_malloc, is destroyed on failure too. */
kn_status kn_sampler_make(kn_sampler **sampler, const kn_sampler_functions *functions, void *self,
                          const char *description, ...) KN_PRINTF(4, 5);

/* The samplers of a loader that was given none. */
kn_status kn_sampler_make_default(kn_sampler **sampler, int64_t length, bool shuffle);

/* The dataset's length; -1 with an error that names the function. */
int64_t kn_sampler_length_of(kn_dataset *dataset, const char *function);
