/* test_null_arguments.c - no public function dereferences a NULL argument. Each function of the headers
 * (null_calls.sh) is called with all its pointers NULL, and then with each of them NULL beside valid ones. A child
 * process makes the calls, and a new one continues after a crash. */
#include <koine/koine.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/no_kernels.h"

typedef struct call {
    const char *name;
    void (*run)(unsigned nulls); /* a bit for each argument */
    unsigned pointers;           /* the arguments that are pointers */
} call;
#define NULL_AT(index) (nulls >> (index)&1U)

/* --- valid arguments, new for each call: some functions take ownership -------------------------------------------- */

static void *scratch(void) /* an output, or a struct or list of zeros */
{
    static uint64_t block[8192];
    return memset(block, 0, sizeof block);
}

static kn_device *make_kn_device(void) { return kn_device_current(); }
static kn_stream *make_kn_stream(void) { return kn_stream_new(kn_device_current()); }
static kn_event *make_kn_event(void) { return kn_event_new(kn_device_current()); }
static kn_graph *make_kn_graph(void) { return kn_graph_new(); }
static kn_mem_pool *make_kn_mem_pool(void) { return kn_mem_pool_new(kn_device_current()); }
static kn_memory_block *make_kn_memory_block(void) { return kn_caching_allocator_alloc(1, kn_device_current(), NULL); }
static kn_tensor *make_kn_tensor(void) { return kn_ones(KN_SHAPE(1, 1)); }
static kn_storage *make_kn_storage(void) { return kn_storage_of(make_kn_tensor()); }
static kn_module *make_kn_module(void) { return kn_nn_sequential(kn_nn_linear(.in_features = 1, .out_features = 1)); }
static kn_optim *make_kn_optim(void) { return kn_optim_sgd(kn_module_parameters(make_kn_module())); }
static kn_grad_scaler *make_kn_grad_scaler(void) { return kn_grad_scaler_new(); }
static kn_averaged_model *make_kn_averaged_model(void)
{
    return kn_averaged_model_new(kn_module_parameters(make_kn_module()));
}
static kn_lr_scheduler *make_kn_lr_scheduler(void) { return kn_step_lr(make_kn_optim(), 1); }
static kn_dataset *make_kn_dataset(void)
{
    return kn_tensor_dataset(kn_ones(KN_SHAPE(2, 1), .device = kn_device_host()));
}
static kn_sampler *make_kn_sampler(void) { return kn_sequential_sampler(make_kn_dataset()); }
static kn_tokenizer *make_kn_tokenizer(void) { return kn_byte_tokenizer(); }
static kn_loader *make_kn_loader(void) { return kn_loader_new(make_kn_dataset()); }
static kn_transforms *make_kn_transforms(void) { return kn_transforms_new(); }
static kn_trainer *make_kn_trainer(void)
{
    return kn_trainer_new(.module = make_kn_module(), .optim = make_kn_optim(), .quiet = true);
}
static const kn_history *make_kn_history(void) { return kn_trainer_history(make_kn_trainer()); }
static kn_tensor_file *make_kn_tensor_file(void) { return kn_tensor_file_new(); }
static kn_user_kernel *make_kn_user_kernel(void) { return kn_kernel_new("kernel void k() {}", "k", NULL); }
static kn_jit *make_kn_jit(void) { return kn_jit_elementwise("T f(T x) { return x; }"); }
static kn_metric *make_kn_metric(void) { return kn_metric_mean(); }
static kn_device_log *make_kn_device_log(void) { return kn_device_log_new(); }
static const kn_op *make_kn_op(void) { return kn_op_find("relu"); }
static kn_rng_fork *make_kn_rng_fork(void) { return kn_fork_rng_begin(); }
static kn_group *make_kn_group(void) { return kn_group_open(); }
static kn_work *make_kn_work(void)
{
    kn_work *work = NULL;
    kn_group_barrier(make_kn_group(), .work = &work);
    return work;
}
static kn_tensor *const *make_list(void)
{
    static kn_tensor *list[8];
    for (int i = 0; i < 8; i++)
        list[i] = make_kn_tensor();
    return list;
}

#include "null_calls.h"

enum { COUNT = sizeof calls / sizeof calls[0], SECONDS = 60 };

/* --- the calls ---------------------------------------------------------------------------------------------------- */

/* Calls that, as documented, stop the thread from working or change process-wide behaviour: each has its own child. */
static bool changes_what_follows(const char *name)
{
    static const char *const names[] = {
        "kn_refuse_work",    "kn_accept_work",         "kn_device_enter",        "kn_stream_use",
        "kn_mem_pool_enter", "kn_graph_capture_begin", "kn_set_sync_debug_mode", "kn_change_current_allocator"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Does the call make a network of hundreds of megabytes, as the models are? */
static bool makes_much(const char *name)
{
    return strncmp(name, "kn_models_", strlen("kn_models_")) == 0 || strcmp(name, "kn_nn_transformer_with") == 0;
}

typedef struct progress {
    int call;
    unsigned nulls;
    bool is_stuck; /* after the call no tensor can be made */
} progress;

static void run_one(const call *c, int index, unsigned nulls, volatile progress *at)
{
    KN_SCOPE;
    at->call = index;
    at->nulls = nulls;
    alarm(SECONDS);
    if (makes_much(c->name))
        kernels_off();
    c->run(nulls);
    kernels_on();
    kn_error_clear();
    at->is_stuck = !changes_what_follows(c->name) && make_kn_tensor() == NULL;
    if (at->is_stuck)
        fprintf(stderr, "%s: %s\n", c->name, kn_error_message());
    kn_error_clear();
}

static void run_from(int first, volatile progress *at)
{
    for (int i = first; i < COUNT; i++) {
        const call *c = &calls[i];
        if (changes_what_follows(c->name) && i != first)
            _exit(0); /* the next child begins here */
        run_one(c, i, c->pointers, at);
        for (unsigned bit = 1; bit != 0 && bit <= c->pointers && !at->is_stuck; bit <<= 1)
            if (c->pointers & bit)
                run_one(c, i, bit, at);
        if (at->is_stuck || changes_what_follows(c->name))
            _exit(0);
    }
    _exit(0);
}

static void describe(const volatile progress *at, int status)
{
    const char *what = WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                       : at->is_stuck      ? "nothing works after it"
                                           : "exit";
    const call *c = &calls[at->call];
    printf("FAILED: %s with %s: %s\n", c->name, at->nulls == c->pointers ? "all pointers NULL" : "one pointer NULL",
           what);
    for (unsigned i = 0; at->nulls != c->pointers && i < 32; i++)
        if (at->nulls == 1U << i)
            printf("    argument %u of %s\n", i + 1, c->name);
}

int main(void)
{
    volatile progress *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0, children = 0;
    if (at == MAP_FAILED)
        return 1;
    for (int next = 0; next < COUNT; children++) {
        at->call = next - 1;
        at->is_stuck = false;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
            run_from(next, at);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || at->is_stuck) {
            failed++;
            describe(at, status);
        }
        next = at->call + 1;
    }
    printf("%d functions, %d children, %d failures\n", COUNT, children, failed);
    return failed > 0 || COUNT < 400;
}
