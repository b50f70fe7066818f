/* ops/reduce/gradient.c - the derivative of sampled values, by finite differences: a composition. */
#include <koine/join.h>
#include <koine/operators.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/dispatch/invoke.h"

enum { X, PLACES };

/* The samples along a dimension, with the places between them. */
typedef struct samples {
    kn_tensor *x;
    int dim;
    int64_t n;
    double spacing;
    kn_tensor *apart; /* [n - 1]: the distances of neighbours; NULL: `spacing` */
} samples;

static kn_tensor *part(const samples *s, int64_t start, int64_t length)
{
    return kn_narrow(s->x, s->dim, start, length);
}

/* Factors [length], as they multiply a part of x. */
static kn_tensor *along(const samples *s, kn_tensor *factors)
{
    int64_t shape[KN_MAX_DIMS];
    for (int d = 0; d < s->x->ndim; d++)
        shape[d] = d == s->dim ? -1 : 1;
    return kn_reshape(factors, s->x->ndim, shape);
}

/* The distances before and after the points from `start` on that have both neighbours. */
static kn_tensor *before(const samples *s, int64_t start, int64_t length)
{
    return along(s, kn_narrow(s->apart, 0, start, length));
}

/* In second order: the slope at a point of the parabola through three points h and k apart. `at` 0: at the first of
 * them, 1: in the middle, 2: at the last. */
static kn_tensor *parabola(const samples *s, int64_t start, int64_t length, int at)
{
    kn_tensor *f[] = {part(s, start, length), part(s, start + 1, length), part(s, start + 2, length)};
    if (!s->apart) {
        static const double factors[3][3] = {{-1.5, 2, -0.5}, {-0.5, 0, 0.5}, {0.5, -2, 1.5}};
        kn_tensor *sum = kn_add(kn_mul_scalar(f[0], factors[at][0]), kn_mul_scalar(f[2], factors[at][2]));
        if (at != 1)
            sum = kn_add(sum, kn_mul_scalar(f[1], factors[at][1]));
        return kn_div_scalar(sum, s->spacing);
    }
    kn_tensor *h = before(s, start, length), *k = before(s, start + 1, length), *both = kn_add(h, k);
    kn_tensor *first = kn_div(kn_sub(f[1], f[0]), h), *second = kn_div(kn_sub(f[2], f[1]), k);
    if (at == 1)
        return kn_div(kn_add(kn_mul(first, k), kn_mul(second, h)), both);
    kn_tensor *bend = kn_div(kn_sub(second, first), both); /* Newton's divided differences */
    return at == 0 ? kn_sub(first, kn_mul(bend, h)) : kn_add(second, kn_mul(bend, k));
}

static kn_tensor *line(const samples *s, int64_t start)
{
    kn_tensor *rise = kn_sub(part(s, start + 1, 1), part(s, start, 1));
    return s->apart ? kn_div(rise, before(s, start, 1)) : kn_div_scalar(rise, s->spacing);
}

static kn_status check(const kn_entry *entry, const samples *s, int edge_order)
{
    const kn_tensor *x = s->x, *places = entry->inputs[PLACES];
    char text[KN_DESCRIBE];
    if (s->n < edge_order + 1)
        return kn_fail(KN_ERR_SHAPE, "dimension %d of x, %s, must have at least %d elements for an edge_order of %d",
                       s->dim, kn_tensor_describe(text, sizeof text, x), edge_order + 1, edge_order);
    if (places && (places->ndim != 1 || places->shape[0] != s->n))
        return kn_fail(KN_ERR_SHAPE, "places must have one element for each of the %lld of dimension %d, not be %s",
                       (long long)s->n, s->dim, kn_tensor_describe(text, sizeof text, places));
    return KN_OK;
}

static kn_status gradient_enter(kn_entry *entry)
{
    const kn_gradient_args *args = entry->params;
    samples s = {.x = entry->inputs[X], .spacing = args->spacing};
    kn_tensor *parts[3];
    int count = 0;

    KN_TRY(kn_dim_from_front(&s.dim, args->dim, s.x->ndim));
    if (s.x->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "x has no dimensions; it must have at least 1");
    s.n = s.x->shape[s.dim];
    KN_TRY(check(entry, &s, args->edge_order));
    if (entry->inputs[PLACES])
        s.apart = kn_diff(kn_to_dtype(entry->inputs[PLACES], s.x->dtype));
    parts[count++] = args->edge_order == 1 ? line(&s, 0) : parabola(&s, 0, 1, 0);
    if (s.n > 2)
        parts[count++] = parabola(&s, 0, s.n - 2, 1);
    parts[count++] = args->edge_order == 1 ? line(&s, s.n - 2) : parabola(&s, s.n - 3, 1, 2);
    return kn_status_of(entry->result = kn_cat(parts, count, s.dim));
}

static const kn_op_param rows[] = {KN_PARAM(kn_gradient_args, dim), KN_PARAM(kn_gradient_args, spacing),
                                   KN_PARAM(kn_gradient_args, edge_order, .min = 1, .max = 2)};
const kn_op kn_gradient_op = {.name = "gradient",
                              .inputs = {"x", "?places"},
                              .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_FLOATING},
                              .params = KN_PARAMS(kn_gradient_args, rows, .dim = -1, .spacing = 1, .edge_order = 1),
                              .composes = true,
                              .enter = gradient_enter};

kn_gradient_params kn_gradient_params_init(void) { return (kn_gradient_params){KN_GRADIENT_DEFAULTS}; }

kn_tensor *kn_gradient_with(kn_tensor *x, const kn_gradient_params *params)
{
    const kn_gradient_params p = params ? *params : kn_gradient_params_init();
    const kn_gradient_args args = {p.dim, p.spacing, p.edge_order};
    return kn_invoke(&kn_gradient_op, &args, x, p.places);
}
