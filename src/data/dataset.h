/* data/dataset.h - a dataset as the data layer itself sees it. */
#ifndef KN_DATA_DATASET_H
#define KN_DATA_DATASET_H

#include <koine/data.h>

struct kn_dataset {
    kn_dataset_functions functions;
    void *self;
    kn_sample_spec input, target;
    /* Used instead of functions.get where it is set: `random` is the sample's own random number (see kn_transform). */
    kn_status (*get_random)(void *self, int64_t index, uint64_t random, void *input, void *target);
};

/* As kn_dataset_new, with a status; `self` is destroyed on failure as well. */
kn_status kn_dataset_make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self,
                          const kn_sample_spec *input, const kn_sample_spec *target);

/* kn_dataset_get with the sample's random number. */
kn_status kn_dataset_get_random(kn_dataset *dataset, int64_t index, uint64_t random, void *input, void *target);

/* Elements and bytes of one sample. The spec was checked when its dataset was made. */
int64_t kn_sample_spec_numel(const kn_sample_spec *spec);
size_t kn_sample_spec_bytes(const kn_sample_spec *spec);

#endif
