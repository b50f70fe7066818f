/* dist/group/transport.h - how a group's ranks exchange host memory: the table that a back end fills.
 *
 * A back end moves contiguous host memory and knows neither tensors nor devices. Its functions block, but for messages,
 * are called by one thread per rank, and set the thread's error when they fail. A back end that is a library of its own
 * (MPI) links nothing of Koine: it gets what it needs in a kn_transport_host. */
#pragma once

#include <koine/dtype.h>
#include <koine/group.h>
#include <koine/status.h>

typedef struct kn_transport kn_transport;

/* One end of a message between two ranks. */
typedef struct kn_message_end {
    void *data; /* of what is sent only read */
    size_t bytes;
    int other; /* whom it goes to, or comes from: may be KN_ANY_RANK */
    int tag;
    int *sender;   /* receives the sender's rank; NULL: nobody wants to know */
    double waited; /* seconds since it was begun */
    void *state;   /* the back end's; NULL before the first call */
} kn_message_end;

typedef struct kn_transport_class {
    /* `data`: `count` elements, in place */
    kn_status (*all_reduce)(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op);
    kn_status (*reduce)(kn_transport *self, void *data, size_t count, kn_dtype dtype, kn_reduce_op op, int root);
    kn_status (*broadcast)(kn_transport *self, void *data, size_t bytes, int root);
    /* `blocks`: one block of `bytes` per rank, in the order of the ranks; NULL where the call does not use it. That of
     * an all_gather may be in its place there. */
    kn_status (*all_gather)(kn_transport *self, const void *block, size_t bytes, void *blocks);
    kn_status (*gather)(kn_transport *self, const void *block, size_t bytes, void *blocks, int root);
    kn_status (*scatter)(kn_transport *self, const void *blocks, size_t bytes, void *block, int root);
    kn_status (*reduce_scatter)(kn_transport *self, const void *blocks, size_t count, kn_dtype dtype, kn_reduce_op op,
                                void *block);
    /* blocks one after another, `sizes[r]` bytes to and from rank r */
    kn_status (*all_to_all)(kn_transport *self, const void *input, const size_t *input_sizes, void *output,
                            const size_t *output_sizes);
    kn_status (*barrier)(kn_transport *self);
    /* Messages do not block: these are called again until the message is done, or an error is returned. Sends that may
     * be received by the same calls are begun in order, and so are receives. KN_ERR_SHAPE if what comes has another
     * size. */
    kn_status (*send)(kn_transport *self, kn_message_end *message, bool *done);
    kn_status (*receive)(kn_transport *self, kn_message_end *message, bool *done);
    /* The program's next collective begins, which may take several of the calls above. NULL: nobody wants to know. */
    void (*begin)(void);
    /* Asked now and then by those who wait for a call, from their own threads: KN_ERR_DEVICE with the reason if it will
     * not return. `waited`: seconds since it began. NULL: calls return by themselves. */
    kn_status (*check)(kn_transport *self, double waited);
    /* color < 0: *part is NULL */
    kn_status (*split)(kn_transport *self, int color, int key, kn_transport **part);
    void (*free)(kn_transport *self);
} kn_transport_class;

struct kn_transport {
    const kn_transport_class *class;
    const char *name; /* of the back end */
    int rank, size, local_rank, local_size;
    char **hosts; /* the name of each rank's host; owned by the back end */
    /* all_reduce, reduce, broadcast, all_gather and barrier return by themselves when a rank is lost or late: nobody
     * needs to ask `check` meanwhile. */
    bool notices_losses;
    /* A call has failed and may still write to memory that it was given: nobody may use that for something else. */
    bool is_unfinished;
};

/* KN_REDUCE_MEAN is not among the operations of a transport: the group divides the sum. Reductions whose result depends
 * on the order, those of floating dtypes, are made in the order of the ranks: ((x0 + x1) + x2) + ... */

/* out[i] = first[i] op second[i]; `out` may be one of them (dist/group/host_reduce.c) */
void kn_host_reduce(kn_dtype dtype, kn_reduce_op op, void *out, const void *first, const void *second, size_t count);
void kn_host_divide(kn_dtype dtype, void *data, size_t count, double divisor);

/* --- back ends in libraries of their own -------------------------------------------------------------------------- */

#define KN_TRANSPORT_VERSION 5 /* of the table and of this struct */
typedef struct kn_transport_host {
    int version;
    kn_status (*fail)(kn_status status, const char *format, ...) KN_PRINTF(2, 3);
    void (*reduce)(kn_dtype dtype, kn_reduce_op op, void *out, const void *first, const void *second, size_t count);
    size_t (*dtype_size)(kn_dtype dtype);
} kn_transport_host;

/* The function that such a library exports: opens the transport of all processes. `host` stays valid. */
typedef kn_status (*kn_transport_open)(const kn_transport_host *host, const kn_group_params *params,
                                       kn_transport **transport);
#define KN_TRANSPORT_OPEN_NAME "koine_transport_open"

/* Also exported: the name and version of what it runs over. */
typedef void (*kn_transport_describe)(char *text, size_t size);
#define KN_TRANSPORT_DESCRIBE_NAME "koine_transport_describe"

/* The transports. */
kn_status kn_threads_transports_new(const char *name, int size, double timeout, kn_transport **transports);
