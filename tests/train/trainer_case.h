/* trainer_case.h - a small training for the trainer's tests: points in the plane, in two classes that a line nearly
 * separates. */
#ifndef TRAINER_CASE_H
#define TRAINER_CASE_H

#include "support/check.h"

#define CASE_SAMPLES 96
#define CASE_BATCH 16
#define CASE_STEPS (CASE_SAMPLES / CASE_BATCH)

typedef struct trainer_case {
    kn_dataset *train_data, *test_data;
    kn_loader *train, *test;
    kn_module *net; /* with dropout: the generator's state matters */
    kn_optim *optim;
    kn_trainer *trainer;
} trainer_case;

/* Everything but the trainer, from `seed`. */
trainer_case case_make(uint64_t seed, double lr);
void case_free(trainer_case *c);

/* An empty folder of this name below the build tree; the string lives until the next call. */
const char *case_folder(const char *name);

/* What the file holds; NULL where there is none. Freed with kn_free. */
char *case_file(const char *folder, const char *name, size_t *size);

/* Both folders hold the same bytes in a file of this name / both modules the same parameters. */
void case_same_file(const char *one, const char *other, const char *name);
bool case_same_weights(kn_module *a, kn_module *b);

/* The parameters of a module as one block of bytes; freed with free(). */
void *case_weights(kn_module *module, size_t *size);

#endif
