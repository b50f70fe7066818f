/* ops/user/jit_parse.h - the signature of a user's function (include/koine/jit.h). */
#pragma once

#include <koine/jit.h>

#include "base/error.h"

#define KN_JIT_MAX_PARAMETERS 512
#define KN_JIT_NAME 64

typedef enum kn_jit_kind { KN_JIT_VALUE, KN_JIT_POINTER, KN_JIT_NUMBER } kn_jit_kind;

typedef struct kn_jit_parameter {
    kn_jit_kind kind;
    int index;    /* among those of its kind; for a number the index in `scalars` */
    char type[8]; /* "T", or the declared type of a number */
} kn_jit_parameter;

typedef struct kn_jit_signature {
    char name[KN_JIT_NAME];
    bool returns_value; /* else void */
    bool suits_vectors; /* the code has the same meaning if T is a vector */
    int num_parameters, num_values, num_pointers;
    kn_jit_parameter parameters[KN_JIT_MAX_PARAMETERS];
} kn_jit_signature;

/* Reads the last function of `code`. Parameters named in `scalars` (terminated by a NULL name, or num_scalars long) are
 * numbers. `template <typename T>` is overwritten with blanks. */
kn_status kn_jit_parse(kn_jit_signature *signature, char *code, const kn_jit_scalar *scalars, int num_scalars);

/* jit_vectors.c: does the code have the same meaning, element by element, if T is a vector of floats or doubles,
 * provided that it compiles? Returns false if in doubt. */
bool kn_jit_suits_vectors(char *code);
