/* defaults_tensors.c - creation, random numbers, copies, steps on lists. */
#include "defaults.h"
/* --- tensors --- */

static const int64_t shape23[] = {2, 3};
static const float six[] = {1, 2, 3, 4, 5, 6};
CALLS(kn_empty, kn_tensor_options, show_kind, kn_empty_with(2, shape23, params), kn_empty(KN_SHAPE(2, 3)))
CALLS(kn_zeros, kn_tensor_options, show_tensor, kn_zeros_with(2, shape23, params), kn_zeros(KN_SHAPE(2, 3)))
CALLS(kn_ones, kn_tensor_options, show_tensor, kn_ones_with(2, shape23, params), kn_ones(KN_SHAPE(2, 3)))
CALLS(kn_full, kn_tensor_options, show_tensor, kn_full_with(2, shape23, kn_scalar_int(7), params),
      kn_full(KN_SHAPE(2, 3), 7))
CALLS(kn_from_data, kn_tensor_options, show_tensor, kn_from_data_with(six, 2, shape23, params),
      kn_from_data(six, KN_SHAPE(2, 3)))
CALLS(kn_arange, kn_tensor_options, show_tensor, kn_arange_with(0, 5, 1, params), kn_arange(0, 5, 1))
CALLS(kn_rand, kn_tensor_options, show_tensor, kn_rand_with(2, shape23, params), kn_rand(KN_SHAPE(2, 3)))
CALLS(kn_randn, kn_tensor_options, show_tensor, kn_randn_with(2, shape23, params), kn_randn(KN_SHAPE(2, 3)))
CALLS(kn_uniform_, kn_random_params, show_tensor, kn_uniform_with_(matrix(), 0, 1, params), kn_uniform_(matrix(), 0, 1))
CALLS(kn_normal_, kn_random_params, show_tensor, kn_normal_with_(matrix(), 0, 1, params), kn_normal_(matrix(), 0, 1))
CALLS(kn_bernoulli_, kn_random_params, show_tensor, kn_bernoulli_with_(matrix(), 0.5, params),
      kn_bernoulli_(matrix(), 0.5))
CALLS(kn_rand_like, kn_random_params, show_tensor, kn_rand_like_with(matrix(), params), kn_rand_like(matrix()))
CALLS(kn_randn_like, kn_random_params, show_tensor, kn_randn_like_with(matrix(), params), kn_randn_like(matrix()))
CALLS(kn_init_uniform_, kn_random_params, show_tensor, kn_init_uniform_with_(matrix(), 0, 1, params),
      kn_init_uniform_(matrix(), 0, 1))
CALLS(kn_init_normal_, kn_random_params, show_tensor, kn_init_normal_with_(matrix(), 0, 1, params),
      kn_init_normal_(matrix(), 0, 1))
CALLS(kn_init_kaiming_uniform_, kn_init_kaiming_params, show_tensor, kn_init_kaiming_uniform_with_(matrix(), 0, params),
      kn_init_kaiming_uniform_(matrix(), 0))
CALLS(kn_init_xavier_uniform_, kn_random_params, show_tensor, kn_init_xavier_uniform_with_(matrix(), 1, params),
      kn_init_xavier_uniform_(matrix(), 1))
CALLS(kn_randint, kn_tensor_options, show_tensor, kn_randint_with(0, 9, 2, shape23, params),
      kn_randint(0, 9, KN_SHAPE(2, 3)))
CALLS(kn_randperm, kn_tensor_options, show_tensor, kn_randperm_with(11, params), kn_randperm(11))
CALLS(kn_to, kn_to_params, show_tensor, kn_to_with(matrix(), params), kn_to_device(matrix(), NULL))

static char *copied(kn_status (*copy)(kn_tensor *destination, kn_tensor *source, const kn_copy_params *params),
                    const kn_copy_params *params)
{
    kn_tensor *destination = kn_zeros(KN_SHAPE(4, 3));
    return copy(destination, matrix(), params) == KN_OK ? show_tensor(destination) : show_error();
}
static kn_status copy_with(kn_tensor *destination, kn_tensor *source, const kn_copy_params *params)
{
    return kn_copy_with(destination, source, params);
}
static kn_status copy_by_macro(kn_tensor *destination, kn_tensor *source, const kn_copy_params *params)
{
    (void)params;
    return kn_copy(destination, source);
}
CALLS(kn_copy, kn_copy_params, , copied(copy_with, params), copied(copy_by_macro, NULL))

/* --- steps on lists --- */

static char *adam_stepped(const kn_fused_adam_params *params, bool by_macro)
{
    kn_tensor *p = matrix(), *g = matrix(), *m = kn_zeros(KN_SHAPE(4, 3)), *v = kn_zeros(KN_SHAPE(4, 3));
    kn_tensor *step = kn_ones(KN_SCALAR);
    kn_status status = by_macro ? kn_fused_adam(&p, &g, &m, &v, NULL, &step, 1)
                                : kn_fused_adam_with(&p, &g, &m, &v, NULL, &step, 1, params);
    return status == KN_OK ? show_tensor(p) : show_error();
}
CALLS(kn_fused_adam, kn_fused_adam_params, , adam_stepped(params, false), adam_stepped(NULL, true))

static char *sgd_stepped(const kn_fused_sgd_params *params, bool by_macro)
{
    kn_tensor *p = matrix(), *g = matrix();
    kn_status status = by_macro ? kn_fused_sgd(&p, &g, NULL, 1) : kn_fused_sgd_with(&p, &g, NULL, 1, params);
    return status == KN_OK ? show_tensor(p) : show_error();
}
CALLS(kn_fused_sgd, kn_fused_sgd_params, , sgd_stepped(params, false), sgd_stepped(NULL, true))

static char *printed(kn_status status) { return status == KN_OK ? show_text(kn_to_string(image())) : show_error(); }
CALLS(kn_set_print_options, kn_print_options, printed, kn_set_print_options_with(params), kn_set_print_options())

/* clang-format off */
DEFAULTS(tensors_defaults,
         ROW(kn_empty),
         ROW(kn_zeros),
         ROW(kn_ones),
         ROW(kn_full),
         ROW(kn_from_data),
         ROW(kn_arange),
         ROW(kn_rand),
         ROW(kn_randn),
         ROW(kn_randint),
         ROW(kn_uniform_),
         ROW(kn_normal_),
         ROW(kn_bernoulli_),
         ROW(kn_rand_like),
         ROW(kn_randn_like),
         ROW(kn_init_uniform_),
         ROW(kn_init_normal_),
         ROW(kn_init_kaiming_uniform_),
         ROW(kn_init_xavier_uniform_),
         ROW(kn_randperm),
         ROW(kn_to),
         ROW(kn_copy),
         ROW(kn_fused_adam),
         ROW(kn_fused_sgd),
         ROW(kn_set_print_options))
/* clang-format on */
