/* optim/lbfgs.c - LBFGS: Nocedal and Wright, "Numerical Optimization" (2006), algorithm 7.4, as torch.optim.LBFGS. All
 * parameters are one vector; its history stays on the device, numbers that decide what is done next are read. */
#include "optim/lbfgs.h"

#include <math.h>

#include <koine/autograd.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>

#include "base/error.h"
#include "base/memory.h"
#include "ops/pointwise/elementwise.h"
#include "optim/lbfgs_state.h"
#include "tensor/scope.h"

enum { LR = KN_OPTIM_LR, MAX_ITER, MAX_EVAL, TOLERANCE_GRAD, TOLERANCE_CHANGE, HISTORY_SIZE, LINE_SEARCH, MAXIMIZE };

static const char *const searches[] = {NULL, "strong_wolfe", ""};

#define COUNT(name) KN_HYPER(kn_lbfgs_params, name, .kind = KN_HYPER_COUNT)
static const kn_optim_hyper hyper_rows[] = {
    KN_HYPER(kn_lbfgs_params, lr),
    COUNT(max_iter),
    COUNT(max_eval),
    KN_HYPER(kn_lbfgs_params, tolerance_grad, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_lbfgs_params, tolerance_change, .kind = KN_HYPER_NUMBER),
    COUNT(history_size),
    KN_HYPER(kn_lbfgs_params, line_search_fn, .kind = KN_HYPER_CHOICE, .choices = searches),
    KN_HYPER(kn_lbfgs_params, maximize, .kind = KN_HYPER_FLAG),
    {0},
};

static void complete(double *hyper)
{
    if (hyper[MAX_EVAL] == 0)
        hyper[MAX_EVAL] = floor(hyper[MAX_ITER] * 5 / 4);
}

static kn_status check(const double *hyper)
{
    if (hyper[HISTORY_SIZE] < 1)
        return kn_fail(KN_ERR_ARGUMENT, "LBFGS: history_size (%g) must be 1 or more", hyper[HISTORY_SIZE]);
    return KN_OK;
}

/* --- vectors ------------------------------------------------------------------------------------------------------ */

static kn_pointwise_code difference = {.name = "lbfgs_difference", .inputs = "ab", .values = {"a - b"}},
                         scaled = {.name = "lbfgs_scaled", .inputs = "a", .numbers = "p", .values = {"p * a"}},
                         along = {.name = "lbfgs_along", .inputs = "ab", .numbers = "p", .values = {"a + p * b"}};
/* The two loops of the direction; a: the vector, b: y or s, c: s . q, r: y . a, p: 1 / (y . s). */
static kn_pointwise_code backwards = {
    .name = "lbfgs_backwards", .inputs = "abc", .numbers = "p", .values = {"a - p * c * b"}};
static kn_pointwise_code forwards = {
    .name = "lbfgs_forwards", .inputs = "abcr", .numbers = "p", .values = {"a + (p * c - p * r) * b"}};

static kn_status run_code(const kn_lbfgs_run *run, kn_pointwise_code *code, kn_tensor *output,
                          const kn_tensor *const *inputs, int count, double number)
{
    for (int i = 0; i < count; i++)
        if (!inputs[i])
            return kn_error_status();
    const kn_scalar numbers[] = {kn_scalar_real(number)};
    kn_stream *stream = kn_tensor_stream(output);
    return stream ? kn_elements(stream, code, "LBFGS", run->dtype, output, inputs, count, numbers) : kn_error_status();
}

static kn_status new_vector(const kn_lbfgs_run *run, kn_tensor **vector)
{
    return kn_tensor_new(vector, run->dtype, 1, &run->length, run->device);
}

/* *vector = code(inputs); released by the caller. */
static kn_status make_vector(const kn_lbfgs_run *run, kn_pointwise_code *code, const kn_tensor *const *inputs,
                             int count, double number, kn_tensor **vector)
{
    KN_TRY(new_vector(run, vector));
    return run_code(run, code, *vector, inputs, count, number);
}

static kn_status read_number(kn_tensor *tensor, double *number)
{
    return tensor ? kn_item(tensor, number) : kn_error_status();
}

static void replace(kn_tensor **place, kn_tensor *with)
{
    kn_retain(with);
    kn_release(*place);
    *place = with;
}

/* Calls `visit` for each parameter and its part of a flat vector. */
static kn_status each_part(const kn_lbfgs_run *run, kn_tensor *vector, double number,
                           kn_status (*visit)(const kn_lbfgs_run *run, int index, kn_tensor *part, double number))
{
    int64_t start = 0;
    for (int i = 0; i < run->optim->count; i++) {
        const kn_tensor *p = run->optim->parameters[i];
        kn_tensor *part = NULL;
        KN_TRY(kn_tensor_view(&part, vector, p->ndim, p->shape, NULL, start));
        const kn_status status = kn_numel(p) > 0 ? visit(run, i, part, number) : KN_OK;
        kn_release(part);
        KN_TRY(status);
        start += kn_numel(p);
    }
    return KN_OK;
}

static kn_status take_parameter(const kn_lbfgs_run *run, int index, kn_tensor *part, double number)
{
    (void)number;
    return kn_tensor_copy(part, run->optim->parameters[index]);
}

static kn_status take_gradient(const kn_lbfgs_run *run, int index, kn_tensor *part, double number)
{
    (void)number;
    kn_tensor *gradient = kn_grad(run->optim->parameters[index]);
    if (!gradient)
        return kn_tensor_fill(part, 0);
    if (run->sign > 0)
        return kn_tensor_copy(part, gradient);
    return run_code(run, &scaled, part, (const kn_tensor *[]){gradient}, 1, -1);
}

/* `part` is that of the direction. */
static kn_status move_parameter(const kn_lbfgs_run *run, int index, kn_tensor *part, double t)
{
    kn_tensor *p = run->optim->parameters[index], *origin = NULL;
    KN_TRY(kn_tensor_view(&origin, run->origin, p->ndim, p->shape, NULL, part->offset));
    const kn_status status = run_code(run, &along, p, (const kn_tensor *[]){origin, part}, 2, t);
    kn_release(origin);
    kn_tensor_bump_version(p);
    return status;
}

/* --- evaluations -------------------------------------------------------------------------------------------------- */

kn_status kn_lbfgs_move(kn_lbfgs_run *run, double t) { return each_part(run, run->direction, t, move_parameter); }

static kn_status evaluate_here(kn_lbfgs_run *run, kn_lbfgs_point *point, kn_tensor **loss)
{
    *loss = kn_optim_call_closure(run->optim, run->closure, run->user);
    KN_TRY(read_number(*loss, &point->loss));
    point->loss *= run->sign;
    point->gradient = NULL;
    KN_TRY(new_vector(run, &point->gradient));
    KN_TRY(each_part(run, point->gradient, 0, take_gradient));
    return run->direction ? read_number(kn_dot(point->gradient, run->direction), &point->slope) : KN_OK;
}

kn_status kn_lbfgs_evaluate(kn_lbfgs_run *run, kn_lbfgs_point *point, kn_tensor **loss)
{
    kn_tensor *made = NULL;
    if (run->direction)
        KN_TRY(kn_lbfgs_move(run, point->t));
    const int depth = kn_scope_begin();
    run->evaluations++;
    const kn_status status = depth > 0 ? evaluate_here(run, point, &made) : kn_error_status();
    if (status != KN_OK) {
        kn_release(point->gradient);
        point->gradient = NULL;
    }
    if (status == KN_OK && loss)
        *loss = kn_scope_return(depth, made);
    else
        kn_scope_end(depth);
    return status;
}

/* --- the direction ------------------------------------------------------------------------------------------------ */

/* Adds the latest move s = t d and the change y of the gradient, if the curvature between them is positive. */
static kn_status remember(const kn_lbfgs_run *run, kn_lbfgs_state *state, const kn_tensor *gradient)
{
    const int most = (int)run->optim->groups[0].hyper[HISTORY_SIZE];
    kn_lbfgs_pair pair = {NULL, NULL, 0};
    double yy = 0, ys = 0;
    kn_status status =
        make_vector(run, &difference, (const kn_tensor *[]){gradient, state->prev_flat_grad}, 2, 0, &pair.y);
    if (status == KN_OK)
        status = make_vector(run, &scaled, (const kn_tensor *[]){state->d}, 1, state->t, &pair.s);
    if (status == KN_OK)
        status = read_number(kn_dot(pair.y, pair.s), &ys);
    const bool is_kept = status == KN_OK && ys > 1e-10;
    if (is_kept)
        status = read_number(kn_dot(pair.y, pair.y), &yy);
    if (is_kept && status == KN_OK) {
        pair.ro = 1 / ys;
        state->h_diag = ys / yy;
        kn_lbfgs_forget(state, most - 1);
        status = kn_lbfgs_push(state, &pair);
    }
    if (!is_kept || status != KN_OK) {
        kn_release(pair.y);
        kn_release(pair.s);
    }
    return status;
}

/* q = -H g, H the approximate inverse of the Hessian, with the dot products of the first loop kept on the device. */
static kn_status apply_history(const kn_lbfgs_run *run, const kn_lbfgs_state *state, kn_tensor *q, kn_tensor **dots)
{
    for (int i = state->count - 1; i >= 0; i--) {
        const kn_lbfgs_pair *pair = &state->pairs[i];
        dots[i] = kn_dot(pair->s, q);
        KN_TRY(run_code(run, &backwards, q, (const kn_tensor *[]){q, pair->y, dots[i]}, 3, pair->ro));
    }
    KN_TRY(run_code(run, &scaled, q, (const kn_tensor *[]){q}, 1, state->h_diag));
    for (int i = 0; i < state->count; i++) {
        const kn_lbfgs_pair *pair = &state->pairs[i];
        const kn_tensor *inputs[] = {q, pair->s, dots[i], kn_dot(pair->y, q)};
        KN_TRY(run_code(run, &forwards, q, inputs, 4, pair->ro));
    }
    return KN_OK;
}

/* Sets state->d. */
static kn_status find_direction(const kn_lbfgs_run *run, kn_lbfgs_state *state, const kn_tensor *gradient)
{
    kn_tensor *q = NULL;
    if (state->n_iter == 1) {
        kn_lbfgs_forget(state, 0);
        state->h_diag = 1;
    } else {
        KN_TRY(remember(run, state, gradient));
    }
    kn_tensor **dots = kn_calloc((size_t)state->count + 1, sizeof(kn_tensor *));
    kn_status status = dots ? make_vector(run, &scaled, &gradient, 1, -1, &q) : KN_ERR_MEMORY;
    if (status == KN_OK && state->count > 0)
        status = apply_history(run, state, q, dots);
    if (status == KN_OK)
        replace(&state->d, q);
    kn_release(q);
    kn_free(dots);
    return status;
}

/* --- iterations --------------------------------------------------------------------------------------------------- */

static kn_status is_optimal(const kn_lbfgs_run *run, const kn_tensor *gradient, bool *is)
{
    double largest;
    KN_TRY(read_number(kn_max(kn_abs((kn_tensor *)gradient)), &largest));
    *is = largest <= run->optim->groups[0].hyper[TOLERANCE_GRAD];
    return KN_OK;
}

static kn_status first_guess(const kn_lbfgs_run *run, const kn_lbfgs_state *state, kn_tensor *gradient, double *t)
{
    double sum = 1;
    if (state->n_iter == 1)
        KN_TRY(read_number(kn_sum(kn_abs(gradient)), &sum));
    *t = (state->n_iter == 1 ? fmin(1, 1 / sum) : 1) * run->optim->groups[0].hyper[LR];
    return KN_OK;
}

/* Goes from `now` along the direction; `now` becomes where it ends, unless that is not to be evaluated. */
static kn_status go(kn_lbfgs_run *run, kn_lbfgs_state *state, bool is_last, kn_lbfgs_point *now)
{
    const double *hyper = run->optim->groups[0].hyper;
    kn_lbfgs_point next = {.t = state->t};
    if (hyper[LINE_SEARCH] == 0 && is_last)
        return kn_lbfgs_move(run, state->t);
    kn_status status = hyper[LINE_SEARCH] == 0 ? kn_lbfgs_evaluate(run, &next, NULL)
                                               : kn_lbfgs_search(run, now, hyper[TOLERANCE_CHANGE],
                                                                 (int)hyper[MAX_EVAL] - run->evaluations, &next);
    if (status == KN_OK && hyper[LINE_SEARCH] != 0)
        status = kn_lbfgs_move(run, next.t);
    kn_release(status == KN_OK ? now->gradient : next.gradient);
    if (status == KN_OK) {
        *now = next;
        state->t = next.t;
    }
    return status;
}

/* Sets `*ends`. */
static kn_status iterate(kn_lbfgs_run *run, kn_lbfgs_state *state, bool is_last, kn_lbfgs_point *now, bool *ends)
{
    const double *hyper = run->optim->groups[0].hyper;
    double reach;
    *ends = true;
    state->n_iter++;
    KN_TRY(find_direction(run, state, now->gradient));
    replace(&state->prev_flat_grad, now->gradient);
    state->prev_loss = now->loss;
    KN_TRY(first_guess(run, state, now->gradient, &state->t));
    KN_TRY(read_number(kn_dot(now->gradient, state->d), &now->slope));
    if (now->slope > -hyper[TOLERANCE_CHANGE])
        return KN_OK;
    now->t = 0;
    run->direction = state->d;
    KN_TRY(each_part(run, run->origin, 0, take_parameter));
    KN_TRY(go(run, state, is_last, now));
    if (is_last || run->evaluations >= hyper[MAX_EVAL])
        return KN_OK;
    KN_TRY(is_optimal(run, now->gradient, ends));
    if (*ends)
        return KN_OK;
    KN_TRY(read_number(kn_max(kn_abs(state->d)), &reach));
    *ends = reach * fabs(state->t) <= hyper[TOLERANCE_CHANGE] ||
            fabs(now->loss - state->prev_loss) < hyper[TOLERANCE_CHANGE];
    return KN_OK;
}

static kn_status minimise(kn_lbfgs_run *run, kn_lbfgs_state *state, kn_lbfgs_point *now, kn_tensor **loss)
{
    const int most = (int)run->optim->groups[0].hyper[MAX_ITER];
    bool ends = false;
    KN_TRY(kn_lbfgs_evaluate(run, now, loss));
    KN_NO_GRAD;
    KN_TRY(is_optimal(run, now->gradient, &ends));
    KN_TRY(new_vector(run, &run->origin));
    for (int i = 1; i <= most && !ends; i++) {
        const int depth = kn_scope_begin_internal();
        const kn_status status = depth > 0 ? iterate(run, state, i == most, now, &ends) : kn_error_status();
        kn_scope_end(depth);
        KN_TRY(status);
    }
    return KN_OK;
}

/* --- the step ----------------------------------------------------------------------------------------------------- */

/* All parameters are on one device, whose work is not being captured. */
static kn_status begin(kn_lbfgs_run *run)
{
    kn_optim *optim = run->optim;
    run->device = optim->parameters[0]->storage->device;
    run->dtype = KN_F32;
    for (int i = 0; i < optim->count; i++) {
        const kn_tensor *p = optim->parameters[i];
        if (kn_device_is_host(p->storage->device) || p->storage->device != run->device)
            return kn_fail(KN_ERR_DEVICE,
                           "LBFGS: parameter %d is on %s and parameter 0 on %s; they must be on one device", i,
                           kn_device_string(p->storage->device), kn_device_string(run->device));
        run->dtype = p->dtype == KN_F64 ? KN_F64 : run->dtype;
        run->length += kn_numel(p);
    }
    kn_stream *stream = kn_stream_current(run->device);
    if (stream && kn_stream_is_capturing(stream))
        return kn_capture_fail(stream, kn_fail(KN_ERR_STATE, "LBFGS: it decides by values of the loss how often to "
                                                             "evaluate it, which a graph cannot record"));
    if (!optim->own)
        optim->own = kn_calloc(1, sizeof(kn_lbfgs_state));
    return optim->own ? KN_OK : KN_ERR_MEMORY;
}

static kn_tensor *step(kn_optim *optim, kn_optim_closure closure, void *user)
{
    kn_tensor *loss = NULL;
    kn_lbfgs_point now = {0};
    kn_lbfgs_run run = {
        .optim = optim, .closure = closure, .user = user, .sign = optim->groups[0].hyper[MAXIMIZE] != 0 ? -1 : 1};
    if (begin(&run) != KN_OK)
        return kn_error_make_sticky();
    kn_lbfgs_state *state = optim->own;
    const kn_span span = kn_optim_begin(optim->algorithm->step, optim->parameters[0]);
    const kn_status status = minimise(&run, state, &now, &loss);
    if (kn_span_is_open(span))
        kn_span_end(span, NULL);
    state->func_evals += run.evaluations;
    if (status != KN_OK)
        state->n_iter = 0; /* begins anew */
    kn_release(now.gradient);
    kn_release(run.origin);
    return status == KN_OK ? loss : kn_error_make_sticky();
}

static const kn_optim_whole whole = {
    .step = step, .list = kn_lbfgs_state_list, .load = kn_lbfgs_state_load, .free = kn_lbfgs_state_free};

const kn_optim_algorithm kn_optim_row_lbfgs = {
    .params = &(const kn_lbfgs_params){KN_LBFGS_DEFAULTS},
    .name = "LBFGS",
    .step = "Optimizer.step#LBFGS.step",
    .hyper = hyper_rows,
    .states = (const kn_optim_state[]){{0}},
    .whole = &whole,
    .complete = complete,
    .check = check,
};

kn_lbfgs_params kn_lbfgs_params_init(void) { return (kn_lbfgs_params){KN_LBFGS_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(lbfgs)
