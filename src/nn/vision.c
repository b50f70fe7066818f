/* nn/vision.c - Upsample, Unfold, Fold, PixelShuffle, PixelUnshuffle, ChannelShuffle. */
#include <koine/nn/fold.h>
#include <koine/nn/pixelshuffle.h>
#include <koine/nn/upsampling.h>

#include "base/error.h"
#include "nn/module.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/params_text.h"
#include "ops/vision/fold.h"
#include "ops/vision/interpolate.h"

/* --- resizing ----------------------------------------------------------------------------------------------------- */

extern const kn_op kn_interpolate_op;

static kn_tensor *upsample(kn_module *module, kn_tensor *x) { return kn_interpolate_with(x, module->self); }

static void append_factor(kn_text *text, double factor)
{
    const bool is_whole = factor == (double)(int64_t)factor;
    kn_text_format(text, is_whole ? "%.1f" : "%.15g", factor);
}

static void append_size(kn_text *text, const kn_interpolate_params *p)
{
    if (p->sizes[0] == 0) {
        kn_text_format(text, "size=%lld", (long long)p->size);
        return;
    }
    for (int i = 0; i < 3 && p->sizes[i] != 0; i++)
        kn_text_format(text, "%s%lld", i ? ", " : "size=(", (long long)p->sizes[i]);
    kn_text_append(text, p->sizes[1] == 0 ? ",)" : ")");
}

static void append_scale_factor(kn_text *text, const kn_interpolate_params *p)
{
    kn_text_append(text, "scale_factor=");
    if (p->scale_factors[0] == 0) {
        append_factor(text, p->scale_factor);
        return;
    }
    for (int i = 0; i < 3 && p->scale_factors[i] != 0; i++) {
        kn_text_append(text, i ? ", " : "(");
        append_factor(text, p->scale_factors[i]);
    }
    kn_text_append(text, p->scale_factors[1] == 0 ? ",)" : ")");
}

static void describe_upsample(kn_module *module, kn_text *text)
{
    const kn_interpolate_params *p = module->self;
    if (p->scale_factor != 0 || p->scale_factors[0] != 0)
        append_scale_factor(text, p);
    else
        append_size(text, p);
    kn_text_append(text, ", mode=");
    kn_param_append(text, kn_op_param_at(&kn_interpolate_op, 4), &p->mode, true);
}

static kn_module *make_upsample(const char *name, kn_interpolate_params self)
{
    const bool sized = self.size != 0 || self.sizes[0] != 0,
               scaled = self.scale_factor != 0 || self.scale_factors[0] != 0;
    if (kn_op_check_params(&kn_interpolate_op, &self) != KN_OK)
        return kn_error_prefix("%s", name), kn_error_make_sticky();
    if (sized == scaled)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: %s of size and scale_factor must be given", name,
                            sized ? "only one" : "one");
    if (kn_interpolate_check(&self) != KN_OK)
        return kn_error_prefix("%s", name), kn_error_make_sticky();
    return kn_layer_new(name, upsample, describe_upsample, &self, sizeof self);
}

static kn_interpolate_params given(const kn_interpolate_params *params)
{
    return params ? *params : (kn_interpolate_params){KN_INTERPOLATE_DEFAULTS};
}

kn_module *kn_nn_upsample_with(const kn_interpolate_params *params) { return make_upsample("Upsample", given(params)); }

kn_module *kn_nn_upsampling_nearest2d_with(const kn_interpolate_params *params)
{
    kn_interpolate_params self = given(params);
    self.mode = KN_INTERPOLATE_NEAREST;
    return make_upsample("UpsamplingNearest2d", self);
}

kn_module *kn_nn_upsampling_bilinear2d_with(const kn_interpolate_params *params)
{
    kn_interpolate_params self = given(params);
    self.mode = KN_INTERPOLATE_BILINEAR;
    self.align_corners = true;
    return make_upsample("UpsamplingBilinear2d", self);
}

/* --- patches ------------------------------------------------------------------------------------------------------ */

typedef struct folding {
    const kn_op *op;
    kn_fold_args args;
} folding;

static kn_tensor *apply_folding(kn_module *module, kn_tensor *x)
{
    const folding *self = module->self;
    return kn_invoke(self->op, &self->args, x);
}

/* Like PyTorch: one number where one was given. */
static void append_pair(kn_text *text, const char *name, const kn_ints *pair)
{
    if (pair->count == 1)
        kn_text_format(text, "%s=%lld", name, (long long)pair->values[0]);
    else
        kn_text_format(text, "%s=(%lld, %lld)", name, (long long)pair->values[0], (long long)pair->values[1]);
}

static void describe_folding(kn_module *module, kn_text *text)
{
    const folding *self = module->self;
    if (self->op == &kn_fold_op)
        append_pair(text, "output_size", &self->args.output_size);
    append_pair(text, self->op == &kn_fold_op ? ", kernel_size" : "kernel_size", &self->args.kernel_size);
    append_pair(text, ", dilation", &self->args.dilation);
    append_pair(text, ", padding", &self->args.padding);
    append_pair(text, ", stride", &self->args.stride);
}

/* Refuses what no input could fit. */
static kn_module *make_folding(const char *name, folding self)
{
    kn_fold_geometry g;
    static const int64_t large[] = {1 << 28, 1 << 28};
    if (kn_fold_resolve(&g, &self.args, 1, self.op == &kn_fold_op ? self.args.output_size.values : large) != KN_OK)
        return kn_error_prefix("%s", name), kn_error_make_sticky();
    return kn_layer_new(name, apply_folding, describe_folding, &self, sizeof self);
}

kn_module *kn_nn_unfold_with(const kn_fold_params *params)
{
    return make_folding("Unfold", (folding){&kn_unfold_op, kn_fold_args_of(params)});
}

kn_module *kn_nn_fold_with(int64_t output_height, int64_t output_width, const kn_fold_params *params)
{
    folding self = {&kn_fold_op, kn_fold_args_of(params)};
    if (output_height < 1 || output_width < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "Fold: output_size (%lld, %lld) must be at least 1",
                            (long long)output_height, (long long)output_width);
    self.args.output_size = (kn_ints){2, {output_height, output_width}};
    return make_folding("Fold", self);
}

/* --- channels and space ------------------------------------------------------------------------------------------- */

typedef struct shuffle {
    kn_tensor *(*apply)(kn_tensor *x, int64_t factor);
    const char *shown; /* the name of the factor */
    int64_t factor;
} shuffle;

static kn_tensor *apply_shuffle(kn_module *module, kn_tensor *x)
{
    const shuffle *self = module->self;
    return self->apply(x, self->factor);
}

static void describe_shuffle(kn_module *module, kn_text *text)
{
    const shuffle *self = module->self;
    kn_text_format(text, "%s=%lld", self->shown, (long long)self->factor);
}

static kn_module *make_shuffle(const char *name, shuffle self)
{
    if (self.factor < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: %s (%lld) must be at least 1", name, self.shown,
                            (long long)self.factor);
    return kn_layer_new(name, apply_shuffle, describe_shuffle, &self, sizeof self);
}

kn_module *kn_nn_pixel_shuffle(int64_t upscale_factor)
{
    return make_shuffle("PixelShuffle", (shuffle){kn_pixel_shuffle, "upscale_factor", upscale_factor});
}

kn_module *kn_nn_pixel_unshuffle(int64_t downscale_factor)
{
    return make_shuffle("PixelUnshuffle", (shuffle){kn_pixel_unshuffle, "downscale_factor", downscale_factor});
}

kn_module *kn_nn_channel_shuffle(int64_t groups)
{
    return make_shuffle("ChannelShuffle", (shuffle){kn_channel_shuffle, "groups", groups});
}
