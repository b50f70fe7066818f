/* ops/vision/interpolate.c - torch.nn.functional.interpolate: its parameters, and the operator. resize.c does the
 * work. */
#include "ops/vision/interpolate.h"

#include <koine/pool.h>
#include <koine/vision.h>
#include <limits.h>
#include <math.h>

#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/vision/resize.h"
#include "vision/resize.h"

/* --- parameters --------------------------------------------------------------------------------------------------- */

static const char *const mode_names[] = {"nearest", "nearest-exact", "linear", "bilinear",
                                         "bicubic", "trilinear",     "area",   NULL};

/* How many dimensions a mode is for; 0: any. */
static int dims_of(kn_interpolate_mode mode)
{
    static const int dims[] = {[KN_INTERPOLATE_LINEAR] = 1,
                               [KN_INTERPOLATE_BILINEAR] = 2,
                               [KN_INTERPOLATE_BICUBIC] = 2,
                               [KN_INTERPOLATE_TRILINEAR] = 3,
                               [KN_INTERPOLATE_AREA] = 0};
    return dims[mode];
}

kn_status kn_interpolate_check(const kn_interpolate_params *p)
{
    const char *mode = mode_names[p->mode];
    const bool smooths = p->mode == KN_INTERPOLATE_BILINEAR || p->mode == KN_INTERPOLATE_BICUBIC;

    for (int i = 0; i < 4; i++) {
        const int64_t size = i < 3 ? p->sizes[i] : p->size;
        const double factor = i < 3 ? p->scale_factors[i] : p->scale_factor;
        if (size < 0)
            return kn_fail(KN_ERR_ARGUMENT, "size must be at least 1, not %lld", (long long)size);
        if (!(factor >= 0))
            return kn_fail(KN_ERR_ARGUMENT, "scale_factor must be greater than 0, not %g", factor);
    }
    if (p->align_corners && dims_of(p->mode) == 0)
        return kn_fail(KN_ERR_ARGUMENT, "align_corners is for linear, bilinear, bicubic and trilinear, not for mode %s",
                       mode);
    if (p->antialias && !smooths)
        return kn_fail(KN_ERR_ARGUMENT, "antialias is for bilinear and bicubic, not for mode %s", mode);
    return KN_OK;
}

static kn_status check(const kn_interpolate_params *p, int ndim)
{
    const int dims = dims_of(p->mode);

    if (ndim < 3 || ndim > 5)
        return kn_fail(KN_ERR_SHAPE, "expected 3, 4 or 5 dimensions, [N, C, ...], not %d", ndim);
    if (dims != 0 && ndim != dims + 2)
        return kn_fail(KN_ERR_SHAPE, "mode %s needs %d dimensions, not %d", mode_names[p->mode], dims + 2, ndim);
    return kn_interpolate_check(p);
}

/* How many of the lists are given: up to the last that is not 0. */
static int count_sizes(const kn_interpolate_params *p)
{
    return p->sizes[2] != 0 ? 3 : p->sizes[1] != 0 ? 2 : p->sizes[0] != 0 ? 1 : 0;
}

static int count_factors(const kn_interpolate_params *p)
{
    return p->scale_factors[2] != 0 ? 3 : p->scale_factors[1] != 0 ? 2 : p->scale_factors[0] != 0 ? 1 : 0;
}

static kn_status check_given(const kn_interpolate_params *p, int dims)
{
    const int sizes = count_sizes(p), factors = count_factors(p), most = sizes > factors ? sizes : factors;
    const bool any_size = p->size != 0 || sizes > 0, any_factor = p->scale_factor != 0 || factors > 0;
    if (any_size == any_factor)
        return kn_fail(KN_ERR_ARGUMENT, any_size ? "only one of size and scale_factor can be given"
                                                 : "either size or scale_factor must be given");
    if (most > 0 && most != dims)
        return kn_fail(KN_ERR_ARGUMENT, "%s has %d number%s for %d dimensions", any_size ? "size" : "scale_factor",
                       most, most == 1 ? "" : "s", dims);
    return KN_OK;
}

static kn_status set_size(kn_resize_record *r, const kn_interpolate_params *p, int i, int64_t size)
{
    const double factor = count_factors(p) > 0 ? p->scale_factors[i] : p->scale_factor;

    r->out_size[i] = count_sizes(p) > 0 ? p->sizes[i] : p->size;
    if (factor != 0 || count_factors(p) > 0) {
        if (!(factor > 0) || !(factor * (double)size < INT_MAX / 4))
            return kn_fail(KN_ERR_ARGUMENT, "scale_factor (%g) must be more than 0 and give fewer than %d elements",
                           factor, INT_MAX / 4);
        r->out_size[i] = (int64_t)floor((double)size * factor);
        r->factor[i] = p->recompute_scale_factor ? 0 : factor;
    }
    if (r->out_size[i] < 1 || r->out_size[i] > INT_MAX / 4 || size < 1 || size > INT_MAX / 4)
        return kn_fail(KN_ERR_SHAPE, "input and output sizes must be from 1 to %d, but dimension %d has %lld and %lld",
                       INT_MAX / 4, i + 2, (long long)size, (long long)r->out_size[i]);
    return KN_OK;
}

static int kind_of(const kn_interpolate_params *p)
{
    switch (p->mode) {
    case KN_INTERPOLATE_NEAREST:
        return KN_RESIZE_NEAREST;
    case KN_INTERPOLATE_NEAREST_EXACT:
        return KN_RESIZE_NEAREST_EXACT;
    case KN_INTERPOLATE_BICUBIC:
        return p->antialias ? KN_RESIZE_CUBIC_SMOOTH : KN_RESIZE_CUBIC;
    default:
        return p->antialias ? KN_RESIZE_LINEAR_SMOOTH : KN_RESIZE_LINEAR;
    }
}

static kn_tensor *resize_area(kn_tensor *x, const int64_t *n)
{
    return x->ndim == 3   ? kn_adaptive_avg_pool1d(x, n[0])
           : x->ndim == 4 ? kn_adaptive_avg_pool2d(x, n[0], n[1])
                          : kn_adaptive_avg_pool3d(x, n[0], n[1], n[2]);
}

static kn_status interpolate_enter(kn_entry *entry)
{
    const kn_interpolate_params *p = entry->params;
    const kn_tensor *x = entry->inputs[0];
    kn_resize_record *r = kn_entry_record(entry, sizeof *r);

    KN_TRY(check(p, x->ndim));
    KN_TRY(check_given(p, x->ndim - 2));
    r->dims = x->ndim - 2;
    r->kind = kind_of(p);
    r->align_corners = p->align_corners;
    for (int i = 0; i < r->dims; i++)
        KN_TRY(set_size(r, p, i, x->shape[2 + i]));
    if (p->mode != KN_INTERPOLATE_AREA)
        return KN_OK;
    entry->result = resize_area(entry->inputs[0], r->out_size);
    return entry->result ? KN_OK : kn_error_status();
}

static kn_status interpolate_shape(kn_call *call)
{
    const kn_resize_record *r = call->params;
    const kn_tensor *x = call->inputs[0];
    int64_t shape[KN_MAX_DIMS] = {x->shape[0], x->shape[1]};
    KN_TRY(kn_call_check_floating(call, 0));
    for (int i = 0; i < r->dims; i++)
        shape[2 + i] = r->out_size[i];
    return kn_call_output(call, x->dtype, x->ndim, shape);
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static kn_status interpolate_forward(kn_call *call)
{
    return kn_resize_run(call->stream, call->params, call->inputs[0]->shape + 2, false, call->inputs[0],
                         call->outputs[0]);
}

static kn_status interpolate_backward(kn_grad_call *grad)
{
    kn_tensor *out = kn_grad_new(grad, 0);
    return out ? kn_resize_run(grad->stream, grad->params, grad->input[0].shape + 2, true, grad->grad_outputs[0], out)
               : kn_error_status();
}

static const kn_op_param rows[] = {
    KN_PARAM(kn_interpolate_params, size),
    KN_PARAM(kn_interpolate_params, sizes),
    KN_PARAM(kn_interpolate_params, scale_factor),
    KN_PARAM(kn_interpolate_params, scale_factors),
    KN_PARAM(kn_interpolate_params, mode, .values = mode_names),
    KN_PARAM(kn_interpolate_params, align_corners),
    KN_PARAM(kn_interpolate_params, recompute_scale_factor),
    KN_PARAM(kn_interpolate_params, antialias),
};

/* A multiplication and an addition for each element that an element is made of. */
static kn_span_work interpolate_work(const kn_call *call)
{
    static const double widths[] = {0.5, 0.5, 2, 4, 2, 4};
    const kn_resize_record *r = call->params;
    return kn_work_of_outputs(call, 2 * widths[r->kind] * r->dims);
}

static kn_span_work interpolate_backward_work(const kn_grad_call *grad)
{
    static const double widths[] = {0.5, 0.5, 2, 4, 2, 4};
    const kn_resize_record *r = grad->params;
    return kn_grad_work(grad, 2 * widths[r->kind] * r->dims * (double)kn_numel(grad->grad_outputs[0]));
}

extern const kn_op kn_interpolate_backward_op;
const kn_op kn_interpolate_op = {.name = "interpolate",
                                 .inputs = {"x"},
                                 .dtypes = {KN_DTYPES_FLOATING},
                                 .params = KN_PARAMS(kn_interpolate_params, rows, KN_INTERPOLATE_DEFAULTS),
                                 .widens_halves = true,
                                 .enter = interpolate_enter,
                                 .record_size = sizeof(kn_resize_record),
                                 .shape = interpolate_shape,
                                 .forward = interpolate_forward,
                                 .backward = interpolate_backward,
                                 KN_RECORDED_AS(interpolate_backward),
                                 .reference = kn_resize_reference,
                                 .work = interpolate_work,
                                 .backward_work = interpolate_backward_work};

const kn_op kn_interpolate_backward_op = {KN_LINEAR_BACKWARD_OP(interpolate), .inputs = {"grad", "x"},
                                          .outputs = {"grad_x"}, .widens_halves = true};

kn_interpolate_params kn_interpolate_params_init(void) { return (kn_interpolate_params){KN_INTERPOLATE_DEFAULTS}; }

kn_tensor *kn_interpolate_with(kn_tensor *x, const kn_interpolate_params *params)
{
    return kn_invoke(&kn_interpolate_op, params, x);
}
