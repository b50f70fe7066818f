/* autograd/op.h - what an operation is, and how it is applied.
 *
 * An op is one descriptor. kn_op_apply checks the inputs, calls the shape rule, makes the outputs, calls forward, and
 * records the call on the tape when a gradient may be needed. A descriptor is a constant in its family's file under
 * src/ops and is listed in ops/dispatch/operators.h. */
#pragma once

#include <koine/operators.h>

#include "base/error.h"
#include "rt/trace/spans.h"
#include "tensor/tensor.h"

#define KN_OP_MAX_INPUTS 10 /* that have names; a list has any number of tensors */
#define KN_OP_MAX_OUTPUTS 8
#define KN_OP_MAX_SAVED 12

typedef struct kn_entry kn_entry; /* ops/dispatch/invoke.h */

/* One application of an op, from shape rule to forward. Optional inputs may be NULL. */
typedef struct kn_call {
    const kn_op *op;
    const void *params;
    kn_stream *stream;
    int num_inputs;
    kn_tensor *const *inputs; /* num_inputs of them, borrowed */

    /* Set by the shape rule: the outputs that kn_op_apply makes before forward (contiguous, uninitialised, on the
     * inputs' device). */
    int num_outputs;
    struct {
        kn_dtype dtype;
        int ndim;
        int64_t shape[KN_MAX_DIMS];
    } spec[KN_OP_MAX_OUTPUTS];

    kn_tensor *outputs[KN_OP_MAX_OUTPUTS]; /* owned by the call; a view op's forward sets them itself */
    unsigned skipped;                      /* bit i: output i is unwanted: see skips_outputs */

    /* Set by forward with kn_call_save: what backward needs, inputs and outputs included. */
    bool needs_grad;  /* this call will be recorded; otherwise save nothing */
    bool is_repeated; /* by a backward operator, for what is saved: inputs must not be changed */
    int num_saved;
    kn_tensor *saved[KN_OP_MAX_SAVED];
} kn_call;

/* Dtype, shape and device of an input of a recorded call. */
typedef struct kn_input_spec {
    kn_dtype dtype;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    kn_device *device;
} kn_input_spec;

/* A part of a tensor: of one dimension those from `start` on and before `end`. */
typedef struct kn_range {
    int dim;
    int64_t start, end;
    bool has_holes; /* not all of these */
    bool is_all;    /* of a view of all elements */
} kn_range;

/* One step of the backward pass. Runs inside a scope with gradients disabled: temporaries need no release, and backward
 * may use public operations as well as kernels. The engine takes ownership of grad_inputs before the scope ends. */
typedef struct kn_grad_call {
    const kn_op *op;
    const void *params;
    kn_stream *stream;
    int num_inputs, num_outputs;
    const bool *needs;          /* per input: is its gradient needed? */
    const kn_input_spec *input; /* dtypes, shapes and devices of the inputs */
    /* What forward saved; borrowed. NULL in empty slots and in those after num_saved, up to KN_OP_MAX_SAVED. */
    kn_tensor *const *saved;
    int num_saved;
    kn_tensor *const
        *grad_outputs;          /* borrowed; contiguous, unless the op says otherwise; NULL: none reached that output */
    kn_tensor **grad_inputs;    /* set by backward: scope-owned, the input's shape and dtype; NULL: no gradient */
    const struct kn_node *node; /* with create_graph: the node being run; NULL otherwise */
    struct kn_queue *queue;     /* for kn_grad_place and kn_grad_take; NULL: not for this pass */
    const struct kn_edge *edges;
} kn_grad_call;

/* The reference in plain C. Inputs and outputs are contiguous host tensors: floating ones in f64, all others in i64;
 * outputs have the spec's shapes and are zeroed (those of an in-place op start as a copy of input 0). Run by the tests
 * and `koine doctor`. */
typedef kn_status (*kn_op_reference)(const kn_call *call);

/* An op's parameters: a struct, a row for each of its fields, and an instance with the defaults. */
typedef struct kn_op_params {
    const kn_op_param *rows;
    int count;
    size_t size;
    const void *defaults;
} kn_op_params;

struct kn_op {
    const char *name;
    /* Names; NULL-terminated. "?bias" is optional (omitted or NULL). "*tensors", only as the last one, is a list of one
     * or more. */
    const char *inputs[KN_OP_MAX_INPUTS];
    unsigned dtypes[KN_OP_MAX_INPUTS];      /* accepted (KN_DTYPES_...); 0: as input 0, for input 0: all */
    const char *outputs[KN_OP_MAX_OUTPUTS]; /* names; none: a single output, "result" */
    int first_statistic; /* outputs from this one on have no gradients, and are float32 for halves; 0: none */
    kn_op_params params; /* KN_PARAMS */
    bool widens_halves;  /* float16 and bfloat16 are computed in float32, floating results converted back */
    int num_widened;     /* how many leading inputs widens_halves applies to; 0: all */
    /* Of widens_halves: are these inputs computed without, by kernels that read halves? NULL: never. */
    bool (*reads_halves)(const kn_entry *entry);
    bool composes; /* `enter` creates tensors, released after the op was applied */
    /* Translates the caller's inputs and parameters into the op's (ops/dispatch/invoke.h). NULL: used unchanged. Of a
     * composition, this is all there is. */
    kn_status (*enter)(kn_entry *entry);

    size_t record_size;                /* bytes of call->params, copied onto the tape; 0: params.size */
    void (*record_keep)(void *params); /* called on that copy: retains what it points to; NULL: plain data */
    void (*record_drop)(void *params); /* releases those references, possibly the op's own last one */
    bool is_view;                      /* forward sets the outputs itself, sharing input 0's storage */
    bool strided_outputs;              /* forward accepts outputs with any strides */
    bool elementwise;                  /* reads of its operands only the place that it writes: see can_write_to */
    bool strided_gradients;            /* backward accepts gradients with any strides */
    bool in_place;                     /* output 0 is input 0, changed */
    /* unwanted outputs stay NULL, of ops with statistics only these; shape rules may add to call->skipped */
    bool skips_outputs;
    bool nondeterministic;             /* equal inputs may give different bits: see koine/flags.h */
    kn_status (*shape)(kn_call *call); /* checks params, dtypes and shapes; fills spec */
    /* Changes the strides of output 0, which is new, so that its elements are in another order. NULL: row-major. */
    void (*arrange)(const kn_call *call, kn_tensor *output);
    kn_status (*forward)(kn_call *call);       /* enqueues the work */
    kn_status (*backward)(kn_grad_call *call); /* NULL: not differentiable */
    /* Backward composed of recorded public operations, for create_graph; reads saved tensors with kn_grad_saved_input
     * and kn_grad_saved_output. May be the same function as backward. NULL: create_graph through this op is an
     * error. */
    kn_status (*backward_recorded)(kn_grad_call *call);
    /* Of views: sets *part to the part of `whole`, a gradient of input 0 with any strides, that the output's gradient
     * belongs to; NULL: it is not a view of that. In the rest the gradient is 0. So gradients of several parts are
     * written into one tensor (autograd/whole.h). */
    kn_status (*part)(kn_tensor **part, kn_tensor *whole, const void *params);
    /* Of views of a part: the range of input 0 that it is. NULL: all of it. */
    void (*range)(kn_range *range, const void *params);
    /* Names of the saved tensors by slot: inputs, outputs, or other names. Used by the next two. */
    const char *saved[KN_OP_MAX_SAVED];
    const kn_op *backward_operator; /* backward as a differentiable operator (ops/dispatch/backward.h), or NULL */
    const kn_op *backward_of;       /* this op is the backward pass of that one and has its parameters */
    bool repeats_forward; /* with backward_of: runs forward again, since what it saves is not among the inputs */
    /* With repeats_forward, called instead if statistics of that op are inputs and all given: sets what its forward
     * would save. NULL: that is the inputs. */
    kn_status (*restore)(const kn_call *call, kn_tensor **saved);
    kn_op_reference reference; /* NULL for views, ops that only move data, and backward passes */
    void *detail;              /* per-op data for functions shared by several ops, or NULL */

    /* What the profiler counts, at least one read of each input and one write of each output: see autograd/work.h. */
    kn_span_work (*work)(const kn_call *call); /* NULL: one operation per output element; none for views */
    kn_span_work (*backward_work)(const kn_grad_call *call); /* NULL: one per gradient element; none for views */
};

/* Is it a composition of other operators? Then `enter` gives the result, and shape, forward, backward and reference are
 * NULL: gradients are those of the operators in it. */
static inline bool kn_op_is_composition(const kn_op *op) { return !op->forward; }

/* Size in bytes of what call->params points to. */
static inline size_t kn_op_record_size(const kn_op *op)
{
    op = op->backward_of ? op->backward_of : op;
    return op->record_size ? op->record_size : op->params.size;
}

/* The parameters given by callers. */
static inline const kn_op_params *kn_op_params_of(const kn_op *op)
{
    return op->backward_of ? &op->backward_of->params : &op->params;
}

/* --- for descriptors ---------------------------------------------------------------------------------------------- */

#define KN_DTYPES_REAL (1u << KN_F64 | 1u << KN_F32)
#define KN_DTYPES_FLOATING (KN_DTYPES_REAL | 1u << KN_F16 | 1u << KN_BF16)
#define KN_DTYPES_NUMBERS (KN_DTYPES_FLOATING | KN_DTYPES_INDICES | 1u << KN_I16 | 1u << KN_I8 | 1u << KN_U8)
#define KN_DTYPES_ALL (KN_DTYPES_NUMBERS | 1u << KN_BOOL)
#define KN_DTYPES_INDICES (1u << KN_I64 | 1u << KN_I32)

/* .params = KN_PARAMS(kn_softmax_params, softmax_rows, .dim = -1): the struct, the rows, the defaults. */
#define KN_PARAMS(type, table, ...)                                                                                    \
    {                                                                                                                  \
        .rows = table, .count = (int)(sizeof(table) / sizeof(table)[0]), .size = sizeof(type),                         \
        .defaults = &(const type)                                                                                      \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

#define KN_NO_PARAMS                                                                                                   \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* A row: KN_PARAM(kn_softmax_params, dim), followed by fields of kn_op_param by name (.min = 0, .max = 1). */
#define KN_PARAM(type, field, ...) KN_PARAM_NAMED(#field, type, field, __VA_ARGS__)
#define KN_PARAM_NAMED(name_, type, field, ...)                                                                        \
    {                                                                                                                  \
        .name = name_, .kind = KN_PARAM_KIND(((type *)0)->field), .offset = offsetof(type, field),                     \
        .size = sizeof(((type *)0)->field), __VA_ARGS__                                                                \
    }
/* A range: all numbers greater than 0. */
#define KN_POSITIVE .min = 0, .max = (double)INFINITY, .above_min = true
#define KN_PARAM_KIND(value)                                                                                           \
    _Generic((value),                                                                                                  \
        bool: KN_PARAM_BOOL,                                                                                           \
        int: KN_PARAM_INT,                                                                                             \
        int64_t: KN_PARAM_INT64,                                                                                       \
        int64_t *: KN_PARAM_INT64,                                                                                     \
        double: KN_PARAM_DOUBLE,                                                                                       \
        double *: KN_PARAM_DOUBLE,                                                                                     \
        kn_scalar: KN_PARAM_SCALAR,                                                                                    \
        kn_dtype: KN_PARAM_DTYPE,                                                                                      \
        kn_ints: KN_PARAM_INTS,                                                                                        \
        kn_generator *: KN_PARAM_GENERATOR,                                                                            \
        default: KN_PARAM_ENUM)

/* --- applying ----------------------------------------------------------------------------------------------------- */

/* Applies the op; returns output 0 as public functions do (owned by the scope or the caller; NULL with a sticky error).
 * The other num_outputs - 1 outputs go to `more`, owned alike; NULL drops them. Checks that no required input is NULL
 * and that all are on one device, not the host. Errors are prefixed with the op's name. */
kn_tensor *kn_op_apply(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params, kn_tensor **more);

/* The same with the first num_outputs outputs in `outputs`, the others dropped. A non-NULL entry is computed into
 * (koine/operators.h: kn_op_call). The caller has called kn_op_check_given. */
kn_status kn_op_apply_to(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                         kn_tensor **outputs, int num_outputs);

/* Copies a result to the tensor that the caller gave for output `index`: for results that are not computed there. The
 * same checks. */
kn_status kn_op_deliver(const kn_op *op, int index, kn_tensor *wanted, kn_tensor *result);

/* Checks that no required input is missing; the error names the one that is. */
kn_status kn_op_check_given(const kn_op *op, kn_tensor *const *inputs, int num_inputs);

/* kn_apply(&op, &params, a, b): the common case. */
#define kn_apply(op, params, ...)                                                                                      \
    kn_op_apply(op, (kn_tensor *const[]){__VA_ARGS__},                                                                 \
                (int)(sizeof((kn_tensor *[]){__VA_ARGS__}) / sizeof(kn_tensor *)), params, NULL)

/* Watches every application of an op on this thread: called before forward (`after` false) and after it (`after` true;
 * outputs enqueued). NULL switches it off. The tests and `koine doctor` compare each op with its reference this way. A
 * status other than KN_OK fails the op. Returns the previous observer. */
typedef kn_status (*kn_op_observer)(kn_call *call, bool after, void *user);
typedef struct kn_op_observation {
    kn_op_observer function;
    void *user;
} kn_op_observation;
kn_op_observation kn_op_set_observer(kn_op_observer observer, void *user);

/* A dry run, on this thread: ops check their inputs and make their outputs, filled with zeros, but run no kernels.
 * Gives shapes and work without computing or compiling anything. Returns the previous setting. */
bool kn_op_set_dry_run(bool on);
bool kn_op_is_dry_run(void);

/* For shape rules: declares the next output. */
kn_status kn_call_output(kn_call *call, kn_dtype dtype, int ndim, const int64_t *shape);

/* An `arrange`: the output's dimensions lie in memory as the inputs' do. */
void kn_call_arrange(const kn_call *call, kn_tensor *output);

/* For forward: saves a tensor for backward: an input, an output, or an owned temporary, which the caller still
 * releases. */
kn_status kn_call_save(kn_call *call, kn_tensor *tensor);

/* The same for a tensor that only the gradient of input `index` needs: where that is not wanted the slot stays NULL,
 * and the tensor may be freed or changed in place. */
kn_status kn_call_save_for(kn_call *call, int index, kn_tensor *tensor);

/* Is the gradient of input `index` needed? For forward, in calls with `needs_grad`. */
bool kn_call_needs(const kn_call *call, int index);

/* For backward: sets and returns grad_inputs[index], uninitialised: a new tensor, or the given output if the pass is
 * called as an operator. NULL with an error. */
kn_tensor *kn_grad_new(kn_grad_call *call, int index);

/* The same where the gradient will end up, if the input is a view, whose gradient is a part of another, and if `fits`:
 * with any strides. */
kn_tensor *kn_grad_place(kn_grad_call *call, int index, bool (*fits)(const kn_tensor *place));

/* For backward: takes over what other uses of input `index` have added to its gradient so far: the result must be the
 * sum of that and of the gradient from here, in one pass over memory instead of two. Contiguous, scope-owned; NULL:
 * there is nothing to add. */
kn_tensor *kn_grad_take(kn_grad_call *call, int index);

/* For backward_recorded: what forward saved in `slot`, input `input` or output `output`, with its history. Scope-owned;
 * NULL where the slot is empty, or with an error. Without create_graph the saved tensor itself. */
kn_tensor *kn_grad_saved_input(const kn_grad_call *call, int slot, int input);
kn_tensor *kn_grad_saved_output(const kn_grad_call *call, int slot, int output);

/* For shape rules: input `index` has one of the floating dtypes that kernels compute in (f32, f64). */
kn_status kn_call_check_floating(const kn_call *call, int index);
/* The same of operators that take halves, too, as they are. */
kn_status kn_call_check_floating_or_half(const kn_call *call, int index);
/* All non-NULL inputs from `first` to `last` share one dtype. */
kn_status kn_call_check_same_dtype(const kn_call *call, int first, int last);
