/* koine/module.h - modules: layers and networks with named parameters and buffers.
 *
 * A module owns its parameters, buffers and children. kn_module_free frees a module with all below it; a module that
 * was given to another (kn_nn_sequential, kn_module_register_module) belongs to that one. Parameters are made on the
 * current device, initialised as PyTorch initialises them from that device's generator, and require gradients.
 *
 * Constructors return NULL with a sticky error on failure, and take NULL children as failed ones: a network is built in
 * one expression and checked once.
 *
 * Threads. Any number of threads may apply one module at once (kn_forward), each to an input of its own, as long as no
 * thread changes it: the module is in evaluation mode, and no thread trains, loads, moves or frees it, sets its mode or
 * registers something in it meanwhile. Each gets the bits that it would get alone. Guards, the current device, stream
 * and the last error are each thread's own: a thread that wants no record says KN_NO_GRAD itself. Threads whose current
 * streams differ work side by side on the device; a stream that is not the one on which the parameters were last
 * written must be told to wait for that (kn_synchronize once, after loading or training, is enough). Graphed modules
 * (kn_make_graphed_callable) take their callers in turn. Forward functions of the program's own that keep something in
 * the module must guard it themselves. In training mode, and for kn_backward through its parameters, a module is used
 * by one thread at a time. */
#ifndef KOINE_MODULE_H
#define KOINE_MODULE_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- using a module --------------------------------------------------------------------------- */

/* The module applied to x. The result is owned as any tensor expression's. NULL in gives NULL out. The message of an
 * error ends with the name of the module where it happened: "linear: ... (in encoder.0.fc)".
 *
 * What a forward function of your own makes lives as long as the result does: until the scope ends that the caller of
 * the network opened. So a forward may keep a tensor for later (self->mu = ..., for the loss). One that should give its
 * temporaries up at once opens a scope of its own (kn_scope_return). The library's layers keep nothing. With no scope
 * open at all, what a forward made is gone when the outermost kn_forward returns; kn_retain keeps it. */
KN_API kn_tensor *kn_forward(kn_module *module, kn_tensor *x);

/* The module applied to several tensors, with several results: attention with a mask, a recurrent layer that returns
 * its output and its state. kn_forward is the case of one input and one output.
 *
 *     kn_tensor *inputs[] = {x, h, c}, *outputs[3];
 *     kn_forward_many(lstm, inputs, 3, outputs, 3);
 *     kn_forward_many(attention, KN_TENSORS(query, mask), outputs, 1);
 *
 * Optional inputs may be NULL, or left out at the end of the list; NULL for any other gives NULL out. The outputs are
 * owned as those of any tensor expression; on failure all of them are NULL and the error sticks. `inputs` and `outputs`
 * may be the same array. A wrong number of inputs or outputs is KN_ERR_ARGUMENT. In a Sequential the outputs of a child
 * are the inputs of the next. */
KN_API kn_status kn_forward_many(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                                 int num_outputs);

/* How many tensors the module takes, optional ones included, and how many it returns. 0 for NULL. */
KN_API int kn_module_input_count(const kn_module *module);
KN_API int kn_module_output_count(const kn_module *module);

/* activation(module(x)), for the forward functions of modules of your own: kn_relu(kn_forward(bn, x)) without a pass
 * over memory of its own, where the module can do that: Linear, Conv2d, BatchNorm, MaxPool2d, and a Sequential that
 * ends with one of these. A Sequential does the same with its children: ReLU and ReLU6 are applied by the layer before
 * them, or by the MaxPool2d after them. Nothing but the speed and the profile tells: values and gradients are the same.
 * kn_set_fusion (koine/flags.h) switches it off. */
KN_API kn_tensor *kn_forward_activated(kn_module *module, kn_tensor *x, kn_activation activation);

KN_API void kn_module_free(kn_module *module); /* NULL allowed */

/* Training mode (the default) or evaluation mode, for the module and all below it. */
KN_API void kn_module_train(kn_module *module, bool training);
KN_API bool kn_module_is_training(const kn_module *module);

/* Moves parameters and buffers in place: the tensors keep their identity, so an optimizer made before stays valid (its
 * state moves at its next step). Gradients move along. Floating tensors take `dtype`; KN_DTYPE_DEFAULT keeps theirs;
 * `device` NULL keeps it. */
KN_API kn_status kn_module_to(kn_module *module, kn_device *device);
KN_API kn_status kn_module_to_dtype(kn_module *module, kn_dtype dtype);

KN_API void kn_module_zero_grad(kn_module *module); /* drops all gradients (set_to_none) */

/* Parameters in order of registration, depth first, each once. The list belongs to the module, is valid until the
 * module changes, and the tensors are borrowed. */
typedef struct kn_parameter_list {
    kn_tensor *const *tensors;
    const char *const *names; /* PyTorch's: "0.weight", "features.conv1.bias" */
    int count;
} kn_parameter_list;
KN_API kn_parameter_list kn_module_parameters(kn_module *module);
KN_API kn_parameter_list kn_module_buffers(kn_module *module);
KN_API int64_t kn_module_parameter_count(kn_module *module); /* elements in all parameters */

/* Parameters and buffers by PyTorch's names, as a safetensors file: one saved by PyTorch loads here, and the other way
 * round. Loading is strict: a missing or unexpected name or another shape is an error that names it, and nothing is
 * changed then. dtypes are converted. */
KN_API kn_status kn_module_save(kn_module *module, const char *path);
KN_API kn_status kn_module_load(kn_module *module, const char *path);

/* What a load passed over: PyTorch's missing_keys, names of the module that the file lacks, and unexpected_keys, names
 * of the file that the module lacks; as they are, or would be, in the file. */
typedef struct kn_incompatible_keys {
    char **missing_keys, **unexpected_keys;
    int missing_count, unexpected_count;
} kn_incompatible_keys;
KN_API void kn_incompatible_keys_free(kn_incompatible_keys *keys); /* and empties it; NULL allowed */

/* kn_module_load with PyTorch's options of load_state_dict:
 *
 *     kn_incompatible_keys keys;
 *     kn_module_load(net, "resnet18.safetensors", .strict = false, .keys = &keys);
 *     kn_module_load(net, "ddp.safetensors", .prefix = "module.");
 *
 * Another shape is an error also where loading is not strict. A file for a part of a network loads into that part:
 * kn_module_load(kn_module_child(net, 0), ...). */
typedef struct kn_module_load_params {
    /* default true; false: the names that both have are loaded, the others are passed over and told in `keys` */
    bool strict;
    /* default NULL or "": all of the file. Else the tensors whose names begin with it, by the rest of their names; the
     * other tensors of the file are somebody else's, and not unexpected. An error where no name begins with it. */
    const char *prefix;
    /* default NULL. Set on success, to be freed with kn_incompatible_keys_free; empty where the load was strict. On
     * failure it is empty. */
    kn_incompatible_keys *keys;
} kn_module_load_params;
#define KN_MODULE_LOAD_DEFAULTS .strict = true
KN_API kn_module_load_params kn_module_load_params_init(void);
/* params NULL: the defaults */
KN_API kn_status kn_module_load_with(kn_module *module, const char *path, const kn_module_load_params *params);
#ifndef __cplusplus
#define kn_module_load(module, path, ...)                                                                              \
    KN_CALL(kn_module_load_with(module, path, &(kn_module_load_params){KN_MODULE_LOAD_DEFAULTS, __VA_ARGS__}))
#endif

/* The tree that print(net) shows, with each module's own parameters, as torchinfo shows it; the caller frees it with
 * kn_free. Modules that follow each other and are alike in all but their names are one line, or one block:
 * "(0-2): 3 x ReLU()". NULL with an error. */
typedef struct kn_module_summary_params {
    /* default NULL; a tensor that the module takes: also the shape of each module's outputs (of its last call) and the
     * multiply-adds of its own matrix products and convolutions (of all its calls). Found out in evaluation mode by
     * a forward pass in which operations make tensors of zeros instead of computing: no kernel is compiled or run, and
     * nothing is changed but what the program's own forward functions keep. */
    kn_tensor *input;
    /* default NULL; for a module of several inputs, in place of `input`: .inputs = KN_TENSORS(x, mask) */
    kn_tensor *const *inputs;
    int num_inputs;
    int width;   /* default 0: the terminal's, by leaving out arguments, then columns; KN_WIDE: all */
    bool expand; /* default false; true: a line for each module, though it be like the one before */
} kn_module_summary_params;
#define KN_MODULE_SUMMARY_DEFAULTS .input = NULL
KN_API kn_module_summary_params kn_module_summary_params_init(void);
/* params NULL: the defaults */
KN_API char *kn_module_summary_with(kn_module *module, const kn_module_summary_params *params);
KN_API char *kn_module_summary(kn_module *module); /* with the defaults */

/* Records the module's forward and backward pass for inputs like `sample` (shape, dtype, device; with gradients for the
 * input if `sample` requires them), in the mode it is in, and from then on replays them whenever it is applied in that
 * mode, inside whatever else a step does (torch.cuda.make_graphed_callables). In the other mode it runs as before. Both
 * passes are run twice for warming up; buffers that they change (running statistics) are changed by that. Freed with
 * the module. KN_ERR_STATE when a pass does what a graph cannot record (koine/graph.h).
 *
 * The graphs have one place for what the backward pass needs: kn_backward through a call is KN_ERR_STATE once the
 * module was applied again, or a parameter changed in place. So is applying it after its parameters were moved or
 * converted. */
KN_API kn_status kn_make_graphed_callable(kn_module *module, kn_tensor *sample);

/* The same for a module of several inputs or outputs: kn_make_graphed_callable_many(net, KN_TENSORS(x, mask)). Optional
 * inputs without a sample must be left out of every call. In a backward pass an output that no gradient reaches has a
 * gradient of zeros. */
KN_API kn_status kn_make_graphed_callable_many(kn_module *module, kn_tensor *const *samples, int num_samples);

/* --- your own module -------------------------------------------------------------------------- *
 *
 *     typedef struct { kn_tensor *w, *b; } regression;
 *     static kn_tensor *forward(kn_module *m, kn_tensor *x)
 *     {
 *         regression *self = kn_module_self(m);
 *         return kn_add(kn_matmul(x, kn_t(self->w)), self->b);
 *     }
 *     kn_module *m = kn_module_new("LinearRegression", forward, sizeof(regression), NULL);
 *     {
 *         KN_SCOPE;                                // the module keeps what it registers; the scope gives up the rest
 *         regression *self = kn_module_self(m);
 *         self->w = kn_module_register_parameter(m, "w", kn_randn(KN_SHAPE(1, 2)));
 *         self->b = kn_module_register_parameter(m, "b", kn_zeros(KN_SHAPE(1)));
 *     }
 *
 * Several inputs and outputs:
 *
 *     static kn_status attend(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
 *     {
 *         attention *self = kn_module_self(m);
 *         kn_tensor *scores = kn_matmul(kn_forward(self->query, inputs[0]), kn_t(inputs[1]));
 *         if (inputs[2] != NULL)                   // the mask, which is optional
 *             scores = kn_add(scores, inputs[2]);
 *         outputs[1] = kn_softmax(scores, -1);
 *         outputs[0] = kn_matmul(outputs[1], inputs[1]);
 *         return KN_OK;                            // an expression that failed has left NULL, and its error
 *     }
 *     kn_module *m = kn_module_new_many("Attention", attend, .self_size = sizeof(attention), .num_inputs = 3,
 *                                       .num_optional = 1, .num_outputs = 2);
 */

typedef kn_tensor *(*kn_forward_function)(kn_module *module, kn_tensor *x);

/* Gets all inputs, NULL for those that were left out, and sets every output (NULL before). Returns KN_OK, or the status
 * of an error. An output that is still NULL is an error too: that of the expression that failed, if one did. Inputs and
 * outputs are owned as those of kn_forward. */
typedef kn_status (*kn_forward_many_function)(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);

/* Replicas. Where a module runs on several devices (kn_nn_data_parallel, kn_module_replicate), each device has a
 * replica of it: the same type, forward function, children and mode, but tensors of that device in place of the
 * registered ones. Its self is a copy of the module's, byte by byte, in which every pointer to a registered parameter,
 * buffer or child of the network points to the replica's. What else self points to is shared with the module: look such
 * tensors up with kn_module_get, such children with kn_module_child, or keep them in self itself. `destroy` is not
 * called for replicas.
 */

/* `self_size` zeroed bytes are the module's own; `destroy` (NULL allowed) is called with them before they are freed. */
KN_API kn_module *kn_module_new(const char *type_name, kn_forward_function forward, size_t self_size,
                                void (*destroy)(void *self));
/* The same for a module of several inputs or outputs. */
typedef struct kn_module_new_many_params {
    size_t self_size; /* default 0 */
    void (*destroy)(void *self);
    int num_inputs;   /* default 1 */
    int num_optional; /* default 0: how many of the inputs are optional; these are the last ones */
    int num_outputs;  /* default 1 */
} kn_module_new_many_params;
#define KN_MODULE_NEW_MANY_DEFAULTS .num_inputs = 1, .num_outputs = 1
KN_API kn_module_new_many_params kn_module_new_many_params_init(void);
KN_API kn_module *kn_module_new_many_with(const char *type_name, kn_forward_many_function forward,
                                          const kn_module_new_many_params *params);
#define kn_module_new_many(type_name, forward, ...)                                                                    \
    KN_CALL(kn_module_new_many_with(type_name, forward,                                                                \
                                    &(kn_module_new_many_params){KN_MODULE_NEW_MANY_DEFAULTS, __VA_ARGS__}))
KN_API void *kn_module_self(kn_module *module);
KN_API const char *kn_module_type_name(const kn_module *module);

/* Return the tensor or child, borrowed, or NULL with an error. A parameter gets requires_grad. The module keeps a
 * reference of its own of a tensor, and takes over a child, also on failure. Names hold no dot, are UTF-8, as
 * saved files ask for, and unique in the module; none is "__metadata__". */
KN_API kn_tensor *kn_module_register_parameter(kn_module *module, const char *name, kn_tensor *tensor);
KN_API kn_tensor *kn_module_register_buffer(kn_module *module, const char *name, kn_tensor *tensor);
KN_API kn_module *kn_module_register_module(kn_module *module, const char *name, kn_module *child);

KN_API int kn_module_child_count(const kn_module *module);
KN_API kn_module *kn_module_child(const kn_module *module, int index); /* borrowed; NULL outside */
/* a parameter or buffer by its dotted name, borrowed; NULL with an error */
KN_API kn_tensor *kn_module_get(kn_module *module, const char *name);

KN_END_DECLS

#endif
