/* defaults_in_place.c - operators that change their first tensor. */
#include "defaults.h"

static kn_tensor *square(void) { return ramp(KN_SHAPE(2, 2)); }
static kn_tensor *vector(void) { return ramp(KN_SHAPE(2)); }
static kn_tensor *cube(void) { return ramp(KN_SHAPE(2, 2, 2)); }
static kn_tensor *rows_of(void) { return kn_from_data(((int64_t[]){1, 0}), KN_SHAPE(2), .dtype = KN_I64); }
static kn_tensor *places(void) { return kn_zeros(KN_SHAPE(2, 2), .dtype = KN_I64); }

CALLS(kn_clamp_, kn_clamp_params, show_tensor, kn_clamp_with_(matrix(), params), kn_clamp_(matrix()))
CALLS(kn_celu_, kn_celu_params, show_tensor, kn_celu_with_(matrix(), params), kn_celu_(matrix()))
CALLS(kn_elu_, kn_elu_params, show_tensor, kn_elu_with_(matrix(), params), kn_elu_(matrix()))
CALLS(kn_leaky_relu_, kn_leaky_relu_params, show_tensor, kn_leaky_relu_with_(matrix(), params),
      kn_leaky_relu_(matrix()))
CALLS(kn_logit_, kn_logit_params, show_tensor, kn_logit_with_(matrix(), params), kn_logit_(matrix()))
CALLS(kn_nan_to_num_, kn_nan_to_num_params, show_tensor, kn_nan_to_num_with_(matrix(), params),
      kn_nan_to_num_(matrix()))
CALLS(kn_round_, kn_round_params, show_tensor, kn_round_with_(matrix(), params), kn_round_(matrix()))
CALLS(kn_rrelu_, kn_rrelu_params, show_tensor, kn_rrelu_with_(matrix(), params), kn_rrelu_(matrix()))
CALLS(kn_addcmul_, kn_addcmul_params, show_tensor, kn_addcmul_with_(matrix(), matrix(), matrix(), params),
      kn_addcmul_(matrix(), matrix(), matrix()))
CALLS(kn_addcdiv_, kn_addcmul_params, show_tensor, kn_addcdiv_with_(matrix(), matrix(), matrix(), params),
      kn_addcdiv_(matrix(), matrix(), matrix()))
CALLS(kn_addmm_, kn_addmm_params, show_tensor, kn_addmm_with_(square(), square(), square(), params),
      kn_addmm_(square(), square(), square()))
CALLS(kn_addmv_, kn_addmm_params, show_tensor, kn_addmv_with_(vector(), square(), vector(), params),
      kn_addmv_(vector(), square(), vector()))
CALLS(kn_addr_, kn_addmm_params, show_tensor, kn_addr_with_(square(), vector(), vector(), params),
      kn_addr_(square(), vector(), vector()))
CALLS(kn_baddbmm_, kn_addmm_params, show_tensor, kn_baddbmm_with_(cube(), cube(), cube(), params),
      kn_baddbmm_(cube(), cube(), cube()))
CALLS(kn_addbmm_, kn_addmm_params, show_tensor, kn_addbmm_with_(square(), cube(), cube(), params),
      kn_addbmm_(square(), cube(), cube()))
CALLS(kn_scatter_reduce_, kn_scatter_reduce_params, show_tensor,
      kn_scatter_reduce_with_(matrix(), 0, places(), square(), KN_SCATTER_AMAX, params),
      kn_scatter_reduce_(matrix(), 0, places(), square(), KN_SCATTER_AMAX))
CALLS(kn_index_reduce_, kn_scatter_reduce_params, show_tensor,
      kn_index_reduce_with_(square(), 0, rows_of(), square(), KN_SCATTER_AMAX, params),
      kn_index_reduce_(square(), 0, rows_of(), square(), KN_SCATTER_AMAX))

/* clang-format off */
DEFAULTS(in_place_defaults,
         ROW(kn_clamp_),
         ROW(kn_celu_),
         ROW(kn_elu_),
         ROW(kn_leaky_relu_),
         ROW(kn_logit_),
         ROW(kn_nan_to_num_),
         ROW(kn_round_),
         ROW(kn_rrelu_),
         ROW(kn_addcmul_),
         ROW(kn_addcdiv_),
         ROW(kn_addmm_),
         ROW(kn_addmv_),
         ROW(kn_addr_),
         ROW(kn_baddbmm_),
         ROW(kn_addbmm_),
         ROW(kn_scatter_reduce_),
         ROW(kn_index_reduce_))
/* clang-format on */
