/* outcome.h - the outcome of a call as text for comparison: exact values, or the error. The caller frees texts. */
#pragma once

#include <koine/koine.h>

char *show_error(void);                  /* clears the error */
char *show_kind(kn_tensor *tensor);      /* shape, dtype, device, requires_grad, pinned */
char *show_tensor(kn_tensor *tensor);    /* and every element's bytes */
char *show_text(char *text);             /* frees it with kn_free */
char *show_module(kn_module *module);    /* printed, and its parameters and buffers; frees it */
char *show_optim(kn_optim *optim);       /* some_parameters() after three steps; frees it */
char *show_loader(kn_loader *loader);    /* the batches of an epoch; frees it */
char *show_trainer(kn_trainer *trainer); /* the history of a fit of some_module() to some_data(); frees it */
char *show_profile(void);                /* names, counts and shapes recorded by the profiler */
bool is_error(const char *text);

/* Arguments for calls, created anew each time; creating one frees the previous. */
kn_parameter_list some_parameters(void);
kn_module *some_module(void);
kn_optim *some_optim(void); /* of some_module()'s parameters; call that first */
kn_dataset *some_data(void);
void forget_outcomes(void); /* frees what is left */
