/* ops/dispatch/params_text.h - an operator's parameters as text: "dim=1 keepdim=true", "output_size=2,2". */
#pragma once

#include "autograd/op.h"
#include "base/text.h"

/* The value of one parameter, at its address: "0.5", "true", "mean", "[2, 2]". `python`: as Python prints it: "True",
 * "(2, 2)". */
void kn_param_append(kn_text *out, const kn_op_param *param, const void *at, bool python);

/* Sets the parameters named in `words`, blank-separated NAME=VALUE, in a struct that kn_op_params_init has filled.
 * Values are numbers (also "inf" and "nan"), lists of numbers with commas, true, false, 1 or 0, and the names of dtypes
 * and enum values. KN_ERR_ARGUMENT for a name that the operator lacks or a value of another kind. */
kn_status kn_op_params_read(const kn_op *op, void *params, const char *words);

/* The parameter called by the first `length` bytes of `name`; NULL, without an error, if there is none. */
const kn_op_param *kn_op_find_param(const kn_op *op, const char *name, size_t length);
