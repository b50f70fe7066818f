/* data/dataset.h - internals of datasets. */
#pragma once

#include <koine/data.h>
#include <stdatomic.h>

struct kn_dataset {
    atomic_int references;
    kn_dataset_functions functions;
    void *self;
    kn_field *fields; /* with copied names, none NULL */
    const char **names;
    int num_fields;
    bool has_lengths;  /* a field is the length of another */
    int input, target; /* the indices of the fields with these names, or -1 */
    /* If set, used instead of functions.get: `random` is the sample's random number (see kn_transform). */
    kn_status (*get_random)(void *self, int64_t index, uint64_t random, void *const *fields);
    const char *const *classes; /* kn_dataset_classes: part of self, or of a dataset that self owns */
};

/* Like kn_dataset_new, with a status; `self` is destroyed on failure too. */
kn_status kn_dataset_make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self,
                          const kn_field *fields, int num_fields);

/* One more reference, for a dataset made of this one; kn_dataset_free gives it up. */
kn_dataset *kn_dataset_retain(kn_dataset *dataset);

/* kn_dataset_get with the sample's random number. */
kn_status kn_dataset_get_random(kn_dataset *dataset, int64_t index, uint64_t random, void *const *fields);

/* "it has "input", "target"": for messages about a missing field. */
const char *kn_describe_names(char *text, size_t size, const char *const *names, int count);

/* Elements and bytes of the field per sample (the largest, if it varies), and of one row of dimension 0 if it varies,
 * else of a sample. The field was checked when its dataset was created. */
int64_t kn_field_numel(const kn_field *field);
size_t kn_field_bytes(const kn_field *field);
size_t kn_field_row_bytes(const kn_field *field);
