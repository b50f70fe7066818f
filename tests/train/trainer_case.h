/* trainer_case.h - a small training problem for the trainer's tests: points in the plane, in two classes nearly
 * separated by a line. */
#pragma once

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

/* Everything except the trainer, from `seed`. */
trainer_case case_make(uint64_t seed, double lr);
void case_free(trainer_case *c);

/* An empty folder of this name in the build tree; the string is valid until the next call. */
const char *case_folder(const char *name);

/* The file's contents, or NULL. Freed with kn_free. */
char *case_file(const char *folder, const char *name, size_t *size);

/* Checks that this file has the same bytes in both folders / that both modules have the same parameters. */
void case_same_file(const char *one, const char *other, const char *name);
bool case_same_weights(kn_module *a, kn_module *b);

/* The parameters of a module as one block of bytes; freed with free(). */
void *case_weights(kn_module *module, size_t *size);
