/* data/dataset.h - a dataset as the data layer itself sees it. */
#ifndef KN_DATA_DATASET_H
#define KN_DATA_DATASET_H

#include <koine/data.h>

struct kn_dataset {
    kn_dataset_functions functions;
    void *self;
    kn_field *fields; /* with names of their own, none NULL */
    const char **names;
    int num_fields;
    int input, target; /* the numbers of the fields with these names; -1: there is none */
    /* Used instead of functions.get where it is set: `random` is the sample's own random number (see kn_transform). */
    kn_status (*get_random)(void *self, int64_t index, uint64_t random, void *const *fields);
};

/* As kn_dataset_new, with a status; `self` is destroyed on failure as well. */
kn_status kn_dataset_make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self,
                          const kn_field *fields, int num_fields);

/* kn_dataset_get with the sample's random number. */
kn_status kn_dataset_get_random(kn_dataset *dataset, int64_t index, uint64_t random, void *const *fields);

/* "it has "input", "target"": for messages about a field that is not there. */
const char *kn_describe_names(char *text, size_t size, const char *const *names, int count);

/* Elements and bytes of the field in one sample. The field was checked when its dataset was made. */
int64_t kn_field_numel(const kn_field *field);
size_t kn_field_bytes(const kn_field *field);

#endif
