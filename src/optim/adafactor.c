/* optim/adafactor.c - Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (2018), as
 * torch.optim.Adafactor: the second moment of a matrix is the outer product of those of its rows and columns. */
#include <float.h>
#include <math.h>
#include <string.h>

#include <koine/pointwise.h>
#include <koine/reduce.h>

#include "base/error.h"
#include "ops/pointwise/elementwise.h"
#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, BETA2_DECAY, EPS1, EPS2, D, WEIGHT_DECAY, MAXIMIZE };
enum { ROW_VAR, COL_VAR, VARIANCE };

static const kn_optim_hyper hyper_rows[] = {
    KN_HYPER(kn_adafactor_params, lr),
    KN_HYPER(kn_adafactor_params, beta2_decay, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_adafactor_params, eps1, .kind = KN_HYPER_OPTION, .list = "eps"),
    KN_HYPER(kn_adafactor_params, eps2, .list = "eps"),
    KN_HYPER(kn_adafactor_params, d, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_adafactor_params, weight_decay),
    KN_HYPER(kn_adafactor_params, maximize, .kind = KN_HYPER_FLAG),
    {0},
};

static kn_status check(const double *hyper)
{
    if (!(hyper[BETA2_DECAY] <= 0))
        return kn_fail(KN_ERR_ARGUMENT, "Adafactor: beta2_decay (%g) must be 0 or less", hyper[BETA2_DECAY]);
    if (!(hyper[D] >= 1))
        return kn_fail(KN_ERR_ARGUMENT, "Adafactor: d (%g) must be 1 or more", hyper[D]);
    return KN_OK;
}

/* Matrices, and stacks of them, have factors; other parameters the whole variance. `apart` becomes 1. */
static int factor_shape(const kn_tensor *p, int apart, int64_t shape[KN_MAX_DIMS])
{
    if (p->ndim < 2)
        return -1;
    memcpy(shape, p->shape, (size_t)p->ndim * sizeof *shape);
    shape[p->ndim - apart] = 1;
    return p->ndim;
}
static int row_shape(const kn_tensor *p, int64_t shape[KN_MAX_DIMS]) { return factor_shape(p, 1, shape); }
static int col_shape(const kn_tensor *p, int64_t shape[KN_MAX_DIMS]) { return factor_shape(p, 2, shape); }
static int whole_shape(const kn_tensor *p, int64_t shape[KN_MAX_DIMS])
{
    if (p->ndim >= 2)
        return -1;
    memcpy(shape, p->shape, (size_t)p->ndim * sizeof *shape);
    return p->ndim;
}
static const kn_optim_state states[] = {
    [ROW_VAR] = KN_STATE("row_var", .shape = row_shape),
    [COL_VAR] = KN_STATE("col_var", .shape = col_shape),
    [VARIANCE] = KN_STATE("variance", .shape = whole_shape),
    {0},
};

enum { REST, RHO, KEPT }; /* 1 - beta2, the relative step size, 1 - lr weight_decay */

static int scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const double step = (double)course->step;
    out[REST] = pow(step, hyper[BETA2_DECAY]);
    out[RHO] = fmin(hyper[LR], 1 / sqrt(step));
    out[KEPT] = 1 - hyper[LR] * hyper[WEIGHT_DECAY];
    return 3;
}

/* --- one parameter ------------------------------------------------------------------------------------------------ */

#define AT_LEAST "static T at_least(const T x, const T least) { return x < least ? least : x; }"

static kn_pointwise_code follow = {.name = "adafactor_follow", .inputs = "abc", .values = {"a + c * (b - a)"}},
                         follow_square = {
                             .name = "adafactor_square", .inputs = "abc", .values = {"a + c * (b * b - a)"}};
/* a: the gradient, b and c: the factors, r: the mean of b; p: eps1 */
static kn_pointwise_code factored = {.name = "adafactor_factored",
                                     .functions = AT_LEAST,
                                     .inputs = "abcr",
                                     .numbers = "p",
                                     .values = {"a / sqrt(at_least(b * c / at_least(r, p), p * p))"}},
                         unfactored = {.name = "adafactor_whole",
                                       .functions = AT_LEAST,
                                       .inputs = "ab",
                                       .numbers = "p",
                                       .values = {"a / sqrt(at_least(b, p * p))"}};
/* a: the parameter, b: its update; c, d: their norms; r: rho, s: 1 - lr weight_decay; p: eps2, q: 1 / sqrt(elements),
 * v: d. MAXIMIZE makes w -1. */
static kn_pointwise_code move = {.name = "adafactor_move",
                                 .inputs = "abcdrs",
                                 .numbers = "pqvw",
                                 .values = {"s * a - w * fmax(p, c * q) * r / fmax((T)1, d * q / v) * b"}};

static double machine_epsilon(kn_dtype dtype)
{
    return dtype == KN_F64 ? DBL_EPSILON : dtype == KN_F16 ? 0x1p-10 : dtype == KN_BF16 ? 0x1p-7 : (double)FLT_EPSILON;
}

static kn_status run(const kn_optim_composed *it, kn_pointwise_code *code, kn_tensor *output,
                     const kn_tensor *const *inputs, int count, const kn_scalar *numbers)
{
    for (int i = 0; i < count; i++)
        if (!inputs[i])
            return kn_error_status();
    return kn_elements(it->stream, code, "Adafactor", kn_compute_type(it->dtype), output, inputs, count, numbers);
}

/* Moves the factors towards the means of the gradient's squares, and divides the gradient by their product's root. */
static kn_status update_of_matrix(const kn_optim_composed *it, const kn_scalar *eps1, kn_tensor *update)
{
    const int row = it->parameter->ndim - 1, col = row - 1;
    kn_tensor *squares = kn_square(it->gradient), *rest = kn_optim_composed_scalar(it, REST);
    kn_tensor *rows = it->states[ROW_VAR], *cols = it->states[COL_VAR];
    const kn_tensor *row_means[] = {rows, kn_mean_dims(squares, &row, 1, true), rest};
    const kn_tensor *col_means[] = {cols, kn_mean_dims(squares, &col, 1, true), rest};
    KN_TRY(run(it, &follow, rows, row_means, 3, NULL));
    KN_TRY(run(it, &follow, cols, col_means, 3, NULL));
    const kn_tensor *inputs[] = {it->gradient, rows, cols, kn_mean_dims(rows, &col, 1, true)};
    return run(it, &factored, update, inputs, 4, eps1);
}

static kn_status update_of_vector(const kn_optim_composed *it, const kn_scalar *eps1, kn_tensor *update)
{
    kn_tensor *variance = it->states[VARIANCE];
    const kn_tensor *means[] = {variance, it->gradient, kn_optim_composed_scalar(it, REST)};
    KN_TRY(run(it, &follow_square, variance, means, 3, NULL));
    return run(it, &unfactored, update, (const kn_tensor *[]){it->gradient, variance}, 2, eps1);
}

static kn_status compose(const kn_optim_composed *it)
{
    const double *hyper = it->hyper;
    kn_tensor *p = it->parameter, *update = NULL, *norm = kn_norm(p, 2);
    const kn_scalar eps1 = kn_scalar_real(hyper[EPS1] < 0 ? machine_epsilon(it->dtype) : hyper[EPS1]);
    KN_TRY(kn_tensor_new(&update, p->dtype, p->ndim, p->shape, p->storage->device));
    if (!kn_scope_adopt(update))
        return kn_error_status();
    KN_TRY(p->ndim >= 2 ? update_of_matrix(it, &eps1, update) : update_of_vector(it, &eps1, update));
    const kn_tensor *inputs[] = {
        p, update, norm, kn_norm(update, 2), kn_optim_composed_scalar(it, RHO), kn_optim_composed_scalar(it, KEPT)};
    const kn_scalar numbers[] = {kn_scalar_real(hyper[EPS2]), kn_scalar_real(1 / sqrt((double)kn_numel(p))),
                                 kn_scalar_real(hyper[D]), kn_scalar_real(hyper[MAXIMIZE] != 0 ? -1 : 1)};
    return run(it, &move, p, inputs, 6, numbers);
}

const kn_optim_algorithm kn_optim_row_adafactor = {
    KN_OPTIM_PARAMS(kn_adafactor_params, KN_ADAFACTOR_DEFAULTS),
    .name = "Adafactor",
    .step = "Optimizer.step#Adafactor.step",
    .hyper = hyper_rows,
    .states = states,
    .flops = 16,
    .counts_steps = true,
    .compose = compose,
    .check = check,
    .scalars = scalars,
};

kn_adafactor_params kn_adafactor_params_init(void) { return (kn_adafactor_params){KN_ADAFACTOR_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(adafactor)
