/* graph_case.h - a small network in training, stepped eagerly and in graphs. */
#pragma once

#include "support/check.h"
#include "support/values.h"

#define CASE_BATCH 16

/* A convolution, pooling, two kinds of dropout, two linear layers; its optimizer; the inputs a step reads. */
typedef struct graph_case {
    kn_module *net;
    kn_optim *optim;
    kn_tensor *x, *y;
} graph_case;

typedef kn_optim *(*make_optim)(kn_parameter_list parameters);

/* The same weights, inputs and generator state each time. */
void case_make(graph_case *c, make_optim optim, kn_dtype dtype);
void case_free(graph_case *c);

kn_tensor *case_step(graph_case *c); /* the loss; owned as a result */
void case_warm_up(graph_case *c);    /* two steps */
void case_capture(graph_case *c, kn_graph *graph, kn_tensor **loss);

/* Writes new inputs to x and y in place; equal numbers give equal inputs. */
void case_feed(graph_case *c, int number);

/* All parameters are equal bit for bit. */
void check_same_parameters(const graph_case *a, const graph_case *b);

kn_optim *adam(kn_parameter_list parameters);
kn_optim *sgd(kn_parameter_list parameters);
