/* nn/rnn.h - what recurrent layers and cells share. */
#pragma once

#include <koine/rnn.h>

#include "nn/module.h"

enum { KN_WEIGHT_IH, KN_WEIGHT_HH, KN_BIAS_IH, KN_BIAS_HH, KN_WEIGHT_HR, KN_RNN_PARAMETERS };

/* Registers the parameters of one layer in one direction, named with `suffix` ("_l0_reverse"), and stores them,
 * borrowed, in `to`; those that it does not have are NULL. */
typedef struct kn_rnn_dimensions {
    int64_t input, hidden, proj; /* proj 0: no projection */
    int gates;
    bool bias;
} kn_rnn_dimensions;
kn_status kn_rnn_register(kn_module *module, kn_tensor *to[KN_RNN_PARAMETERS], kn_rnn_dimensions size,
                          const char *suffix);

/* input_size and hidden_size are at least 1. */
kn_status kn_rnn_check_nonlinearity(const char *name, kn_rnn_nonlinearity nonlinearity);
kn_status kn_rnn_check_sizes(const char *name, int64_t input_size, int64_t hidden_size);
