/* koine/module.h - modules: layers and networks with named parameters and buffers.
 *
 * A module owns its parameters, buffers and children, and kn_module_free frees all of them. A module passed to another
 * (kn_nn_sequential, kn_module_register_module) belongs to that one; passed to several, or several times, it is shared
 * and freed with the last of them: layers that share parameters, or a network's first layers. Parameters are created on
 * the current device, initialised as in PyTorch from that device's generator, and require gradients.
 *
 * Constructors return NULL with a sticky error on failure, and fail if a child is NULL, so a network can be built in
 * one expression and checked once.
 *
 * Threads. Any number of threads may apply one module at once (kn_forward), each to its own input, as long as no thread
 * changes it: the module is in evaluation mode, and nobody trains, loads, moves or frees it, sets its mode or registers
 * anything in it meanwhile. Results are bitwise those of a single thread. Guards, the current device, the current
 * stream and the last error are per thread, so each thread that does not need gradients opens its own KN_NO_GRAD.
 * Threads with different current streams run concurrently on the device; a stream other than the one that last wrote
 * the parameters must wait for those writes (one kn_synchronize after loading or training is enough). Graphed modules
 * (kn_make_graphed_callable) serve one caller at a time. User-defined forward functions that store something in the
 * module must lock it themselves. In training mode, and for kn_backward through its parameters, a module is used by one
 * thread at a time. */
#ifndef KOINE_MODULE_H
#define KOINE_MODULE_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- using a module --------------------------------------------------------------------------- */

/* Applies the module to x. The result is owned like that of any tensor expression; NULL in gives NULL out. Error
 * messages end with the name of the module that failed: "linear: ... (in encoder.0.fc)".
 *
 * Tensors created by a user-defined forward function live as long as the result, until the end of the scope that the
 * caller of the network opened. A forward may therefore store a tensor for later (self->mu = ..., for the loss). To
 * release its temporaries at once it opens its own scope (kn_scope_return); the library's layers do. If no scope is
 * open, these tensors are released when the outermost kn_forward returns; kn_retain keeps them. */
KN_API kn_tensor *kn_forward(kn_module *module, kn_tensor *x);

/* Applies the module to several tensors, with several results: attention with a mask, or a recurrent layer that returns
 * its output and its state. kn_forward is the case of one input and one output.
 *
 *     kn_tensor *inputs[] = {x, h, c}, *outputs[3];
 *     kn_forward_many(lstm, inputs, 3, outputs, 3);
 *     kn_forward_many(attention, KN_TENSORS(query, mask), outputs, 1);
 *
 * Optional inputs may be NULL, or omitted at the end of the list; NULL for any other gives NULL out. The outputs are
 * owned like those of any tensor expression; on failure all are NULL, with a sticky error. `inputs` and `outputs` may
 * be the same array. A wrong number of inputs or outputs is KN_ERR_ARGUMENT. In a Sequential the outputs of each child
 * are the inputs of the next. */
KN_API kn_status kn_forward_many(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                                 int num_outputs);

/* The number of tensors the module takes, including optional ones, and the number it returns. 0 for NULL. */
KN_API int kn_module_input_count(const kn_module *module);
KN_API int kn_module_output_count(const kn_module *module);

/* activation(module(x)), for user-defined forward functions: as kn_relu(kn_forward(bn, x)), but without a separate pass
 * over memory if the module supports that: Linear, convolutions, BatchNorm, max pooling, and a Sequential that ends
 * with one of these. A Sequential does the same for its children: ReLU and ReLU6 are applied by the layer before them,
 * or by the max pooling after them. Values and gradients are the same; only speed and profiles differ. kn_set_fusion
 * (koine/flags.h) turns it off. */
KN_API kn_tensor *kn_forward_activated(kn_module *module, kn_tensor *x, kn_activation activation);

KN_API void kn_module_free(kn_module *module); /* NULL allowed */

/* Training mode (the default) or evaluation mode, for the module and all its descendants. */
KN_API void kn_module_train(kn_module *module, bool training);
KN_API bool kn_module_is_training(const kn_module *module);

/* Activation checkpointing (torch.utils.checkpoint), of this module and not of its children alone: from now on, forward
 * passes that gradients flow through keep only the module's inputs, and the backward pass computes everything inside a
 * second time: less memory, about a third more time. For the blocks of a deep network, for example. Results and
 * gradients have the same bits: the second pass draws the same random numbers and leaves running estimates unchanged.
 * Until the backward pass the module must exist, and its parameters must not change. create_graph is an error. */
KN_API kn_status kn_module_checkpoint(kn_module *module, bool checkpoint);

/* Move or convert parameters, buffers and gradients in place: the tensors keep their identity, so existing optimizers
 * stay valid (their state follows at the next step). Only floating tensors are converted. A NULL device and
 * KN_DTYPE_DEFAULT change nothing. */
KN_API kn_status kn_module_to(kn_module *module, kn_device *device);
KN_API kn_status kn_module_to_dtype(kn_module *module, kn_dtype dtype);

KN_API void kn_module_zero_grad(kn_module *module); /* drops all gradients (set_to_none) */

/* kn_set_requires_grad of all parameters: false freezes the module. Frozen parameters get no gradients, and optimizers
 * leave those without a gradient unchanged: drop older gradients with kn_module_zero_grad, or PyTorch's optimizers and
 * these still use them. Returns the module; NULL with a sticky error. */
KN_API kn_module *kn_module_requires_grad_(kn_module *module, bool requires_grad);

/* Parameters in order of registration, depth first, each once. The list belongs to the module and is valid until the
 * module changes; the tensors are borrowed. */
typedef struct kn_parameter_list {
    kn_tensor *const *tensors;
    const char *const *names; /* PyTorch's: "0.weight", "features.conv1.bias" */
    int count;
} kn_parameter_list;
KN_API kn_parameter_list kn_module_parameters(kn_module *module);
KN_API kn_parameter_list kn_module_buffers(kn_module *module);
KN_API int64_t kn_module_parameter_count(kn_module *module); /* elements in all parameters */

/* Saves and loads parameters and buffers as a safetensors file with PyTorch's names, which PyTorch can also load and
 * save. Loading is strict: a missing or unexpected name or a different shape is an error that names it, and changes
 * nothing. dtypes are converted. A tensor registered under several names is saved under each, as in a state dict; files
 * with only one of them, as safetensors.torch.save_model writes, load too. */
KN_API kn_status kn_module_save(kn_module *module, const char *path);
KN_API kn_status kn_module_load(kn_module *module, const char *path);

/* What a load skipped, as in PyTorch: missing_keys are names of the module that the file lacks, unexpected_keys names
 * in the file that the module lacks; both as spelled in the file. */
typedef struct kn_incompatible_keys {
    char **missing_keys, **unexpected_keys;
    int missing_count, unexpected_count;
} kn_incompatible_keys;
KN_API void kn_incompatible_keys_free(kn_incompatible_keys *keys); /* and empties it; NULL allowed */

/* kn_module_load with the options of PyTorch's load_state_dict:
 *
 *     kn_incompatible_keys keys;
 *     kn_module_load(net, "resnet18.safetensors", .strict = false, .keys = &keys);
 *     kn_module_load(net, "ddp.safetensors", .prefix = "module.");
 *
 * A different shape is an error even if loading is not strict. A file for a part of a network loads into that part:
 * kn_module_load(kn_module_child(net, 0), ...). */
typedef struct kn_module_load_params {
    /* default true; false: loads the names that both have, and reports the others in `keys` */
    bool strict;
    /* default NULL or "": the whole file. Otherwise only tensors whose names start with the prefix, which is removed;
     * others are ignored, and are not unexpected keys. An error if no name starts with it. */
    const char *prefix;
    /* default NULL. Set on success; free it with kn_incompatible_keys_free. Empty after a strict load or a failure. */
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

/* The module as a tree, like PyTorch's print(net), with the number of parameters of each module, like torchinfo. The
 * caller frees it with kn_free; NULL with an error. Consecutive modules that differ only in their names share one line
 * or block: "(0-2): 3 x ReLU()". */
typedef struct kn_module_summary_params {
    /* default NULL. With an input for the module, the summary also shows the shape of each module's outputs (at its
     * last call) and the multiply-adds of its own matrix products and convolutions (all calls). They come from a
     * forward pass in evaluation mode whose operations return zeros instead of computing: no kernel is compiled or run,
     * and nothing changes except what user-defined forward functions store. */
    kn_tensor *input;
    /* default NULL; for a module of several inputs, instead of `input`: .inputs = KN_TENSORS(x, mask) */
    kn_tensor *const *inputs;
    int num_inputs;
    int width;   /* default 0: the terminal's; arguments, then columns are omitted to fit. KN_WIDE: no limit */
    bool expand; /* default false; true: one line for each module, even if equal to the one before */
} kn_module_summary_params;
#define KN_MODULE_SUMMARY_DEFAULTS .input = NULL
KN_API kn_module_summary_params kn_module_summary_params_init(void);
/* params NULL: the defaults */
KN_API char *kn_module_summary_with(kn_module *module, const kn_module_summary_params *params);
KN_API char *kn_module_summary(kn_module *module); /* with the defaults */
/* What the summary shows as the arguments of a module of the program's own, on one line: "size=3". Copied. */
KN_API kn_status kn_module_set_extra_repr(kn_module *module, const char *text);

/* Records the module's forward and backward pass as graphs, in its current mode and for inputs like `sample` (shape,
 * dtype, device; with a gradient for the input if `sample` requires one), and replays them whenever the module is
 * applied in that mode (torch.cuda.make_graphed_callables). In the other mode it runs as before. Both passes run twice
 * as a warm-up, which also updates buffers such as running statistics. The graphs are freed with the module.
 * KN_ERR_STATE if a pass does something that a graph cannot record (koine/graph.h).
 *
 * The graphs have one set of tensors saved for the backward pass: kn_backward through a call is KN_ERR_STATE once the
 * module has been applied again or a parameter has been changed in place. Applying the module after its parameters were
 * moved or converted is KN_ERR_STATE, too. */
KN_API kn_status kn_make_graphed_callable(kn_module *module, kn_tensor *sample);

/* The same for a module of several inputs or outputs: kn_make_graphed_callable_many(net, KN_TENSORS(x, mask)). Optional
 * inputs without a sample must be omitted in every call. In the backward pass an output that no gradient reaches gets
 * zeros. */
KN_API kn_status kn_make_graphed_callable_many(kn_module *module, kn_tensor *const *samples, int num_samples);

/* --- user-defined modules -------------------------------------------------------------------------- *
 *
 *     typedef struct { kn_tensor *w, *b; } regression;
 *     static kn_tensor *forward(kn_module *m, kn_tensor *x)
 *     {
 *         regression *self = kn_module_self(m);
 *         return kn_add(kn_matmul(x, kn_t(self->w)), self->b);
 *     }
 *     kn_module *m = kn_module_new("LinearRegression", forward, sizeof(regression), NULL);
 *     {
 *         KN_SCOPE;                                // the module keeps what it registers; the scope releases the rest
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
 *         return KN_OK;                            // a failed expression leaves NULL and sets an error
 *     }
 *     kn_module *m = kn_module_new_many("Attention", attend, .self_size = sizeof(attention), .num_inputs = 3,
 *                                       .num_optional = 1, .num_outputs = 2);
 */

typedef kn_tensor *(*kn_forward_function)(kn_module *module, kn_tensor *x);

/* Receives all inputs (NULL for omitted ones) and sets every output (initially NULL). Returns KN_OK, or the status of
 * an error. An output that remains NULL is an error, too: that of the failed expression if there is one. Inputs and
 * outputs are owned like those of kn_forward. */
typedef kn_status (*kn_forward_many_function)(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);

/* Replicas. To run a module on several devices (kn_nn_data_parallel, kn_module_replicate), each device gets a replica:
 * the same type, forward function, children and mode, with copies of the registered tensors on that device. Its self is
 * a byte-wise copy of the module's, in which pointers to registered parameters, buffers and children of the network are
 * replaced by pointers to the replica's. Everything else that self points to is shared with the module: if that
 * contains pointers to tensors or children, use kn_module_get and kn_module_child instead, or store the pointers in
 * self itself. `destroy` is not called for replicas. */

/* A new module with `self_size` zeroed bytes of its own (kn_module_self); `destroy` (NULL allowed) is called with them
 * before they are freed. */
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

/* Return the tensor or child, borrowed, or NULL with an error. A parameter then requires a gradient. The module keeps
 * its own reference to a tensor, and takes ownership of a child, also on failure. Names are UTF-8, unique in the
 * module, without dots, and not "__metadata__" (reserved by the file format). */
KN_API kn_tensor *kn_module_register_parameter(kn_module *module, const char *name, kn_tensor *tensor);
KN_API kn_tensor *kn_module_register_buffer(kn_module *module, const char *name, kn_tensor *tensor);
KN_API kn_module *kn_module_register_module(kn_module *module, const char *name, kn_module *child);

KN_API int kn_module_child_count(const kn_module *module);
KN_API kn_module *kn_module_child(const kn_module *module, int index);       /* borrowed; NULL outside */
KN_API const char *kn_module_child_name(const kn_module *module, int index); /* likewise */

/* Put a child, or a tensor, in the place of the one registered under `name`: to give a network another head, or two
 * layers one weight. Pointers to the old one in the module's self become pointers to the new one. The module takes
 * ownership of `child`, and the former child, which is returned, belongs to the caller unless others have it, too. Of a
 * tensor the module drops its reference and keeps one to `tensor`, which is a parameter if the former one was.
 * Optimizers made before have the old parameters. Return NULL with an error, and change nothing, if there is no such
 * name. */
KN_API kn_module *kn_module_replace_module(kn_module *module, const char *name, kn_module *child);
KN_API kn_tensor *kn_module_replace_tensor(kn_module *module, const char *name, kn_tensor *tensor);

/* Take a child, or a parameter or buffer, out of a container or of a module of the program's own. The child belongs to
 * the caller unless others have it, too; pointers in the module's self become NULL. Layers and networks of the library
 * need their parts: KN_ERR_ARGUMENT, as without such a name. */
KN_API kn_module *kn_module_remove_module(kn_module *module, const char *name);
KN_API kn_status kn_module_remove_tensor(kn_module *module, const char *name);

/* Calls `function` with each module of the tree, children before their parents; a status other than KN_OK ends the walk
 * and is returned. torch.nn.Module.apply: to initialise the layers of one kind, for example. */
KN_API kn_status kn_module_apply(kn_module *module, kn_status (*function)(kn_module *module, void *user), void *user);
/* A parameter or buffer by its dotted name, borrowed; NULL with an error. A tensor computed from others
 * (koine/parametrize.h, koine/prune.h) is computed, and owned as results are. */
KN_API kn_tensor *kn_module_get(kn_module *module, const char *name);

KN_END_DECLS

#endif
